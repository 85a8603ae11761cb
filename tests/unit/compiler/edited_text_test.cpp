// Text of levels graph to loops as somebody edits it. What keeps its meaning gives the same logits.
// What nobody should write, numbers, types, words and lines exchanged, left out and doubled at
// random, is refused in words or runs; none of it is a bug of ours, and none ends the process (the
// sanitizers of the asan preset look on).
//
// Of level loops it is the program that changes where it is run: edited kernels may write anywhere,
// and are compiled only. For a long run, of more models, set HEDDLE_EDITS to the number of texts
// and HEDDLE_EDITS_FROM to the first seed; HEDDLE_EDITS_FILE names a file that holds each text
// while it is tried.
#include "frontend/heddle.h"
#include "frontend/models/llama.h"
#include "frontend/models/transformer2017.h"
#include "tests/unit/compiler/reproducer_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <sstream>

namespace heddle {
namespace {

using Engine = std::mt19937;

/// What is edited of a text, and what follows it unchanged.
struct Original {
  std::string name, editable, rest;
};

/// As many shapes alike as there can be, so that there are few kernels to compile.
Graph smallLlama() {
  return llama({.width = 32, .layers = 1, .heads = 2, .hidden = 32, .words = 32, .context = 64});
}

Graph smallTransformer() {
  return transformer2017({.width = 32,
                          .layers = 1,
                          .heads = 2,
                          .keyWidth = 8,
                          .valueWidth = 6,
                          .hidden = 32,
                          .words = 32,
                          .context = 64});
}

/// Texts of different types and phases; every combination for a long run.
std::vector<Original> originals(Level level, bool all = false) {
  std::vector<Original> texts;
  auto add = [&](std::string name, const Graph &graph, Phase phase, const CompileOptions &options) {
    auto text = show(graph, level, phase, options);
    ASSERT_TRUE(text) << text.error().message;
    size_t kernels = level == Level::loops ? text->find("  func.func @") : text->size();
    texts.push_back({name + (phase == Phase::prefill ? ", prefill" : ", decode"),
                     text->substr(0, kernels), text->substr(kernels)});
  };
  add("f32", smallLlama(), Phase::prefill, {});
  add("bf16", smallLlama(), Phase::decode, {.dtype = WeightType::find("bf16")});
  add("q8_0", smallLlama(), Phase::decode, {.dtype = WeightType::find("q8_0")});
  add("transformer2017", smallTransformer(), Phase::prefill, {});
  if (!all)
    return texts;
  add("f32", smallLlama(), Phase::decode, {});
  add("transformer2017", smallTransformer(), Phase::decode, {});
  for (const char *type : {"bf16", "q8_0", "q4_0", "q4_k", "q6_k", "int8"})
    add(type, smallLlama(), Phase::prefill, {.dtype = WeightType::find(type)});
  for (const char *type : {"q4_0", "q4_k", "q6_k", "int8"})
    add(type, smallLlama(), Phase::decode, {.dtype = WeightType::find(type)});
  return texts;
}

//===-- Edits that keep the meaning
//-------------------------------------------------------------===//

struct MildEdit {
  const char *what;
  const char *pattern,
      *replacement; ///< regular expression of one place, and what stands there then
};

/// Tiles, phases and places of a plan, and what a program merely models, are free.
const std::vector<MildEdit> &mildEdits(Level level) {
  static const std::vector<MildEdit> planned = {
      {"another id", "heddle\\.id = \"", "heddle.id = \"edited."},
      {"a phase of its own", "heddle\\.joined, ", ""},
      {"fewer rows in a tile", "\\brows = [0-9]+ ", "rows = 2 "},
      {"fewer panels in a tile", "\\bpanels = [0-9]+ ", "panels = 1 "},
      {"fewer queries in a tile", "query_rows = [0-9]+ ", "query_rows = 2 "},
  };
  static const std::vector<MildEdit> loops = {
      {"another id", "\\bid = \"[^\"]*\"", "id = \"edited\""},
      {"a phase of its own", " joined \\{", " {"},
      {"another schedule", "schedule = \"even\"", "schedule = \"dynamic\""},
      {"other flops", "flops = \"[^\"]*\"", "flops = \"5\""},
      {"other bytes", " bytes = \"[^\"]*\"", " bytes = \"1000000*tokens@1\""},
      {"more scratch", "scratch = \"", "scratch = \"4096 + "},
      {"a larger slot", "slots = \\[\\[\"", "slots = [[\"64*tokens@1 + "},
  };
  static const std::vector<MildEdit> others = {planned.front()};
  return level == Level::planned ? planned : level == Level::loops ? loops : others;
}

/// The matches of `pattern` in `text`, as offsets and lengths.
std::vector<std::pair<size_t, size_t>> find(const std::string &text, const std::regex &pattern) {
  std::vector<std::pair<size_t, size_t>> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.emplace_back(at->position(), at->length());
  return found;
}

/// `text` edited at one of the places that `edit` is for, if it has such a place.
std::string editMildly(std::string text, const MildEdit &edit, Engine &engine) {
  auto places = find(text, std::regex(edit.pattern));
  if (places.empty())
    return text;
  auto [at, length] = places[engine() % places.size()];
  return text.replace(at, length, edit.replacement);
}

/// `text` with each of these edits at every second place that it is for.
std::string editMildly(std::string text, const std::vector<MildEdit> &edits) {
  for (const MildEdit &edit : edits) {
    auto places = find(text, std::regex(edit.pattern));
    for (size_t i = places.size(); i-- > 0;)
      if (i % 2 == 0)
        text.replace(places[i].first, places[i].second, edit.replacement);
  }
  return text;
}

/// `text` with two slots of the arena exchanged, all over.
std::string exchangeSlots(const std::string &text) {
  auto replaced = [](const std::string &in, const char *from, const char *to) {
    return std::regex_replace(in, std::regex(from), to);
  };
  std::string marked = replaced(text, "\"slot:0\"", "\"slot:#\"");
  return replaced(replaced(marked, "\"slot:1\"", "\"slot:0\""), "\"slot:#\"", "\"slot:1\"");
}

//===-- Edits of any kind
//-----------------------------------------------------------------------===//

/// `text` with one of the matches of `pattern` left out, doubled, exchanged with another, or
/// replaced by one of `others`.
std::string edit(std::string text, const std::regex &pattern,
                 const std::vector<std::string> &others, Engine &engine) {
  auto matches = find(text, pattern);
  if (matches.empty())
    return text;
  auto [at, length] = matches[engine() % matches.size()];
  std::string word = text.substr(at, length);
  switch (engine() % (others.empty() ? 4 : 8)) {
  case 0:
    return text.erase(at, length);
  case 1: {
    // Next to it, with a comma where words in a list have one.
    std::string between = word.ends_with('\n') ? "" : engine() % 2 ? ", " : " ";
    return text.insert(at + length, between + word);
  }
  case 2: {
    auto [from, size] = matches[engine() % matches.size()];
    return text.replace(at, length, text.substr(from, size));
  }
  case 3: {
    auto first = matches[engine() % matches.size()], second = std::pair(at, length);
    if (first > second)
      std::swap(first, second);
    if (first == second)
      return text;
    std::string a = text.substr(first.first, first.second);
    std::string b = text.substr(second.first, second.second);
    text.replace(second.first, second.second, a);
    return text.replace(first.first, first.second, b);
  }
  default:
    return text.replace(at, length, others[engine() % others.size()]);
  }
}

std::string edit(std::string text, Level level, Engine &engine) {
  static const std::regex number("-?[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?");
  static const std::regex word("\"[^\"]*\"|[%@!#]?[A-Za-z_][A-Za-z0-9_.$@]*|[0-9]+|[^\\s]");
  static const std::regex quoted("\"[^\"]*\"");
  static const std::regex type("tensor<[^<>]*(<[^>]*>)?>|!heddle\\.[a-z]+(<[^>]*>)?|bf16|f32|i32");
  static const std::regex attribute(
      "[a-z_.]+ = (\"[^\"]*\"|[^,{}\\[\\]]+|\\[[^\\]]*\\]|\\{[^}]*\\})");
  static const std::regex line("[^\n]*\n");
  switch (engine() % 7) {
  case 0:
    return edit(std::move(text), number,
                {"0", "1", "2", "3", "-1", "15", "16", "17", "100", "4096", "4294967296",
                 "1099511627776", "9223372036854775807", "-9223372036854775808", "nan"},
                engine);
  case 1:
    return edit(std::move(text), word, {}, engine);
  case 2:
    return edit(std::move(text), quoted,
                {"\"slot:0\"", "\"slot:99\"", "\"slot:4294967295\"", "\"output:0\"", "\"input:0\"",
                 "\"none\"", "\"rows:1\"", "\"key_rows:1\"", "\"sequences:3\"", "\"cache_keys:0\"",
                 "\"cache_values:1\"", "\"dims\"", "\"-64\"", "\"64*tokens@1\"", "\"x\"", "3",
                 "\"tokens@1*tokens@1*9223372036854775807\"", "[]", "{}"},
                engine);
  case 3:
    return edit(std::move(text), type,
                {"tensor<?x32xf32>",
                 "tensor<32xf32>",
                 "tensor<?xi32>",
                 "tensor<?x?x?xf32>",
                 "tensor<f32>",
                 "tensor<32x32xbf16>",
                 "tensor<0x32xf32>",
                 "tensor<32x32x!heddle.blocks<q8_0>>",
                 "tensor<32x40x!heddle.blocks<q4_k>>",
                 "tensor<?x32x!heddle.blocks<row32>>",
                 "!heddle.blocks<q8_0>",
                 "!heddle.blocks<q6_k>",
                 "!heddle.blocks<row256>",
                 "!heddle.sequences",
                 "!heddle.cache<1 x 1, 16, 16, f32>",
                 "!heddle.cache<4096 x 1, 16, 16, bf16>",
                 "bf16",
                 "f32",
                 "i32",
                 "i1",
                 "f64",
                 "index"},
                engine);
  case 4:
    return edit(std::move(text), attribute, {"heddle.joined", "transpose_rhs"}, engine);
  case 5:
    return edit(std::move(text), line, {}, engine);
  default: {
    const std::vector<MildEdit> &edits = mildEdits(level);
    return editMildly(std::move(text), edits[engine() % edits.size()], engine);
  }
  }
}

/// One of the kernels of `text` edited, and no other: they take long to compile.
std::string editKernel(const std::string &text, Engine &engine) {
  static const std::regex whole("  func\\.func @");
  static const std::regex word(
      "\"[^\"]*\"|[%@!#]?[A-Za-z_][A-Za-z0-9_.$@]*|-?[0-9]+(\\.[0-9]+)?|[^\\s]");
  static const std::regex line("[^\n]*\n");
  static const std::regex type("(vector|memref)<[^<>]*(<[^>]*>)?>|\\b(bf16|f32|i32|i8|index)\\b");
  auto starts = find(text, whole);
  size_t chosen = engine() % starts.size();
  size_t from = starts[chosen].first;
  size_t to = chosen + 1 < starts.size() ? starts[chosen + 1].first : text.rfind('}');
  std::string kernel = text.substr(from, to - from);
  switch (engine() % 3) {
  case 0:
    kernel = edit(std::move(kernel), word,
                  {"0", "-1", "3", "4294967296", "nan", "arith.remf", "memref.alloc", "math.exp",
                   "arith.divsi", "arith.truncf", "vector.insert", "scf.parallel", "func.call"},
                  engine);
    break;
  case 1:
    kernel = edit(std::move(kernel), type,
                  {"f16", "bf16", "f64", "f80", "i1", "i7", "i64", "i128", "index", "vector<3xf32>",
                   "vector<16xbf16>", "vector<1000000xf32>", "memref<4xf32>", "tensor<4xf32>"},
                  engine);
    break;
  default:
    kernel = edit(std::move(kernel), line, {}, engine);
  }
  // The edited one alone, before a program that launches it no more.
  return kernel + text.substr(text.rfind('}'));
}

//===-- What comes of a text
//--------------------------------------------------------------------===//

/// Ids for every batch that a session does not drive itself.
void giveIds(Session &session, const Model &model) {
  for (const ModelInput &input : model.inputs())
    if (input.kind == ModelInput::Kind::ids && !input.name.empty())
      for (int64_t slot = 0; slot < session.slots(); ++slot)
        (void)session.give(input.name, std::vector<int32_t>(size_t(3 + slot), 1), slot);
}

/// Compiles and runs texts, with a folder of their own for kernels and for what failed passes
/// leave.
class EditedText : public testing::TestWithParam<Level> {
protected:
  static void SetUpTestSuite() { folder.emplace(); }
  static void TearDownTestSuite() { folder.reset(); }

  /// The logits of a prompt of many tokens beside one of few, and of a step.
  Result<std::vector<float>> run(const std::string &text) const {
    auto model =
        compile(ModelSource::fromText(text, "edited"),
                {.decodeTokens = 8, .threads = 2, .cacheFolder = folder->path()}, randomWeights(3));
    if (!model)
      return model.error();
    auto session = model->session({.context = 48, .threads = 2, .slots = 2});
    if (!session)
      return session.error();
    giveIds(*session, *model);
    std::vector<int32_t> ids(19);
    auto words = std::clamp<int32_t>(int32_t(model->info().vocabulary), 1, 32);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = int32_t(i) % words;
    Prompt prompts[] = {{0, ids}, {1, std::span(ids).first(3)}};
    auto logits = session->prefill(prompts, LogitsOf::last);
    if (!logits)
      return logits.error();
    std::vector<float> values(logits->values.begin(), logits->values.end());
    if (!model->info().hasCache)
      return values;
    logits = session->step(std::span(ids).first(2));
    if (!logits)
      return logits.error();
    values.insert(values.end(), logits->values.begin(), logits->values.end());
    return values;
  }

  static inline std::optional<test::ReproducerFolder> folder;
};

/// The user is told what is wrong in one line a mistake, without names from our source.
void expectInWords(const Error &error, const std::string &name, const std::string &text) {
  const std::string &message = error.message;
  EXPECT_NE(error.kind, ErrorKind::internal) << name << ": " << message << "\n" << text;
  EXPECT_FALSE(message.empty()) << name << "\n" << text;
  EXPECT_EQ(message.find("::"), std::string::npos) << name << ": " << message;
  EXPECT_EQ(message.find("int64_t"), std::string::npos) << name << ": " << message;
  std::set<std::string> lines;
  std::istringstream stream(message);
  for (std::string line; std::getline(stream, line);)
    EXPECT_TRUE(lines.insert(line.substr(0, line.find(": "))).second) << name << ": " << message;
}

int64_t setting(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

TEST_P(EditedText, OfTheSameMeaningGivesTheSameLogits) {
  for (const Original &original : originals(GetParam())) {
    auto expected = run(original.editable + original.rest);
    ASSERT_TRUE(expected) << original.name << ": " << expected.error().message;
    std::string text = editMildly(original.editable, mildEdits(GetParam()));
    EXPECT_NE(text, original.editable);
    if (GetParam() == Level::planned)
      text = exchangeSlots(text);
    auto found = run(text + original.rest);
    ASSERT_TRUE(found) << original.name << ": " << found.error().message << "\n" << text;
    EXPECT_EQ(*found, *expected) << original.name << "\n" << text;
  }
}

TEST_P(EditedText, OfAnyKindIsRefusedOrRuns) {
  const std::vector<Original> texts = originals(GetParam(), std::getenv("HEDDLE_EDITS"));
  const char *file = std::getenv("HEDDLE_EDITS_FILE");
  int64_t first = setting("HEDDLE_EDITS_FROM", 0), count = setting("HEDDLE_EDITS", 25);
  int64_t ran = 0, refused = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Engine engine{uint32_t(seed)};
    const Original &original = texts[engine() % texts.size()];
    std::string text = original.editable;
    for (unsigned edits = engine() % 4 ? 1 : 2; edits > 0; --edits)
      text = edit(std::move(text), GetParam(), engine);
    if (file)
      std::ofstream(file) << text << original.rest;
    auto result = run(text + original.rest);
    ++(result ? ran : refused);
    if (result)
      continue;
    expectInWords(result.error(), "seed " + std::to_string(seed) + ", " + original.name, text);
  }
  // What the user did wrong leaves no reproducer.
  for (const auto &entry : std::filesystem::directory_iterator(folder->path()))
    EXPECT_NE(entry.path().extension(), ".mlir") << entry.path();
  // The point is lost where nearly everything is refused, or nothing.
  EXPECT_GT(ran, count / 10);
  EXPECT_GT(refused, count / 10);
  RecordProperty("ran", std::to_string(ran));
  RecordProperty("refused", std::to_string(refused));
}

// LLVM would end the process on what it cannot make code of.
TEST(EditedKernels, OfAnyKindAreRefusedOrBecomeCode) {
  const std::vector<Original> texts = originals(Level::loops, std::getenv("HEDDLE_EDITS"));
  const char *file = std::getenv("HEDDLE_EDITS_FILE");
  int64_t first = setting("HEDDLE_EDITS_FROM", 0), count = setting("HEDDLE_EDITS", 20);
  int64_t compiled = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Engine engine{uint32_t(seed)};
    const Original &original = texts[engine() % texts.size()];
    std::string text = editKernel(original.rest, engine);
    if (file)
      std::ofstream(file) << original.editable << text;
    auto result = show(ModelSource::fromText(original.editable + text, "edited"), Level::assembly,
                       Phase::prefill, {});
    compiled += result ? 1 : 0;
    if (!result)
      expectInWords(result.error(), "seed " + std::to_string(seed) + ", " + original.name, text);
  }
  EXPECT_GT(compiled, count / 50); // one edit of some twenty leaves a kernel that is one
  EXPECT_LT(compiled, count);
}

std::string nameOf(const testing::TestParamInfo<Level> &info) {
  static constexpr const char *names[] = {"graph", "fused", "planned", "loops"};
  return names[size_t(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Levels, EditedText,
                         testing::Values(Level::graph, Level::fused, Level::planned, Level::loops),
                         nameOf);

} // namespace
} // namespace heddle
