#include "frontend/tokenizers/hf_tokenizer.h"

#include "frontend/tokenizers/json_fields.h"
#include "runtime/mapped_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace heddle {

static std::string contentsOf(const std::filesystem::path &path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return "";
  const auto file = runtime::MappedFile::open(path.string());
  if (!file)
    return "";
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

TokenizerFolder readTokenizerFolder(const std::string &folder) {
  const std::filesystem::path path(folder);
  return {.tokenizerConfig = contentsOf(path / "tokenizer_config.json"),
          .generationConfig = contentsOf(path / "generation_config.json"),
          .chatTemplate = contentsOf(path / "chat_template.jinja")};
}

/// A mark's spelling: a text, or an object with its `content`.
static std::string spellingOf(JsonErrors &errors, JsonFields &fields, const char *key) {
  const JsonValue *value = fields.find(key);
  if (!value)
    return "";
  return value->is_object() ? JsonFields(errors, *value, fields.pathOf(key)).text("content")
                            : fields.text(key);
}

/// A template, or several with names, of which one is the default.
static std::string chatTemplateOf(JsonErrors &errors, JsonFields &fields) {
  const JsonValue *value = fields.find("chat_template");
  if (!value || !value->is_array())
    return value ? fields.text("chat_template") : "";
  std::string usual;
  for (const JsonValue &member : *value) {
    JsonFields one(errors, member, fields.pathOf("chat_template"));
    if (one.text("name") == "default")
      usual = one.text("template");
  }
  return usual;
}

static void readTokenizerConfig(JsonErrors &errors, const JsonValue &config,
                                const std::function<int32_t(std::string_view)> &idOf,
                                TextMarks &marks) {
  JsonFields fields(errors, config, "");
  for (auto [key, mark] : {std::pair("bos_token", &marks.bos), std::pair("eos_token", &marks.eos)})
    if (const std::string spelling = spellingOf(errors, fields, key); !spelling.empty()) {
      *mark = idOf(spelling);
      if (*mark == TextMarks::none)
        fields.wrong(key, "is " + shown(spelling) + ", expected a token of the vocabulary");
    }
  if (fields.find("add_bos_token"))
    marks.addsBos = fields.flag("add_bos_token", false);
  if (fields.find("add_eos_token"))
    marks.addsEos = fields.flag("add_eos_token", false);
  if (marks.addsBos && marks.bos == TextMarks::none)
    fields.wrong("bos_token", "is missing, but texts begin with it");
  if (marks.chatTemplate.empty())
    marks.chatTemplate = chatTemplateOf(errors, fields);
}

/// The ids that end a text, in `generation_config.json`: one or several.
static void readGenerationConfig(JsonErrors &errors, const JsonValue &config, TextMarks &marks) {
  JsonFields fields(errors, config, "");
  const JsonValue *ends = fields.find("eos_token_id");
  if (!ends)
    return;
  const auto add = [&](const JsonValue &id) {
    if (id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int32_t>::max())
      marks.ends.push_back(id.get<int32_t>());
    else
      fields.wrong("eos_token_id", "is " + shown(id) + ", expected an id");
  };
  if (!ends->is_array())
    return add(*ends);
  for (const JsonValue &id : *ends)
    add(id);
}

Status readMarks(const TokenizerFolder &folder, const std::string &name,
                 const std::function<int32_t(std::string_view)> &idOf, TextMarks &marks) {
  const auto place = std::filesystem::path(name).parent_path();
  marks.chatTemplate = folder.chatTemplate;
  const auto read = [&](const std::string &text, const char *file, const auto &use) -> Status {
    if (text.empty())
      return {};
    JsonErrors errors{.file = (place / file).string()};
    const auto json = parseJson(text, errors.file);
    if (!json)
      return json.error();
    use(errors, *json);
    return errors.status();
  };
  if (Status status = read(folder.tokenizerConfig, "tokenizer_config.json",
                           [&](JsonErrors &errors, const JsonValue &config) {
                             readTokenizerConfig(errors, config, idOf, marks);
                           });
      !status)
    return status;
  marks.ends = endsOf(marks);
  return read(folder.generationConfig, "generation_config.json",
              [&](JsonErrors &errors, const JsonValue &config) {
                readGenerationConfig(errors, config, marks);
              });
}

} // namespace heddle
