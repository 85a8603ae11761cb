// The table of choices as text and back.
#include "frontend/choice_table.h"

#include "frontend/explain.h"
#include "frontend/formats/json_reader.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <tuple>

namespace heddle {

//===-- The table
//-----------------------------------------------------------------------------------===//

static auto keyOf(const Choice &choice) {
  return std::tie(choice.isa, choice.fusion, choice.shape);
}

void ChoiceTable::set(Choice choice) {
  auto place = std::ranges::lower_bound(all, keyOf(choice), {}, keyOf);
  if (place != all.end() && keyOf(*place) == keyOf(choice))
    *place = std::move(choice);
  else
    all.insert(place, std::move(choice));
}

static std::string timeText(double microseconds) {
  return microseconds < 1000 ? fmt::format("{:.3g} us", microseconds)
                             : fmt::format("{:.3g} ms", microseconds / 1000);
}

bool Choice::isFew(int64_t tokens) const { return tokens <= ChoiceTable::bound(isa); }

std::string whyUnfused(const Choice &choice, bool few) {
  const Choice::Sample *clearest = nullptr;
  auto ratio = [](const Choice::Sample &sample) { return sample.fused / sample.unfused; };
  for (const Choice::Sample &sample : choice.measured)
    if (choice.isFew(sample.tokens) == few && (!clearest || ratio(sample) > ratio(*clearest)))
      clearest = &sample;
  if (!clearest)
    return "the table says so";
  return fmt::format("{} token{} take{} {} fused, {} unfused", clearest->tokens,
                     clearest->tokens == 1 ? "" : "s", clearest->tokens == 1 ? "s" : "",
                     timeText(clearest->fused), timeText(clearest->unfused));
}

//===-- Writing
//-------------------------------------------------------------------------------------===//

static std::string textOf(const Choice &choice) {
  auto quoted = [](const std::string &text) { return JsonValue(text).dump(); };
  auto arm = [](bool fused) { return fused ? "\"fused\"" : "\"unfused\""; };
  std::vector<std::string> samples;
  for (const Choice::Sample &sample : choice.measured)
    samples.push_back(
        fmt::format("{{\"tokens\": {}, \"fused_us\": {:.3f}, \"unfused_us\": {:.3f}}}",
                    sample.tokens, sample.fused, sample.unfused));
  return fmt::format("    {{\"isa\": {}, \"fusion\": {}, \"shape\": {},\n"
                     "     \"bound\": {}, \"few\": {}, \"many\": {}, \"measured\": [\n"
                     "       {}]}}",
                     quoted(choice.isa), quoted(choice.fusion), quoted(choice.shape),
                     ChoiceTable::bound(choice.isa), arm(choice.fewFused), arm(choice.manyFused),
                     fmt::join(samples, ",\n       "));
}

std::string ChoiceTable::text() const {
  std::vector<std::string> entries;
  for (const Choice &choice : all)
    entries.push_back(textOf(choice));
  return fmt::format("{{\n  \"choices\": [\n{}\n  ]\n}}\n", fmt::join(entries, ",\n"));
}

//===-- Reading
//-------------------------------------------------------------------------------------===//

namespace {

/// Takes a table apart; the first thing that is wrong stays in `wrong`.
class Reader {
public:
  std::string wrong;
  /// Why the entry that was read last holds for another heddle; empty where it does not.
  std::string outdated;

  Choice choice(const JsonValue &entry, size_t index) {
    place = fmt::format("choices[{}]", index);
    outdated.clear();
    Choice choice;
    if (!isObject(entry))
      return choice;
    JsonValue bound;
    for (const auto &[key, value] : entry.items()) {
      std::string *text = key == "isa"      ? &choice.isa
                          : key == "fusion" ? &choice.fusion
                          : key == "shape"  ? &choice.shape
                                            : nullptr;
      if (text)
        *text = string(key, value);
      else if (key == "bound")
        bound = value;
      else if (key == "few")
        choice.fewFused = arm(key, value);
      else if (key == "many")
        choice.manyFused = arm(key, value);
      else if (key == "measured")
        choice.measured = samples(value);
      else
        note(key, "is unknown");
    }
    if (choice.isa.empty() || choice.fusion.empty() || choice.shape.empty())
      note("", "needs isa, fusion and shape");
    else if (!bound.is_null() && !bound.is_number_integer())
      note("bound", "needs a whole number");
    else
      compare(choice, bound);
    return choice;
  }

private:
  /// A later or earlier heddle may know other instructions and fusions, and take other calls for
  /// those of few tokens.
  void compare(const Choice &choice, const JsonValue &bound) {
    if (const int64_t ours = ChoiceTable::bound(choice.isa); ours == 0)
      outdated =
          at("isa", fmt::format("'{}' is unknown, `heddle show --help` has the names", choice.isa));
    else if (bound.is_null())
      outdated = at("bound", fmt::format("is missing: it is {} for {}", ours, choice.isa));
    else if (bound != ours)
      outdated = at("bound", fmt::format("is {}, where this heddle's for {} is {}", bound.dump(),
                                         choice.isa, ours));
    else if (std::ranges::find(fusions, choice.fusion, &CatalogEntry::name) == fusions.end())
      outdated = at("fusion", fmt::format("'{}' is unknown, `heddle list passes` has the names",
                                          choice.fusion));
  }
  std::string at(std::string_view key, std::string_view what) const {
    return fmt::format("{}{}{}: {}", place, key.empty() ? "" : ".", key, what);
  }
  void note(std::string_view key, std::string_view what) {
    if (wrong.empty())
      wrong = at(key, what);
  }
  bool isObject(const JsonValue &value) {
    if (!value.is_object())
      note("", "needs an object");
    return value.is_object();
  }
  std::string string(const std::string &key, const JsonValue &value) {
    if (value.is_string())
      return value.get<std::string>();
    note(key, "needs a text");
    return "";
  }
  bool arm(const std::string &key, const JsonValue &value) {
    std::string name = string(key, value);
    if (name != "fused" && name != "unfused")
      note(key, "is fused or unfused");
    return name != "unfused";
  }
  std::vector<Choice::Sample> samples(const JsonValue &list) {
    std::vector<Choice::Sample> samples;
    if (!list.is_array())
      note("measured", "needs a list");
    else
      for (const JsonValue &sample : list)
        if (isObject(sample))
          samples.push_back({.tokens = static_cast<int64_t>(number(sample, "tokens")),
                             .fused = number(sample, "fused_us"),
                             .unfused = number(sample, "unfused_us")});
    return samples;
  }
  double number(const JsonValue &sample, const char *key) {
    auto member = sample.find(key);
    double value = member != sample.end() && member->is_number() ? member->get<double>() : 0;
    if (!(value > 0 && value < 1e15))
      note(std::string("measured.") + key, "needs a positive number");
    return value > 0 && value < 1e15 ? value : 1;
  }

  std::string place;
  const std::vector<CatalogEntry> fusions = listFusions();
};

} // namespace

static bool hasChoices(const JsonValue &json) {
  return json.is_object() && json.contains("choices");
}

bool ChoiceTable::isMeantBy(std::string_view text) {
  auto json = parseJson(text, "");
  return json && hasChoices(*json);
}

Result<ChoiceTable> ChoiceTable::read(std::string_view text, const std::string &name) {
  auto json = parseJson(text, name);
  if (!json)
    return json.error();
  auto refuse = [&](const std::string &what) {
    return dataError(
        fmt::format("{}: {}; `heddle machine --tune` writes such a table", name, what));
  };
  if (!hasChoices(*json) || !(*json)["choices"].is_array())
    return refuse("is no table of choices: it needs choices");
  ChoiceTable table;
  table.origin = name;
  Reader reader;
  std::string first;
  int64_t count = 0;
  for (size_t i = 0; i < (*json)["choices"].size(); ++i) {
    Choice choice = reader.choice((*json)["choices"][i], i);
    if (reader.outdated.empty())
      table.set(std::move(choice));
    else if (count++ == 0)
      first = reader.outdated;
  }
  if (!reader.wrong.empty())
    return refuse(reader.wrong);
  if (count > 0)
    table.outdated = fmt::format(
        "{}: {}; {} not used, `heddle machine --tune` measures anew and writes the "
        "table without {}",
        name, first, count == 1 ? "this entry is" : fmt::format("{} entries are", count),
        count == 1 ? "it" : "them");
  return table;
}

} // namespace heddle
