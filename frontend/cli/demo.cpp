// heddle demo: the tour. It describes a small model, shows what the compiler makes of it, runs it
// and measures it; it needs no file and takes some seconds.
#include "frontend/cli/comparison.h"
#include "frontend/cli/comparison_report.h"
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/explain.h"
#include "frontend/models/llama.h"
#include "frontend/work.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <algorithm>
#include <array>

namespace heddle::command {

namespace {

constexpr LlamaOptions shape = {.width = 256,
                                .layers = 4,
                                .heads = 8,
                                .kvHeads = 2,
                                .hidden = 704,
                                .words = 1024,
                                .context = 1024};

constexpr std::string_view source =
#include "frontend/cli/excerpt.inc"
    ;

/// The steps of the tour, each a piece of text.
class Demo {
public:
  Demo(LoadedModel model, const CommonOptions &common, std::string program)
      : model(std::move(model)), common(common), program(std::move(program)) {}

  Status describe();
  Status graph();
  Status fuse();
  Status compileAndRun();
  Status compare();
  Status end();

private:
  Status heading(const std::string &title, const std::string &text) {
    return print(fmt::format("\n{}\n{}", bold(fmt::format("{}. {}", ++step, title)), text));
  }

  LoadedModel model;
  const CommonOptions &common;
  const std::string program;
  int step = 0;
};

} // namespace

Status Demo::describe() {
  std::string text = fmt::format(
      "A LLaMA of {} layers, {} wide, with {} query heads that share {} key/value heads. "
      "This is all of a layer\n(frontend/models/llama.cpp); a model is a function that "
      "builds a graph.\n\n",
      shape.layers, shape.width, shape.heads, shape.kvHeads);
  return heading("A model, described in C++", text + dim(source));
}

/// A line of a graph's text without its id and the types it takes.
static std::string shortened(std::string line) {
  line.erase(0, line.find_first_not_of(' '));
  if (size_t types = line.rfind(" : ("); types != std::string::npos) {
    size_t arrow = line.find(" -> ", types);
    line = line.substr(0, types) + (arrow == std::string::npos ? "" : line.substr(arrow));
  }
  if (size_t id = line.find("heddle.id = \""); id != std::string::npos) {
    size_t end = line.find('"', id + 13) + 1;
    if (line.compare(end, 2, ", ") == 0)
      end += 2;
    else if (line.compare(id - 2, 2, ", ") == 0)
      id -= 2;
    line.erase(id, end - id);
  }
  if (size_t empty = line.find(" {}"); empty != std::string::npos)
    line.erase(empty, 3);
  constexpr size_t longest = 110;
  if (line.size() > longest)
    line = line.substr(0, longest - 4) + " ...";
  return line;
}

Status Demo::graph() {
  auto text = heddle::show(model.source, Level::graph, Phase::prefill, common.compileOptions());
  if (!text)
    return text.error();
  std::string excerpt;
  for (std::string_view rest = *text; !rest.empty();) {
    size_t end = rest.find('\n');
    std::string line(rest.substr(0, end));
    if (line.find("heddle.id = \"layers.0.attention.") != std::string::npos)
      excerpt += "  " + shortened(line) + "\n";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return heading("Its graph", "Every operation takes tensors and gives a tensor; `?` is the number "
                              "of tokens, which each call decides.\nThe attention of the first "
                              "layer (" +
                                  program + " show prints it all):\n\n" + dim(excerpt));
}

static std::string withoutPrefix(const std::string &id, std::string_view prefix) {
  return id.starts_with(prefix) ? id.substr(prefix.size()) : id;
}

Status Demo::fuse() {
  CompileOptions options = common.compileOptions();
  auto fused = explain(model.source, options);
  if (!fused)
    return fused.error();
  options.fuse = "none";
  auto unfused = explain(model.source, options);
  if (!unfused)
    return unfused.error();
  std::string text = "The scores of attention need not go to memory, nor what is between a product "
                     "and its activation.\nWhat fired in the first layer:\n\n";
  for (const FusionEvent &event : fused->events) {
    if (!event.fired || !event.id.starts_with("layers.0."))
      continue;
    std::string parts;
    for (const std::string &id : event.from)
      parts += (parts.empty() ? "" : " + ") +
               withoutPrefix(withoutPrefix(id, "layers.0."), "attention.");
    text += fmt::format("  {:<18} {}\n", event.fusion, dim(parts));
  }
  return heading("Fused", text + fmt::format("\n{} operations became {}.\n",
                                             unfused->operations.size(), fused->operations.size()));
}

Status Demo::compileAndRun() {
  auto compiled = compileWithProgress(model, common.compileOptions(), !common.quiet);
  if (!compiled)
    return compiled.error();
  const ModelInfo &info = compiled->info();
  auto session = compiled->session({.context = 256, .threads = common.threads});
  if (!session)
    return session.error();
  std::vector<int32_t> prompt = someIds(16, shape.words, 7);
  auto begin = std::chrono::steady_clock::now();
  auto generated =
      session->generate(prompt, {.tokens = 48, .sampling = {.temperature = 0}, .endTokens = {}});
  if (!generated)
    return generated.error();
  double seconds = secondsSince(begin);
  std::string ids;
  for (int32_t id : generated->ids)
    ids += fmt::format(" {}", id);
  return heading(
      "Compiled and run",
      fmt::format("{:.0f} ms from the graph to {} kernels of machine code for {}, written for this "
                  "model: one\ncompilation for prompts of any length. {} of weights made up from a "
                  "seed, so the model has nothing to say,\nbut says it at {:.0f} tokens a second "
                  "({}):\n\n{}\n",
                  (info.lowerSeconds + info.codeSeconds) * 1e3, info.kernels, info.isa,
                  runtime::formatBytes(info.weightBytes),
                  static_cast<double>(generated->ids.size()) / seconds,
                  counted(session->executor().threads(), "thread"), dim(" " + ids)));
}

Status Demo::compare() {
  ProgressLine progress(!common.quiet);
  auto comparison = compareFusion(model,
                                  {.compile = common.compileOptions(),
                                   .promptTokens = 512,
                                   .errorTokens = 0,
                                   .reps = 5,
                                   .eachFusion = false},
                                  progress);
  if (!comparison)
    return comparison.error();
  return heading("Fused against unfused",
                 fmt::format("The same kernels for the same products, run in turn, medians of 5. "
                             "Both are checked against an interpreter\nthat computes the graph in "
                             "fp64, over {} tokens: fusion changes speed and memory, not "
                             "results.\n\n",
                             comparison->errorTokens) +
                     sidesText(*comparison));
}

Status Demo::end() {
  static constexpr std::array<const char *, 2> rows[] = {
      {"run MODEL.bin --prompt \"Once upon a time\"", "with the weights of a llama2.c checkpoint"},
      {"show tiny --emit fused", "fused, planned, loops, llvm or asm"},
      {"explain llama-1b", "what was fused, what was not, and why"},
      {"compare llama-110m", "what each fusion is worth"},
      {"bench llama-1b --dtype bf16", "against the limits of this machine"},
      {"list models", "models, passes, ops, kernels"}};
  std::string text;
  for (const auto &[arguments, about] : rows)
    text += fmt::format("  {:<54} {}\n", program + " " + arguments, about);
  return heading("What to do next", text);
}

int demo(const Invocation &invocation) {
  Parser parser(invocation,
                "Describes a small model, shows what the compiler makes of it, runs and "
                "measures it. Needs no file; takes some seconds.");
  if (auto code = parser.parse())
    return *code;
  auto model = loadModel(llama(shape));
  if (!model)
    return fail(model.error());
  Demo demo(std::move(*model), parser.common, invocation.program);
  if (Status printed = print(bold("Heddle") + " compiles transformers into native code for this "
                                              "processor.\n");
      !printed)
    return fail(printed.error());
  for (auto step : {&Demo::describe, &Demo::graph, &Demo::fuse, &Demo::compileAndRun,
                    &Demo::compare, &Demo::end})
    if (Status status = (demo.*step)(); !status)
      return fail(status.error());
  return exitOk;
}

} // namespace heddle::command
