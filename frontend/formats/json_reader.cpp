#include "frontend/formats/json_reader.h"

#include "runtime/mapped_file.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

namespace heddle {

namespace {

constexpr size_t deepest = 128;

/// Reads text, and tells how much of it was read.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    ++*count;
    return *this;
  }
  bool operator==(const CountingIterator &other) const { return at == other.at; }
  bool operator!=(const CountingIterator &other) const { return at != other.at; }

  const char *at;
  size_t *count;
};

/// Makes a value of the parser's events. The parser itself does not recurse.
class Builder {
public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string &) { return add(value); }
  bool string(std::string &value) { return add(std::move(value)); }
  bool binary(JsonValue::binary_t &) { return false; } // JSON text has none
  bool start_object(size_t) { return open(JsonValue::object()); }
  bool start_array(size_t) { return open(JsonValue::array()); }
  bool end_object() { return stack.pop_back(), true; }
  bool end_array() { return stack.pop_back(), true; }

  bool key(std::string &key) {
    auto [place, isNew] = stack.back()->get_ref<JsonValue::object_t &>().try_emplace(key);
    if (!isNew)
      return fail(fmt::format("key {} comes a second time in its object", inQuotes(key)),
                  read - key.size() - 2);
    member = &place->second;
    return true;
  }

  bool parse_error(size_t position, const std::string &token, const JsonValue::exception &error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what is wrong; ..."
    std::string_view text = error.what();
    if (const size_t colon = text.find(": "); colon != text.npos && error.id < 200)
      text.remove_prefix(colon + 2);
    else if (const size_t bracket = text.find("] "); bracket != text.npos)
      text.remove_prefix(bracket + 2);
    return fail(fmt::format("is no JSON: {}", text), position - 1);
  }

  JsonValue root;
  size_t read = 0;     ///< characters that the parser has read
  std::string failure; ///< empty where there is none
  size_t where = 0;    ///< the character at which it was found

private:
  bool fail(std::string message, size_t offset) {
    failure = std::move(message);
    where = offset;
    return false;
  }

  /// Where the next value goes.
  JsonValue *place(JsonValue value) {
    JsonValue *at = &root;
    if (!stack.empty() && stack.back()->is_array())
      at = &stack.back()->get_ref<JsonValue::array_t &>().emplace_back();
    else if (!stack.empty())
      at = member;
    *at = std::move(value);
    return at;
  }

  bool add(JsonValue value) { return place(std::move(value)), true; }

  bool open(JsonValue value) {
    if (stack.size() == deepest)
      return fail(fmt::format("values are nested deeper than {}", deepest), read - 1);
    // An array that is open does not grow until its last element is closed.
    stack.push_back(place(std::move(value)));
    return true;
  }

  std::vector<JsonValue *> stack; ///< the arrays and objects that are open
  JsonValue *member = nullptr;    ///< of the innermost object, for the next value
};

} // namespace

Result<JsonValue> parseJson(std::string_view text, const std::string &name, size_t start) {
  Builder builder;
  const CountingIterator begin{text.data(), &builder.read},
      end{text.data() + text.size(), &builder.read};
  if (JsonValue::sax_parse(begin, end, &builder))
    return std::move(builder.root);
  return dataError(fmt::format("{}: offset {}: {}", name, start + builder.where, builder.failure));
}

Result<JsonValue> readJsonFile(const std::string &path) {
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();
  const auto bytes = file->bytes();
  return parseJson({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

} // namespace heddle
