#include "frontend/tokenizers/pattern.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/pattern_dialect.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <limits>

namespace heddle {

namespace {

constexpr uint32_t mostHeapKilobytes = 512 * 1024;
constexpr uint32_t ownCallout = 255; ///< before each item, where all work is counted

struct Freer {
  void operator()(pcre2_code *code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context *context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context *context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
};
using CompiledCode = std::unique_ptr<pcre2_code, Freer>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer>;

PCRE2_SPTR bytesOf(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string messageOf(int error) {
  std::array<PCRE2_UCHAR, 200> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char *>(text.data());
}

/// Oniguruma's lines end with a line feed, and `^` and `$` stand at every line.
CompiledCode compiled(std::string_view expression, uint32_t more, int &error, size_t &offset) {
  const std::unique_ptr<pcre2_compile_context, Freer> context(
      pcre2_compile_context_create(nullptr));
  if (context)
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  return CompiledCode(
      pcre2_compile(bytesOf(expression), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | more,
                    &error, &offset, context.get()));
}

} // namespace

struct Pattern::Code {
  CompiledCode expression;
  /// For each look-ahead over a run: group 1 where the run's end is, group 2 behind another unit.
  std::vector<CompiledCode> runsAhead;
  std::vector<RunAhead> runs;
};

namespace {

/// What is left of the work that a search may do.
class Work {
public:
  explicit Work(size_t bytes) : left((size_t{1} << 24) + 16 * bytes) {}

  /// Whether there was as much left.
  bool spend(size_t work) {
    const bool enough = work <= left;
    left -= enough ? work : left;
    return enough;
  }

private:
  size_t left;
};

/// Whether a look-ahead over a run holds at the places of a text. Each place is looked at once, so
/// that looking from all of them costs as much as from the first.
class RunLook {
public:
  RunLook(const pcre2_code *code, const RunAhead &run, std::string_view text)
      : code(code), needsUnit(run.needsUnit), cost(4 + run.length), text(text),
        known(text.size() + 1, Known::nothing),
        data(pcre2_match_data_create_from_pattern(code, nullptr)) {}

  bool holds(size_t at, Work &work) {
    if (!needsUnit)
      return endsAhead(at, work);
    const Here here = look(at, work);
    return here.next != none && endsAhead(here.next, work);
  }

private:
  enum class Known : char { nothing, no, yes };
  static constexpr size_t none = ~size_t{0};
  struct Here {
    bool isEnd = false;
    size_t next = none; ///< behind a unit
  };

  Here look(size_t at, Work &work) {
    Here here;
    if (!data || !work.spend(cost) ||
        pcre2_match(code, bytesOf(text), text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED,
                    data.get(), nullptr) < 0)
      return here;
    const PCRE2_SIZE *groups = pcre2_get_ovector_pointer(data.get());
    here.isEnd = groups[2] != PCRE2_UNSET;
    if (groups[4] != PCRE2_UNSET && groups[4] > at)
      here.next = groups[4];
    return here;
  }

  /// Whether the end follows after any number of units.
  bool endsAhead(size_t at, Work &work) {
    std::vector<size_t> places;
    while (known[at] == Known::nothing) {
      places.push_back(at);
      const Here here = look(at, work);
      if (here.isEnd || here.next == none)
        known[at] = here.isEnd ? Known::yes : Known::no;
      else
        at = here.next;
    }
    for (const size_t place : places)
      known[place] = known[at];
    return known[at] == Known::yes;
  }

  const pcre2_code *code;
  bool needsUnit;
  size_t cost; ///< of a look
  std::string_view text;
  std::vector<Known> known;
  MatchData data;
};

/// What a callout knows.
struct Progress {
  Work work;
  std::vector<RunLook> looks = {};
  size_t last = 0;
};

/// Counts the work; at a look-ahead over a run, says whether it fails (1).
int onCallout(pcre2_callout_block *block, void *data) {
  Progress &progress = *static_cast<Progress *>(data);
  const size_t at = block->current_position;
  const size_t walked = at > progress.last ? at - progress.last : progress.last - at;
  progress.last = at;
  if (!progress.work.spend(1 + walked))
    return PCRE2_ERROR_MATCHLIMIT;
  const uint32_t number = block->callout_number;
  if (number == ownCallout)
    return 0;
  return progress.looks[number - 1].holds(at, progress.work) ? 0 : 1;
}

} // namespace

Result<Pattern> Pattern::compile(std::string_view expression) {
  constexpr size_t longest = 1 << 16; // some twenty times what any published one has
  if (expression.size() > longest)
    return dataError(
        fmt::format("an expression of {} bytes, expected at most {}", expression.size(), longest));
  const auto dialect = translateExpression(expression);
  if (!dialect)
    return dialect.error();
  int error = 0;
  size_t offset = 0;
  const auto code = std::make_shared<Code>();
  // PCRE2 would not see that what stands before a callout may have to give characters back.
  const uint32_t gives = dialect->runsAhead.empty() ? 0 : PCRE2_NO_AUTO_POSSESS;
  code->expression = compiled(dialect->expression, PCRE2_AUTO_CALLOUT | gives, error, offset);
  code->runs = dialect->runsAhead;
  for (const RunAhead &run : code->runs) {
    if (!code->expression)
      break;
    const std::string look = fmt::format("(?=(?:{}())?+)(?:{}())?+", run.end, run.unit);
    code->runsAhead.push_back(compiled(look, 0, error, offset));
    if (!code->runsAhead.back())
      code->expression.reset();
  }
  if (!code->expression)
    return dataError(fmt::format("the expression {} is not understood: {} (at {})",
                                 inQuotes(expression), messageOf(error), offset));
  Pattern pattern;
  pattern.source = expression;
  pattern.code = code;
  return pattern;
}

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.source = std::move(text);
  return pattern;
}

struct PatternSearch::State {
  Pattern pattern;
  Progress progress;
  std::unique_ptr<pcre2_match_context, Freer> context = nullptr;
  MatchData data = nullptr;
};

PatternSearch::PatternSearch(const Pattern &pattern, size_t bytes)
    : state(new State{pattern, {Work(bytes)}}) {
  if (!pattern.code)
    return;
  state->context.reset(pcre2_match_context_create(nullptr));
  state->data.reset(pcre2_match_data_create_from_pattern(pattern.code->expression.get(), nullptr));
  if (!state->context)
    return;
  pcre2_set_heap_limit(state->context.get(), mostHeapKilobytes);
  pcre2_set_match_limit(state->context.get(), std::numeric_limits<uint32_t>::max()); // we count
  pcre2_set_callout(state->context.get(), onCallout, &state->progress);
}

PatternSearch::~PatternSearch() = default;

static void findLiteral(std::string_view text, std::string_view literal, TextRanges &found) {
  for (size_t at = 0; !literal.empty() && (at = text.find(literal, at)) != std::string_view::npos;
       at += literal.size())
    found.push_back({at, at + literal.size()});
}

Status PatternSearch::findAll(std::string_view text, TextRanges &found) {
  const Pattern &pattern = state->pattern;
  found.clear();
  if (!pattern.code) {
    findLiteral(text, pattern.source, found);
    return {};
  }
  if (!state->context || !state->data)
    return dataError("out of memory");
  Progress &progress = state->progress;
  progress.last = 0;
  progress.looks.clear();
  for (size_t i = 0; i < pattern.code->runsAhead.size(); ++i)
    progress.looks.emplace_back(pattern.code->runsAhead[i].get(), pattern.code->runs[i], text);
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const int count = pcre2_match(pattern.code->expression.get(), bytesOf(text), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, state->data.get(), state->context.get());
    if (count == PCRE2_ERROR_NOMATCH)
      break;
    if (count < 0)
      return dataError(fmt::format("the expression {} cannot be matched at byte {} of the text: {}",
                                   inQuotes(pattern.source), at,
                                   count == PCRE2_ERROR_MATCHLIMIT ? "it takes too many steps"
                                                                   : messageOf(count)));
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(state->data.get());
    const size_t begin = range[0], end = range[1];
    // An expression that looks ahead finds places. The end of a match is not another one.
    const bool isEmpty = begin >= end;
    if (begin >= at && !(isEmpty && !found.empty() && begin == found.back().end))
      found.push_back({begin, std::max(begin, end)});
    const size_t next = std::max(at, end);
    if (isEmpty && next >= text.size())
      break;
    at = isEmpty ? next + characterLength(text.substr(next)) : next;
  }
  return {};
}

} // namespace heddle
