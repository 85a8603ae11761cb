// Choices by measurement: the table as text and back, and what the two programs make of it.
#include "frontend/choice_table.h"
#include "frontend/explain.h"
#include "frontend/model.h"
#include "frontend/models/llama.h"
#include "frontend/weights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace heddle;
using testing::HasSubstr;
using testing::Not;

namespace {

Graph small() { return llama({.width = 16, .layers = 2, .heads = 2, .hidden = 24, .words = 32}); }

/// Every fusion of `small` that has a shape, declined in the arms that are said.
std::shared_ptr<const ChoiceTable> declineAll(bool few, bool many) {
  auto table = std::make_shared<ChoiceTable>();
  auto explanation = explain(small(), {.isa = "avx2"});
  for (const FusionEvent &event : explanation->events)
    if (event.fired && !event.shape.empty())
      table->set({.isa = "avx2",
                  .fusion = event.fusion,
                  .shape = event.shape,
                  .fewFused = !few,
                  .manyFused = !many,
                  .measured = {{1, 20, 10}, {64, 2000, 1000}}});
  return table;
}

TEST(Choices, areReadAsTheyWereWritten) {
  auto table = declineAll(true, false);
  ASSERT_GE(table->choices().size(), 4u);
  auto back = ChoiceTable::read(table->text(), "t");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->text(), table->text());
  EXPECT_FALSE(back->choices().front().fewFused);
  EXPECT_TRUE(back->choices().front().manyFused);
}

TEST(Choices, replaceWhatIsKnown) {
  ChoiceTable table;
  table.set({.isa = "b", .fusion = "f", .shape = "s", .measured = {}});
  table.set({.isa = "a", .fusion = "f", .shape = "s", .measured = {}});
  table.set({.isa = "b", .fusion = "f", .shape = "s", .fewFused = false, .measured = {}});
  ASSERT_EQ(table.choices().size(), 2u);
  EXPECT_EQ(table.choices()[0].isa, "a");
  EXPECT_FALSE(table.choices()[1].fewFused);
}

TEST(Choices, aDamagedTableIsRefusedWithItsPlace) {
  auto refusal = [](std::string_view text) {
    auto table = ChoiceTable::read(text, "t.json");
    return table ? "" : table.error().message;
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("t.json: is no table of choices"));
  EXPECT_THAT(refusal("{"), HasSubstr("t.json"));
  EXPECT_THAT(refusal(R"({"choices": [7]})"), HasSubstr("choices[0]: needs an object"));
  EXPECT_THAT(refusal(R"({"choices": [{"isa": "avx2"}]})"),
              HasSubstr("needs isa, fusion and shape"));
  EXPECT_THAT(refusal(R"({"choices": [{"isa": "avx2", "bound": 8, "fusion": "f", "shape": "s",
                          "measured": [{"tokens": 1, "fused_us": -1, "unfused_us": 2}]}]})"),
              HasSubstr("choices[0].measured.fused_us: needs a positive number"));
  EXPECT_THAT(refusal(R"({"choices": [{"isa": "avx2", "bound": 8, "fusion": "f", "shape": "s",
                          "threads": 2}]})"),
              HasSubstr("choices[0].threads: is unknown"));
  for (const char *bound : {R"("x")", "8.5", "[8]", "true"})
    EXPECT_THAT(refusal(fmt::format(R"({{"choices": [{{"isa": "avx2", "bound": {},
                                    "fusion": "f", "shape": "s"}}]}})",
                                    bound)),
                HasSubstr("choices[0].bound: needs a whole number"));
}

TEST(Choices, ofAnotherHeddleAreLeftOut) {
  auto leftOut = [](std::string_view entry) {
    std::string text = declineAll(true, true)->text();
    text.insert(text.find('[') + 1, fmt::format("{{{}, \"shape\": \"s\"}},", entry));
    auto table = ChoiceTable::read(text, "t.json");
    EXPECT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->choices().size(), declineAll(true, true)->choices().size());
    return table->leftOut();
  };
  EXPECT_THAT(
      leftOut(R"("isa": "avx512", "fusion": "fuse-attention", "bound": 8)"),
      HasSubstr("t.json: choices[0].bound: is 8, where this heddle's for avx512 is 32; this "
                "entry is not used, `heddle machine --tune` measures anew and writes the table "
                "without it"));
  EXPECT_THAT(leftOut(R"("isa": "avx2", "fusion": "fuse-attention")"),
              HasSubstr("choices[0].bound: is missing: it is 8 for avx2"));
  EXPECT_THAT(leftOut(R"("isa": "avx3", "fusion": "fuse-attention", "bound": 8)"),
              HasSubstr("choices[0].isa: 'avx3' is unknown"));
  EXPECT_THAT(leftOut(R"("isa": "avx2", "fusion": "fuse-all", "bound": 8)"),
              HasSubstr("choices[0].fusion: 'fuse-all' is unknown"));
  auto whole = ChoiceTable::read(declineAll(true, true)->text(), "t.json");
  EXPECT_EQ(whole->leftOut(), "");
}

TEST(Choices, holdForOneProgram) {
  auto at = [](Phase phase, bool few, bool many) {
    return *show(small(), Level::fused, phase, {.isa = "avx2", .plan = declineAll(few, many)});
  };
  EXPECT_THAT(at(Phase::prefill, false, true), HasSubstr("heddle.softmax"));
  EXPECT_THAT(at(Phase::prefill, false, true),
              HasSubstr("64 tokens take 2 ms fused, 1 ms unfused"));
  EXPECT_THAT(at(Phase::decode, false, true), Not(HasSubstr("heddle.softmax")));
  EXPECT_THAT(at(Phase::decode, true, false),
              HasSubstr("1 token takes 20 us fused, 10 us unfused"));
  EXPECT_THAT(at(Phase::prefill, true, false), Not(HasSubstr("heddle.declined")));
}

TEST(Choices, changeNoResult) {
  std::vector<int32_t> ids(20);
  std::iota(ids.begin(), ids.end(), 1);
  auto run = [&](std::shared_ptr<const ChoiceTable> plan) {
    auto model = compile(small(), {.isa = "avx2", .plan = std::move(plan)}, randomWeights());
    auto session = model->session({.context = 32});
    std::vector<float> values;
    auto add = [&](const Result<Logits> &logits) {
      values.insert(values.end(), logits->values.begin(), logits->values.end());
    };
    add(session->prefill(ids, LogitsOf::all));
    add(session->step(3));
    return values;
  };
  std::vector<float> expected = run(nullptr);
  EXPECT_EQ(expected.size(), 21u * 32);
  for (auto [few, many] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)})
    EXPECT_EQ(run(declineAll(few, many)), expected) << few << many;
}

TEST(Choices, explainTellsBothPrograms) {
  auto explanation = explain(small(), {.isa = "avx2", .plan = declineAll(true, true)});
  int few = 0, many = 0;
  for (const FusionEvent &event : explanation->events) {
    few += event.declined == "of up to 8 tokens: 1 token takes 20 us fused, 10 us unfused";
    many += event.declined == "of more than 8 tokens: 64 tokens take 2 ms fused, 1 ms unfused";
  }
  EXPECT_EQ(few, many);
  EXPECT_GE(few, 8);
}

} // namespace
