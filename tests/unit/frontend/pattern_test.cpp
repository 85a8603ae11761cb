// Expressions in Oniguruma's spelling. What is expected is what Hugging Face's library (0.23)
// finds.
#include "frontend/tokenizers/pattern.h"

#include "tests/unit/frontend/small_stack.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Found {
  std::string error;
  std::vector<std::string> texts = {};
  std::vector<size_t> places = {};
};

Found find(std::string_view expression, std::string_view text) {
  const auto pattern = Pattern::compile(expression);
  if (!pattern)
    return {pattern.error().message};
  TextRanges ranges;
  if (const Status status = PatternSearch(*pattern, text.size()).findAll(text, ranges); !status)
    return {status.error().message};
  Found found;
  for (const TextRange &range : ranges) {
    found.texts.emplace_back(text.substr(range.begin, range.end - range.begin));
    found.places.push_back(range.begin);
  }
  return found;
}

double secondsOf(std::string_view expression, std::string_view text, std::string &error) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  error = find(expression, text).error;
  return now() - start;
}

TEST(Pattern, TakesMarksAndLatinFractionsForPartsOfWords) {
  EXPECT_THAT(find(R"(\b)", "e\u0301x \u0301 9\u0301a_b").places, ElementsAre(0, 4, 5, 7, 8, 14));
  EXPECT_THAT(find(R"(\b)", "0\u00b2\u00bd\u2460\u2167a").places, ElementsAre(0, 5, 8, 12));
  EXPECT_THAT(find(R"(\w)", "0\u00b2\u2460\u2167").texts, ElementsAre("0", "\u00b2", "\u2167"));
  EXPECT_THAT(find(R"([\w])", "0\u00b2\u2460\u2167").texts, ElementsAre("0", "\u2167"));
  EXPECT_THAT(find(R"(\B)", "ab").places, ElementsAre(1));
}

TEST(Pattern, KnowsTheLinesOfATextAndCharactersByNumber) {
  EXPECT_THAT(find("$", "x\r\n y\n").places, ElementsAre(2, 5, 6));
  EXPECT_THAT(find("^", "a\nb\n").places, ElementsAre(0, 2));
  EXPECT_THAT(find(".+", "x\r\n\ny").texts, ElementsAre("x\r", "y"));
  EXPECT_THAT(find(R"(\u0061+)", "baab").texts, ElementsAre("aa"));
}

TEST(Pattern, JoinsClassesInsideClasses) {
  EXPECT_THAT(find(R"( ?[^(\s|[.,!])]+)", "ab(c d.e|f").texts,
              ElementsAre("ab", "c", " d", "e", "f"));
  EXPECT_THAT(find("[a[bc]d]+", "xabcdy").texts, ElementsAre("abcd"));
  EXPECT_THAT(find("[]a]+", "x]a").texts, ElementsAre("]a"));
  EXPECT_THAT(find("[[:digit:]a]+", "x1a").texts, ElementsAre("1a"));
}

TEST(Pattern, IntersectsAndNegatesClassesInsideClasses) {
  EXPECT_THAT(find("[a-z&&[^b]c]", "abcd").texts, ElementsAre("a", "c", "d"));
  // Names that PCRE2 takes, but are no general categories, are looked at ahead.
  EXPECT_THAT(find(R"([\p{lu}\p{N}&&[^x]])", "aA1x").texts, ElementsAre("A", "1"));
  EXPECT_THAT(find(R"([\p{^L}\p{N}&&[^-]])", "a1-.").texts, ElementsAre("1", "."));
  EXPECT_THAT(find(R"([\p{Yi}\p{N}&&[^x]])", "1x\ua000").texts, ElementsAre("1", "\ua000"));
  // A class within a class, since no name stands between the colons.
  EXPECT_THAT(find("[a[:]]", "a:b").texts, ElementsAre("a", ":"));
  EXPECT_THAT(find("[[:,;]x]y:]", "xy:]").texts, ElementsAre("xy:]"));
  EXPECT_THAT(find("[^a-d&&b-z]", "abcdez1").texts, ElementsAre("a", "e", "z", "1"));
  EXPECT_THAT(find("[a-c&&[b-d]&&[^c]]+", "abcd").texts, ElementsAre("b"));
  EXPECT_THAT(find("[a[^b-z]]+", "abz1").texts, ElementsAre("a", "1"));
  EXPECT_THAT(find("[^a[^b]]", "abc").texts, ElementsAre("b"));
  EXPECT_THAT(find(R"([\W_]+)", "a_e\u0301.").texts, ElementsAre("_", "."));
  EXPECT_THAT(find("(?<=[a-z&&[^b]])x", "ax bx").places, ElementsAre(1));
  EXPECT_THAT(find("[a-z&&[^b]]++c", "aacc").texts, ElementsAre());
  EXPECT_THAT(find("(?i)[a-z&&[^b]]+", "ABc").texts, ElementsAre("A", "c"));
  EXPECT_THAT(find("[[ab]-d^]", "abcd-^").texts, ElementsAre("a", "b", "d", "-", "^"));
  EXPECT_THAT(find("[+--]", "+,-.").texts, ElementsAre("+", ",", "-"));
  // As in Kimi's division: letters but those of one script.
  EXPECT_THAT(find(R"([\p{Lu}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)", "A\u0e01\u4e2d\u30fcb").texts,
              ElementsAre("A\u0e01", "\u30fc"));
  EXPECT_THAT(find(R"([\p{L}&&[^\p{Han}]]{2}+)", "ab\u4e2dcde").texts, ElementsAre("ab", "cd"));
}

/// As classes, of which a run takes no memory.
TEST(Pattern, IntersectsClassesOfLongRuns) {
  const std::string run(8 << 20, 'a');
  for (const char *expression : {R"([\p{Lu}\p{Ll}&&[^\p{Han}]]+)", R"([\S&&[^b]]+)"})
    EXPECT_TRUE(find(expression, run).texts == std::vector{run}) << expression;
}

TEST(Pattern, RepeatsWhatHasACount) {
  EXPECT_THAT(find(R"(\p{N}{1,3}+)", "12345 1").texts, ElementsAre("12345", "1"));
  EXPECT_THAT(find("(a|b){1,2}+c", "abababc").texts, ElementsAre("abababc"));
  EXPECT_THAT(find("\u00e9{2}+", "a\u00e9\u00e9\u00e9").texts, ElementsAre("\u00e9\u00e9"));
  EXPECT_THAT(find(R"(\x{e9}{2}+|\x61{2}+)", "\u00e9\u00e9\u00e9\u00e9aaaa").texts,
              ElementsAre("\u00e9\u00e9\u00e9\u00e9", "aaaa"));
  EXPECT_THAT(find(R"((?<n>a|b)\k<n>{2}+)", "aaaaab").texts, ElementsAre("aaaaa"));
  EXPECT_THAT(find("a{2}?", "aaaaa").texts, ElementsAre("aa", "aa", ""));
  EXPECT_THAT(find("a{2,}?", "aaaaa").texts, ElementsAre("aa", "aa"));
  EXPECT_THAT(find("a{,2}b", "aaab a{,2}b").texts, ElementsAre("aab", "b"));
  EXPECT_THAT(find("a{x}", "a{x}").texts, ElementsAre("a{x}"));
}

TEST(Pattern, KnowsOptionsAndEscapesOfItsDialect) {
  EXPECT_THAT(find("(?m:a.b)", "a\nb").texts, ElementsAre("a\nb"));
  EXPECT_THAT(find("(?i)a(?-i)b", "Ab AB").texts, ElementsAre("Ab"));
  EXPECT_THAT(find("x(?i)a|b", "xA xb B").texts, ElementsAre("xA", "xb"));
  EXPECT_THAT(find("(?:x(?i)a|b)+c|C", "xabc XC").texts, ElementsAre("C"));
  EXPECT_THAT(find("[[:alpha:]]+", "a\u0903\u24d0 1").texts, ElementsAre("a\u0903\u24d0"));
  EXPECT_THAT(find("[[:^alpha:]b]+", "a\u09031b").texts, ElementsAre("1b"));
  EXPECT_THAT(find("[.a.]+", ".a,").texts, ElementsAre(".a"));
  EXPECT_THAT(find(R"(\v)", "a\vb\n\f").places, ElementsAre(1));
  EXPECT_THAT(find("(?#[)a", "a").texts, ElementsAre("a"));
}

TEST(Pattern, RefusesWhatOnlyOneOfTheDialectsHas) {
  const std::pair<const char *, const char *> wrong[] = {
      {"[a-[cd]]", "a range that ends with a set"},
      {R"([a-\d])", "a range that ends with a set"},
      {"[&&a]", "an intersection with nothing"},
      {"[a&&]", "an intersection with nothing"},
      {"[a&&[b]", "a class without an end"},
      {R"(\xc3\xa9)", R"(\xc3, a byte that is no character)"},
      {R"(\Qa\E)", R"(\Q)"},
      {R"(\pL)", R"(\p without a name in braces)"},
      {"(?x: a )", "the option x"},
      {"(*LIMIT_MATCH=1)a", "a verb or callout"},
      {"a(?C1)", "a verb or callout"},
      {"(*ACCEPT)", "a verb or callout"}};
  for (const auto &[expression, what] : wrong)
    EXPECT_THAT(find(expression, "a").error, HasSubstr(std::string("it has ") + what))
        << expression;
  EXPECT_THAT(find(std::string(65537, 'a'), "a").error,
              HasSubstr("an expression of 65537 bytes, expected at most 65536"));
  EXPECT_THAT(find(std::string(60000, '['), "a").error, HasSubstr("classes in more than 20"));
}

TEST(Pattern, LooksAheadOverRuns) {
  EXPECT_THAT(find(R"((?=(\d{3})+(?!\d)))", "a1234567 12 345").places, ElementsAre(2, 5, 12));
  EXPECT_THAT(find(R"(\d{1,3}(?=(?:\d{3})*\b))", "1234567 12").texts,
              ElementsAre("1", "234", "567", "12"));
  EXPECT_THAT(find(R"(\d{1,3}(?=(?:\d{3})*\b))", "337040\u00b2 1").texts, ElementsAre("1"));
  EXPECT_THAT(find(R"((?=([0-9]{3})+(?![0-9])))", "1234").places, ElementsAre(1));
  // Options change what is a unit, in the group that they stand in.
  EXPECT_THAT(find(R"((?i)x(?=([a-z])+\b))", "xAB").places, ElementsAre(0));
  EXPECT_THAT(find(R"((?:(?i)x)(?=([a-z])+\b))", "XAB Xab").places, ElementsAre(4));
}

/// Said twice, once so that it is looked at place by place.
TEST(Pattern, LooksAheadOverRunsAsPlaceByPlace) {
  const std::pair<const char *, const char *> twins[] = {
      {R"((?=(\d{3})+(?!\d)))", R"((?=(\d{3})+?(?!\d)))"},
      {R"(\d{1,3}(?=(?:\d{3})*\b))", R"(\d{1,3}(?=(?:\d{3})*?\b))"},
      {R"(\p{N}{1,2}(?=(\p{N}{2})*(?!a)))", R"(\p{N}{1,2}(?=(\p{N}{2})*?(?!a)))"},
      {R"([ab](?=(?:[ab])+\b))", R"([ab](?=(?:[ab])+?\b))"}};
  uint32_t state = 1;
  const auto draw = [&](uint32_t most) {
    return (state = state * 1664525 + 1013904223) / 65536 % most;
  };
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (uint32_t i = draw(24); i > 0; --i)
      text += std::array{"1", "2", "3", "a", "b", " ", "\u0661", "\u0301", "\u00b2", "1"}[draw(10)];
    for (const auto &[quick, slow] : twins) {
      EXPECT_EQ(find(quick, text).places, find(slow, text).places) << quick << " in " << text;
      EXPECT_EQ(find(quick, text).texts, find(slow, text).texts) << quick << " in " << text;
    }
  }
}

TEST(Pattern, AnswersOrRefusesWithinASecond) {
  const std::string digits(1 << 20, '1'), spaces = std::string(1 << 20, ' ') + "a";
  std::string error;
  for (const char *expression :
       {R"((?=(\d{3})+(?!\d)))", R"(\p{N}{1,3}(?=(?:\p{N}{3})*\b))", R"(\d{1,3}(?=(?:\d{3})*\b))",
        R"((?i:a)|\d{1,3}(?=(?:\d{3})*\b))"}) {
    EXPECT_LT(secondsOf(expression, digits, error), test::mostSeconds) << expression;
    EXPECT_EQ(error, "");
  }
  EXPECT_LT(secondsOf(R"(\s+$)", spaces, error), test::mostSeconds);
  EXPECT_EQ(error, "");
  EXPECT_THAT(find(R"(\s+$)", "a   \n\n b  \n  c   ").places, ElementsAre(1, 8, 14));
  for (const auto &[expression, text] : {std::pair(R"(\d(?=\d*x))", digits),
                                         {R"(\s+(?:$))", spaces},
                                         {R"((?:\d+)+[xy])", digits},
                                         {R"(\d(?=(?:\d{999})*\b))", digits}}) {
    EXPECT_LT(secondsOf(expression, text, error), test::mostSeconds) << expression;
    EXPECT_THAT(error,
                testing::AllOf(HasSubstr(expression), HasSubstr("cannot be matched at byte")));
  }
}

} // namespace
} // namespace heddle
