#include "tests/unit/codegen/op_docs.h"

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace heddle::test {

/// Reads the description after a heading, up to the generated tables.
static void readDescription(std::istream &file, OpDoc &doc) {
  std::string line, example;
  bool inside = false;
  while (std::getline(file, line)) {
    if (line == "```mlir") {
      inside = true;
    } else if (line == "```" && inside) {
      doc.examples.push_back(std::move(example));
      example.clear();
      inside = false;
    } else if (inside) {
      example += line + "\n";
    } else if (line.starts_with("Traits:") || line.starts_with("Interfaces:") ||
               line.starts_with("#### ")) {
      return;
    } else {
      doc.description += line + "\n";
    }
  }
}

std::vector<OpDoc> readOpDocs() {
  std::ifstream file(HEDDLE_OP_DOCS);
  std::vector<OpDoc> docs;
  std::string line;
  const std::regex heading("### `([a-z0-9_.]+)`.*");
  for (std::smatch match; std::getline(file, line);) {
    if (!std::regex_match(line, match, heading))
      continue;
    OpDoc &doc = docs.emplace_back();
    doc.name = match[1];
    std::getline(file, line); // blank
    std::getline(file, line);
    // An operation without a summary goes on with its syntax.
    if (line.starts_with("_") && line.ends_with("_"))
      doc.summary = line.substr(1, line.size() - 2);
    // The syntax is the first fenced block, without a language.
    for (int fences = 0; fences < 2 && std::getline(file, line);)
      fences += line == "```";
    readDescription(file, doc);
  }
  return docs;
}

/// Splits "tensor<..>, !heddle.cache<5 x 4, 8>" at the commas outside of brackets.
static std::vector<std::string> splitTypes(const std::string &text) {
  std::vector<std::string> types(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '<') - (c == '>');
    if (c == ',' && depth == 0)
      types.emplace_back();
    else if (c != ' ' || !types.back().empty())
      types.back() += c;
  }
  return types;
}

std::string moduleOf(const OpDoc &doc, const std::string &example) {
  if (example.starts_with("heddle.param") || example.starts_with("heddle.program"))
    return example;
  if (doc.name == "heddle.yield")
    return "func.func @example(%x: tensor<?xf32>) {\n"
           "%y = heddle.map (%x) : (tensor<?xf32>) -> tensor<?xf32> {\n^bb0(%e: f32):\n" +
           example + "}\nreturn\n}\n";
  std::string globals;
  std::smatch match;
  if (std::regex_search(example, match, std::regex("heddle\\.weight (@[a-z0-9_.]+) (: .*)")))
    globals = "heddle.param " + match[1].str() + " " + match[2].str() + "\n";
  // Operands stand between the equals sign and the types, which say what each of them is.
  size_t equals = example.find(" = "), colon = example.find(" : (");
  std::map<std::string, std::string> arguments;
  if (colon != std::string::npos) {
    std::vector<std::string> types =
        splitTypes(example.substr(colon + 4, example.find(") ->") - colon - 4));
    std::string head = example.substr(equals, colon - equals);
    const std::regex name("%[A-Za-z0-9_]+");
    size_t next = 0;
    for (std::sregex_iterator it(head.begin(), head.end(), name), end; it != end; ++it, ++next)
      arguments[it->str()] = next < types.size() ? types[next] : "none";
  }
  std::string list;
  for (const auto &[name, type] : arguments)
    list += (list.empty() ? "" : ", ") + name + ": " + type;
  return globals + "func.func @example(" + list + ") {\n" + example + "return\n}\n";
}

} // namespace heddle::test
