// heddle quantize: a model as a GGUF file in another type.
#include "frontend/quantize.h"
#include "frontend/cli/options.h"
#include "frontend/cli/output_file.h"
#include "frontend/cli/terminal.h"
#include "runtime/text.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <map>

namespace heddle::command {

namespace {

Json describe(const Quantizer &quantizer, const std::string &in, const std::string &out,
              const std::string &type) {
  std::vector<Json> tensors, remarks;
  for (const QuantizedTensor &tensor : quantizer.tensors()) {
    const std::vector<Json> shape(tensor.header.shape.begin(), tensor.header.shape.end());
    tensors.push_back(
        Json::object({{"name", tensor.header.name},
                      {"shape", Json::array(shape)},
                      {"from", tensor.from},
                      {"to", std::string(tensor.header.type->name)},
                      {"reason", tensor.reason.empty() ? Json::null() : Json(tensor.reason)}}));
  }
  for (const std::string &remark : quantizer.remarks())
    remarks.emplace_back(remark);
  return Json::object({{"in", in},
                       {"out", out},
                       {"dtype", type},
                       {"bytes_before", quantizer.bytesBefore()},
                       {"bytes_after", quantizer.bytesAfter()},
                       {"tensors", Json::array(tensors)},
                       {"remarks", Json::array(remarks)}});
}

std::string table(const Quantizer &quantizer, const std::string &out, const std::string &type) {
  std::map<std::string_view, int64_t> counts;
  std::string others;
  for (const QuantizedTensor &tensor : quantizer.tensors()) {
    ++counts[tensor.header.type->name];
    if (!tensor.reason.empty())
      others += fmt::format("  {} [{}] is {}, {}\n", tensor.header.name,
                            fmt::join(tensor.header.shape, ", "), tensor.header.type->name,
                            tensor.reason);
  }
  std::string text =
      fmt::format("{}: {}, {:.1f} MB of tensors, from {:.1f} MB\n", out, type,
                  double(quantizer.bytesAfter()) / 1e6, double(quantizer.bytesBefore()) / 1e6);
  for (const auto &[name, count] : counts)
    text += fmt::format("  {:<6}  {}\n", name, counted(count, "tensor"));
  return others.empty() ? text : text + "not as asked:\n" + others;
}

std::vector<std::string> typeNames() {
  std::vector<std::string> names;
  for (const FileType &type : fileTypes())
    names.emplace_back(type.name);
  return names;
}

} // namespace

int quantize(const Invocation &invocation) {
  Parser parser(invocation, "Writes a model as a GGUF file, its weights in another type.");
  std::string in, out, type, json;
  bool noFallback = false;
  QuantizeOptions options;
  CLI::App &app = parser.app();
  app.add_option("IN", in, "a checkpoint: a GGUF file, a folder, a llama2.c file")
      ->type_name("FILE")
      ->required();
  app.add_option("OUT", out, "the file to write")->type_name("FILE")->required();
  app.add_option("--dtype", type, fmt::format("{}", fmt::join(typeNames(), ", ")))
      ->type_name("TYPE")
      ->required()
      ->check(oneOf(typeNames()));
  app.add_flag("--no-fallback", noFallback,
               "fail where a tensor cannot have the type, instead of giving it another");
  app.add_option("--tokenizer", options.tokenizer, "the tokenizer; found beside the checkpoint")
      ->type_name("FILE");
  parser.reads(in);
  parser.reads(options.tokenizer);
  parser.writes(out, "", " is part of what is read; OUT needs a file of its own");
  parser.addAllowUnknown(options.opening);
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;

  if (out == "-")
    return fail(usageError("OUT: the file is written whole or not at all, which standard output "
                           "cannot be; found '-' (./- is a file of that name)"));
  if (Status file = checkHasFile(in, "a checkpoint"); !file)
    return fail(file.error());
  options.type = findFileType(type);
  options.fallback = !noFallback;
  options.threads = parser.common.threads;
  ProgressLine line(!parser.common.quiet);
  const auto progress = [&](std::string_view what, int64_t done, int64_t total) {
    line.update(what, done, total);
  };
  auto quantizer = Quantizer::open(in, options, progress);
  line.clear();
  if (!quantizer)
    return fail(quantizer.error());
  if (!parser.common.quiet)
    for (const std::string &remark : quantizer->remarks())
      note(remark);
  OutputFile file(out);
  if (Status opened = file.open(); !opened)
    return fail(opened.error());
  Status written = quantizer->write(
      [&](std::span<const std::byte> bytes) { return file.write(bytes); }, progress);
  line.clear();
  // The summary first: where it cannot be written, what was there before stays.
  const Json summary = describe(*quantizer, in, out, type);
  if (written && !json.empty() && json != "-")
    written = writeFile(json, summary.str());
  if (written)
    written = file.commit();
  if (written)
    written = print(json == "-" ? summary.str() : table(*quantizer, out, type));
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
