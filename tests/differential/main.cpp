// The differential fuzzer: random programs, fused by a random choice of passes in a random order,
// compiled for each instruction set and run with some number of threads, by the program for many
// rows, by the one for few, or each by its own. Fused code has to give the bits of unfused code,
// and both what the fp64 interpreter gives.
//
//   heddle_differential [--seed FIRST] [--seeds COUNT] [--seconds LIMIT] [--folder FOLDER]
//
// Ends with 1 at the first seed that goes wrong, and leaves its text as FOLDER/seed_N.mlir (as it
// was generated) and FOLDER/seed_N.fused.mlir. A program that kills this one leaves them too.
#include "tests/differential/random_program.h"
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"
#include "passes/pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

struct Options {
  uint32_t seed = 1;
  uint64_t seeds = UINT64_MAX;
  double seconds = 1e18;
  std::string folder = ".";
};

void write(const std::string &path, const std::string &text) { std::ofstream(path) << text; }

/// `text` after `passes`; empty, and a message on stderr, where one fails.
std::string fused(const std::string &text, const std::vector<llvm::StringRef> &passes) {
  auto module = parse(text);
  if (!module)
    return fmt::print(stderr, "{}\n", module.error().message), "";
  mlir::PassManager manager(&context());
  passes::buildFusePipeline(manager, llvm::ArrayRef(passes));
  if (mlir::failed(manager.run(**module)))
    return "";
  std::string out;
  llvm::raw_string_ostream stream(out);
  (*module)->print(stream);
  return out;
}

/// Where `found` differs from `expected` in more than the kind of NaN, or nothing. Where unfused
/// code gives NaN fused code may give anything: it does not multiply hidden values.
std::string differsInBits(const Tensor64 &found, const Tensor64 &expected) {
  if (found.shape != expected.shape)
    return "shapes differ";
  for (size_t i = 0; i < found.data.size(); ++i)
    if (std::bit_cast<uint64_t>(found.data[i]) != std::bit_cast<uint64_t>(expected.data[i]) &&
        !std::isnan(expected.data[i]))
      return fmt::format("entry {} is {}, unfused {}", i, found.data[i], expected.data[i]);
  return "";
}

/// Whether f32 has the same infinities: beyond some size it has others.
bool isFinite(const Tensor64 &tensor) {
  return llvm::all_of(tensor.data, [](double value) { return std::abs(value) <= 1e15; });
}

/// Where `found` is further from fp64 than `tolerance`, relative to the largest entry, and than
/// `slack`, or nothing.
std::string differsFromOracle(const Tensor64 &found, const Tensor64 &expected, double tolerance,
                              double slack = 0) {
  if (found.shape != expected.shape)
    return "shapes differ";
  if (!isFinite(expected))
    return "";
  double largest = 1;
  for (double value : expected.data)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.data.size(); ++i)
    if (!(std::abs(found.data[i] - expected.data[i]) <= tolerance * largest + slack))
      return fmt::format("entry {} is {}, in fp64 {}", i, found.data[i], expected.data[i]);
  return "";
}

double farthest(const Tensor64 &a, const Tensor64 &b) {
  double most = 0;
  for (size_t i = 0; i < a.data.size(); ++i)
    most = std::max(most, std::abs(a.data[i] - b.data[i]));
  return most;
}

class Check {
public:
  Check(uint32_t seed, const Options &options)
      : engine(seed), path(fmt::format("{}/seed_{}", options.folder, seed)),
        program(randomProgram(seed)) {}

  /// What goes wrong, or nothing.
  std::string run() {
    write(path + ".mlir", program.model.text);
    auto expected = interpret(program.model, program.calls);
    if (!expected)
      return "the interpreter says: " + expected.error().message;
    static const std::vector<const char *> all = {"avx2", "avx512", "avx512_bf16"};
    std::vector<const char *> isas;
    for (const char *isa : all)
      if (codegen::selectTarget(isa))
        isas.push_back(isa);
    std::string isa = isas[engine() % isas.size()];
    auto plain = runNative(program.model, program.calls, someWay(isa));
    if (!plain)
      return fmt::format("on {}: {}", isa, plain.error().message);
    std::string wrong = againstOracle(*plain, *expected, 2e-4);
    if (!wrong.empty())
      return fmt::format("unfused, on {}: {}", isa, wrong);
    for (bool shuffles : engine() % 3 ? std::vector<bool>{true} : std::vector<bool>{false, true}) {
      auto names = passes::FusionSet::all().names();
      std::vector<llvm::StringRef> passes(names.begin(), names.end());
      if (shuffles) {
        std::shuffle(passes.begin(), passes.end(), engine);
        passes.resize(1 + engine() % passes.size());
      }
      Model model = program.model;
      model.text = fused(model.text, passes);
      write(path + ".fused.mlir", model.text);
      std::string what =
          fmt::format("on {} after {}", isa,
                      fmt::join(std::vector<std::string>(passes.begin(), passes.end()), ", "));
      if (model.text.empty())
        return what + ": the passes fail";
      auto found = runNative(model, program.calls, someWay(isa));
      if (!found)
        return what + ": " + found.error().message;
      wrong = compare(*found, *plain, [](const Tensor64 &a, const Tensor64 &b, size_t, size_t) {
        return differsInBits(a, b);
      });
      if (!wrong.empty())
        return what + ": " + wrong;
      auto meant = interpret(model, program.calls);
      if (!meant)
        return what + ", the interpreter says: " + meant.error().message;
      wrong = againstOracle(*meant, *expected, 1e-5);
      if (!wrong.empty())
        return what + ", interpreted: " + wrong;
    }
    std::remove((path + ".mlir").c_str());
    std::remove((path + ".fused.mlir").c_str());
    return "";
  }

private:
  /// Which of the two programs runs which calls, and on how many threads, changes no bit.
  JitOptions someWay(const std::string &isa) {
    return {.isa = isa,
            .threads = 1 + int(engine() % 4),
            .decode = engine() % 4 == 0,
            .decodeRows = engine() % 2 ? 8 : 0};
  }

  /// What `differs` says of the first result of which it says something.
  template <class Differs>
  std::string compare(const std::vector<Tensors> &found, const std::vector<Tensors> &expected,
                      Differs &&differs) {
    for (size_t call = 0; call < expected.size(); ++call)
      for (size_t i = 0; i < expected[call].size(); ++i)
        if (std::string text = differs(found[call][i], expected[call][i], call, i); !text.empty())
          return fmt::format("result {} of call {}: {}", i, call, text);
    return "";
  }

  /// Where `found` is too far from fp64: further than `tolerance`, if nothing is rounded.
  std::string againstOracle(const std::vector<Tensors> &found, const std::vector<Tensors> &expected,
                            double tolerance) {
    if (!program.isContinuous)
      return "";
    if (program.rounds)
      tolerance = 5e-2;
    std::string wrong =
        compare(found, expected, [&](const Tensor64 &a, const Tensor64 &b, size_t, size_t) {
          return differsFromOracle(a, b, tolerance);
        });
    if (wrong.empty() || !program.rounds)
      return wrong;
    // Where a softmax is sharp, rounding moves a result as far as any small change of the weights.
    std::vector<std::vector<Tensors>> moved;
    for (uint32_t draw : {1, 2, 3, 4}) {
      auto results = interpret(nudged(draw), program.calls);
      if (!results)
        return "the interpreter says: " + results.error().message;
      moved.push_back(std::move(*results));
    }
    return compare(found, expected,
                   [&](const Tensor64 &a, const Tensor64 &b, size_t call, size_t i) {
                     double slack = 0;
                     for (const auto &results : moved)
                       slack = std::max(slack, 2 * farthest(results[call][i], b));
                     return differsFromOracle(a, b, tolerance, slack);
                   });
  }

  /// The program with each weight moved by about what rounding to bf16, or to int8, may move it.
  Model nudged(uint32_t draw) {
    Model model = program.model;
    std::mt19937 signs(draw);
    for (auto &[name, param] : model.params)
      for (double &value : param.data)
        value *= 1 + (signs() % 2 ? 1 : -1) / 128.0;
    return model;
  }

  std::mt19937 engine;
  std::string path;
  RandomProgram program;
};

bool readOptions(int argc, char **argv, Options &options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--seed")
      options.seed = uint32_t(std::strtoul(argv[i + 1], nullptr, 10));
    else if (name == "--seeds")
      options.seeds = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--seconds")
      options.seconds = std::strtod(argv[i + 1], nullptr);
    else if (name == "--folder")
      options.folder = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!readOptions(argc, argv, options)) {
    fmt::print(stderr,
               "usage: {} [--seed FIRST] [--seeds COUNT] [--seconds LIMIT] [--folder FOLDER]\n",
               argv[0]);
    return 2;
  }
  auto start = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  uint64_t done = 0;
  for (; done < options.seeds && seconds() < options.seconds; ++done) {
    auto seed = uint32_t(options.seed + done);
    std::string wrong = Check(seed, options).run();
    if (!wrong.empty()) {
      fmt::print("seed {}: {}\nits text is {}/seed_{}.mlir\n", seed, wrong, options.folder, seed);
      return 1;
    }
    if (done % 100 == 99) {
      fmt::print("seeds {} to {}: {:.0f} s\n", options.seed, seed, seconds());
      std::fflush(stdout);
    }
  }
  fmt::print("{} programs from seed {} on agree, {:.0f} s\n", done, options.seed, seconds());
  return 0;
}
