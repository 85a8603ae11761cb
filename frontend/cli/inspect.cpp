// heddle inspect: what is in a model, or in the files of one.
#include "frontend/inspect.h"
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/inspect_model.h"
#include "frontend/models/shapes.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>

namespace heddle::command {

static std::string factsText(const std::vector<InspectedFact> &facts) {
  size_t names = 0;
  for (const InspectedFact &fact : facts)
    names = std::max(names, fact.name.size());
  std::string text;
  for (const InspectedFact &fact : facts)
    text += fmt::format("  {:<{}}  {}\n", fact.name, names, fact.value);
  return text;
}

static std::string tensorsText(const std::vector<InspectedTensor> &tensors) {
  size_t names = 0, shapes = 0;
  std::vector<std::string> shape;
  for (const InspectedTensor &tensor : tensors) {
    shape.push_back(fmt::format("{}", fmt::join(tensor.shape, " x ")));
    names = std::max(names, tensor.name.size());
    shapes = std::max(shapes, shape.back().size());
  }
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i)
    text += fmt::format("  {:<{}}  {:>{}}  {:<6} {:>12}{}{}\n", tensors[i].name, names, shape[i],
                        shapes, tensors[i].type, tensors[i].bytes,
                        tensors[i].use.empty() ? "" : "  ", tensors[i].use);
  return text;
}

/// The tokenizer that `run` would take.
struct FoundWords {
  std::string file; ///< or why it would take none
  std::vector<InspectedFact> facts = {};
};

/// With the keys that are not used, where the file has such.
static std::vector<InspectedFact> modelFactsOf(const Inspection &found) {
  std::vector<InspectedFact> facts = found.model;
  if (!found.unusedKeys.empty())
    facts.push_back({"keys_not_used", fmt::format("{}", fmt::join(found.unusedKeys, ", "))});
  return facts;
}

static std::string textOf(const Inspection &found, const FoundWords &tokenizer) {
  std::string text = fmt::format("{}: {}\n", found.path, found.format);
  if (!found.metadata.empty())
    text += "\n" + bold("metadata") + "\n" + factsText(found.metadata);
  if (!found.model.empty())
    text += "\n" + bold("model") + "\n" + factsText(modelFactsOf(found)) +
            fmt::format("  {} parameters; tokenizer: {}\n", found.parameters, tokenizer.file);
  else if (tokenizer.facts.empty() && !tokenizer.file.empty())
    text += fmt::format("\ntokenizer: {}\n", tokenizer.file);
  if (!tokenizer.facts.empty())
    text += "\n" + bold("tokenizer") + "\n" + factsText(tokenizer.facts);
  if (!found.tensors.empty())
    text += "\n" + bold(fmt::format("{} tensors", found.tensors.size())) + "\n" +
            tensorsText(found.tensors);
  text += "\n";
  if (found.unpackedBytes)
    text += fmt::format("unpacking takes {:.1f} MB of memory beside the file\n",
                        double(found.unpackedBytes) / 1e6);
  text += found.runs ? "heddle runs it\n" : "heddle does not run it:\n";
  for (const std::string &remark : found.remarks)
    text += "  " + remark + "\n";
  return text;
}

static Json factsJson(const std::vector<InspectedFact> &facts) {
  std::vector<Json::Member> members;
  for (const InspectedFact &fact : facts)
    members.emplace_back(fact.name, fact.value);
  return Json::object(members);
}

static Json jsonOf(const Inspection &found, const FoundWords &tokenizer) {
  std::vector<Json> tensors, remarks;
  std::vector<Json> unusedKeys(found.unusedKeys.begin(), found.unusedKeys.end());
  for (const InspectedTensor &tensor : found.tensors) {
    std::vector<Json> shape(tensor.shape.begin(), tensor.shape.end());
    tensors.push_back(Json::object({{"name", tensor.name},
                                    {"type", tensor.type},
                                    {"shape", Json::array(shape)},
                                    {"bytes", tensor.bytes},
                                    {"use", tensor.use}}));
  }
  for (const std::string &remark : found.remarks)
    remarks.emplace_back(remark);
  return Json::object({{"path", found.path},
                       {"format", found.format},
                       {"runs", found.runs},
                       {"parameters", found.parameters},
                       {"unpacked_bytes", found.unpackedBytes},
                       {"tokenizer", tokenizer.file},
                       {"words", factsJson(tokenizer.facts)},
                       {"model", factsJson(found.model)},
                       {"keys_not_used", Json::array(unusedKeys)},
                       {"metadata", factsJson(found.metadata)},
                       {"tensors", Json::array(tensors)},
                       {"remarks", Json::array(remarks)}});
}

static FoundWords wordsOf(const std::string &path, const Inspection &inspected) {
  if (!inspected.runs) {
    // A vocabulary without a model.
    if (!mayBeTokenizer(path))
      return {};
    auto alone = openTokenizer(path);
    return alone ? FoundWords{path, tokenizerFacts(**alone)} : FoundWords{alone.error().message};
  }
  auto found = findTokenizer(path, inspected.vocabulary);
  if (!found)
    return {found.error().message};
  return found->tokenizer ? FoundWords{found->path, tokenizerFacts(*found->tokenizer)}
                          : FoundWords{found->whyNone};
}

/// What a model without files says of itself.
static Result<Inspection> inspectDescribed(const Invocation &invocation, const std::string &name,
                                           const CompileOptions &options) {
  auto model =
      invocation.graph ? loadModel(*invocation.graph) : loadModel(name, {.dtype = options.dtype});
  if (!model)
    return model.error();
  auto found = heddle::inspectGraph(model->source, options);
  if (!found)
    return found.error();
  found->path = model->name;
  if (const BuiltinShape *shape = invocation.graph ? nullptr : findShape(name)) {
    found->format = "a built-in shape";
    found->model.insert(found->model.begin(), {"shape", std::string(shape->about)});
  }
  found->remarks.emplace_back(
      "weights are made up from a seed, unless a verb that runs it gets --weights");
  return found;
}

int inspect(const Invocation &invocation) {
  Parser parser(invocation,
                "Tells what is in a model or its files: sizes, metadata, tensors, their "
                "types, and what heddle does with each. Reads no weights.");
  std::string path, json;
  OpenOptions options;
  if (!invocation.graph)
    parser.app()
        .add_option("MODEL", path,
                    "a checkpoint or any other file that may be one, graph text, a built-in shape")
        ->type_name("FILE")
        ->required();
  parser.reads(path);
  parser.addAllowUnknown(options);
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;
  const auto isDescribed = invocation.graph ? Result<bool>(true) : isGraph(path);
  if (!isDescribed)
    return fail(isDescribed.error());
  for (const auto &[name, value] :
       {std::pair("--dtype", parser.common.dtype), std::pair("--kv", parser.common.kv)})
    if (value && !*isDescribed)
      return fail(
          usageError(fmt::format("{}: inspect tells what files hold; expected it with graph "
                                 "text or a built-in shape",
                                 name)));
  auto found = *isDescribed ? inspectDescribed(invocation, path, parser.common.compileOptions())
                            : inspectFiles(path, options);
  if (!found)
    return fail(found.error());
  const FoundWords tokenizer =
      *isDescribed ? FoundWords{"none; --tokenizer names one"} : wordsOf(path, *found);
  Status written = report(textOf(*found, tokenizer), jsonOf(*found, tokenizer), json);
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
