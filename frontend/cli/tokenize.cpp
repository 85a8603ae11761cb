// heddle tokenize: the ids of a text.
#include "frontend/cli/options.h"
#include "frontend/tokenizers/utf8.h"

#include "fmt/format.h"

namespace heddle::command {

namespace {

/// What is known of each token, for --json.
Json describe(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  std::vector<Json> numbers, spellings;
  for (const int32_t id : ids) {
    numbers.emplace_back(id);
    spellings.emplace_back(replaceInvalidUtf8(tokenizer.spelling(id)));
  }
  return Json::object({{"ids", Json::array(numbers)}, {"tokens", Json::array(spellings)}});
}

std::string listed(const std::vector<int32_t> &ids) {
  std::string line;
  for (const int32_t id : ids)
    line += (line.empty() ? "" : ",") + std::to_string(id);
  return line + "\n";
}

} // namespace

int tokenize(const Invocation &invocation) {
  Parser parser(invocation,
                "Prints the token ids of a text, without the marks that begin and end texts.");
  std::string model, text, tokenizerPath, json;
  bool withBos = false, plain = false;
  CLI::App &app = parser.app();
  if (!invocation.graph)
    app.add_option("MODEL", model,
                   "a checkpoint, its folder, or a tokenizer (.gguf, .json, .model, .bin)")
        ->type_name("FILE")
        ->required();
  app.add_option("TEXT", text, "the text (- is standard input)")->required();
  app.add_flag("--bos", withBos, "begin with the mark that begins texts");
  app.add_flag("--plain", plain, "marks spelled in the text are text like any other");
  auto *other = app.add_option("--tokenizer", tokenizerPath, "the tokenizer; found beside MODEL");
  other->type_name("FILE");
  if (invocation.graph)
    other->required();
  parser.reads(model);
  parser.reads(tokenizerPath);
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;

  auto tokenizer = tokenizerPath.empty() ? tokenizerOf(model) : openTokenizer(tokenizerPath);
  if (!tokenizer)
    return fail(tokenizer.error());
  if (text == "-") {
    auto read = readText("-");
    if (!read)
      return fail(read.error());
    text = std::move(*read);
  }
  if (withBos && (*tokenizer)->bos() == TextMarks::none)
    return fail(dataError("--bos: the tokenizer has no mark that begins a text"));
  auto ids = (*tokenizer)->encode(text, withBos, plain ? MarkSpelling::text : MarkSpelling::mark);
  if (!ids)
    return fail(ids.error());
  Status printed = report(listed(*ids), describe(**tokenizer, *ids), json);
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
