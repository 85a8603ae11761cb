// What Heddle understood of a model's configuration, in words.
#include "frontend/inspect_model.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heddle {

namespace {

using Kind = RotaryScaling::Kind;

const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::none:
    return "none";
  case Kind::linear:
    return "linear";
  case Kind::dynamic:
    return "dynamic";
  case Kind::yarn:
    return "yarn";
  case Kind::llama3:
    return "llama3";
  case Kind::longRope:
    return "longrope";
  case Kind::factors:
    return "a table of factors";
  }
  return "none";
}

const char *nameOf(Activation activation) {
  switch (activation) {
  case Activation::silu:
    return "silu";
  case Activation::geluErf:
    return "gelu";
  case Activation::geluTanh:
    return "gelu by tanh";
  }
  return "silu";
}

std::string scalingOf(const RotaryScaling &scaling) {
  std::string text = nameOf(scaling.kind);
  const bool isTable = scaling.kind == Kind::longRope || scaling.kind == Kind::factors;
  if (!isTable)
    text += fmt::format(" by {:g}", scaling.factor);
  if (scaling.kind != Kind::linear && scaling.kind != Kind::factors && scaling.originalContext)
    text += fmt::format(" beyond {} positions", scaling.originalContext);
  if (scaling.magnitude.value_or(1) != 1)
    text += fmt::format(", magnitude {:g}", *scaling.magnitude);
  return text;
}

std::string rotaryOf(const RotaryConfig &rotary) {
  std::string text =
      fmt::format("base {}, {}", rotary.base,
                  rotary.pairing == RotaryPairing::halfSplit ? "half-split" : "interleaved");
  if (rotary.dims)
    text += fmt::format(", {} entries of a head", rotary.dims);
  if (rotary.scaling.kind != Kind::none)
    text += ", scaling " + scalingOf(rotary.scaling);
  return text;
}

/// "0-4, 6": the layers for which it is true.
std::string layersOf(const std::vector<bool> &which) {
  std::vector<std::string> runs;
  for (size_t first = 0; first < which.size(); ++first) {
    if (!which[first])
      continue;
    size_t last = first;
    while (last + 1 < which.size() && which[last + 1])
      ++last;
    runs.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
    first = last;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string scopeOf(const std::vector<bool> &which) {
  return which.empty() ? "all layers" : "layers " + layersOf(which);
}

} // namespace

std::vector<InspectedFact> modelFacts(const ModelConfig &config) {
  std::vector<InspectedFact> facts;
  auto add = [&](const char *name, auto value) {
    facts.push_back({name, fmt::format("{}", value)});
  };
  auto addFactor = [&](const char *name, double value, double none) {
    if (value != none)
      add(name, fmt::format("{:g}", value));
  };
  add("family", config.family);
  add("width", config.width);
  add("hidden", config.hidden);
  add("activation", nameOf(config.activation));
  add("layers", config.layers);
  if (config.residual != Residual::sequential)
    add("residual", config.residual == Residual::parallel ? "attention and MLP side by side"
                                                          : "attention and MLP side by side, of "
                                                            "one norm");
  if (config.experts)
    add("experts", fmt::format("{} of {} for a token, {} hidden, {}", config.expertsPerToken,
                               config.experts, config.expertHidden, scopeOf(config.mixture)));
  add("heads", fmt::format("{} over {}, {} wide", config.heads, config.kvHeads, config.headWidth));
  if (config.queryKeyNorm != QueryKeyNorm::none)
    add("query_key_norm",
        config.queryKeyNorm == QueryKeyNorm::heads ? "each head" : "all heads together");
  add("vocabulary", config.vocabulary);
  add("context", config.context);
  add("norm_epsilon", config.normEpsilon);
  add("embedding", config.tiedEmbedding ? "tied to the output" : "apart from the output");
  if (config.architecture != Architecture::gpt2)
    add("rotary", rotaryOf(config.rotary));
  if (config.windowRotary)
    add("rotary_of_windows", rotaryOf(*config.windowRotary));
  if (config.window)
    add("window", fmt::format("{} positions, {}", config.window, scopeOf(config.windowed)));
  if (config.attentionScale)
    add("attention_scale", fmt::format("{:g}", *config.attentionScale));
  addFactor("attention_softcap", config.attentionSoftcap, 0);
  addFactor("logit_softcap", config.logitSoftcap, 0);
  addFactor("embedding_scale", config.embeddingScale, 1);
  addFactor("residual_scale", config.residualScale, 1);
  addFactor("logit_scale", config.logitScale, 1);
  return facts;
}

std::vector<InspectedFact> tokenizerFacts(const Tokenizer &tokenizer) {
  std::vector<InspectedFact> facts;
  const TextMarks &marks = tokenizer.marks();
  auto mark = [&](int32_t id) {
    return fmt::format("{} {}", id, inQuotes(tokenizer.spelling(id)));
  };
  facts.push_back({"words", fmt::format("{}", tokenizer.vocabularySize())});
  if (marks.bos != TextMarks::none)
    facts.push_back(
        {"begins_texts", mark(marks.bos) + (marks.addsBos ? "" : ", where it is asked for")});
  std::vector<std::string> ends;
  for (const int32_t id : marks.ends)
    if (std::string text = mark(id); std::ranges::find(ends, text) == ends.end())
      ends.push_back(std::move(text));
  if (!ends.empty())
    facts.push_back({"ends_texts", fmt::format("{}", fmt::join(ends, ", "))});
  std::string chat = "none";
  if (!marks.chatTemplate.empty()) {
    const auto written = writeConversation(tokenizer, {{.role = "user", .content = "Hello"}});
    chat = fmt::format("{} characters, {}", marks.chatTemplate.size(),
                       written ? "which --chat goes by" : "not usable: " + written.error().message);
  }
  facts.push_back({"chat_template", std::move(chat)});
  return facts;
}

} // namespace heddle
