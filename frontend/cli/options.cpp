#include "frontend/cli/options.h"

#include "frontend/cli/output_file.h"
#include "runtime/parallel.h"
#include "runtime/text.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace heddle::command {

/// What `variable` names, or else `inHome` in the user's home; empty where that is no whole path.
static std::filesystem::path userFolder(const char *variable, const char *inHome) {
  namespace fs = std::filesystem;
  const char *named = std::getenv(variable), *home = std::getenv("HOME");
  fs::path folder = named && *named ? fs::path(named) : fs::path();
  if (folder.empty() && home && *home)
    folder = fs::path(home) / inHome;
  return folder.is_absolute() ? folder : fs::path();
}

/// `$XDG_CACHE_HOME/heddle` or `~/.cache/heddle`; none where it cannot be ours.
static std::string usualCacheFolder() {
  namespace fs = std::filesystem;
  fs::path folder = userFolder("XDG_CACHE_HOME", ".cache");
  if (folder.empty())
    return "";
  folder /= "heddle";
  std::error_code error;
  if (fs::create_directories(folder, error))
    fs::permissions(folder, fs::perms::owner_all, error);
  struct stat status = {};
  bool ours = stat(folder.c_str(), &status) == 0 && status.st_uid == geteuid() &&
              !(status.st_mode & (S_IWGRP | S_IWOTH)) && access(folder.c_str(), W_OK) == 0;
  return ours ? folder.string() : "";
}

std::string usualChoices() {
  std::filesystem::path folder = userFolder("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? "" : (folder / "heddle" / "choices.json").string();
}

static bool isThere(const std::string &path) {
  std::error_code unknown; // of a folder that may not be searched
  return std::filesystem::exists(path, unknown);
}

static Result<std::shared_ptr<const ChoiceTable>> readTable(const std::string &path, bool isAsked) {
  auto text = readText(path);
  if (!text)
    return text.error();
  auto table = ChoiceTable::read(*text, path);
  if (!table)
    return table.error();
  if (!isAsked)
    table->setUsual();
  return std::make_shared<const ChoiceTable>(std::move(*table));
}

/// The table that `--plan` says; without it the usual file, if there is one and the result need not
/// be the same everywhere. To be added to, that of the file that will be written. Null: the
/// built-in one.
static Result<std::shared_ptr<const ChoiceTable>> chooseTable(const CommonOptions &common,
                                                              bool isWritten) {
  std::string path = common.plan.value_or("");
  if (!common.plan && (isWritten || !common.strict))
    path = usualChoices();
  const bool isAsked = common.plan && !isWritten;
  if (path.empty() || path == "default" || (!isAsked && !isThere(path)))
    return std::shared_ptr<const ChoiceTable>();
  auto table = readTable(path, isAsked);
  if (table && !(*table)->leftOut().empty() && !common.quiet)
    note((*table)->leftOut());
  if (table || isAsked)
    return table;
  if (auto text = readText(path);
      isWritten && text && !text->empty() && !ChoiceTable::isMeantBy(*text))
    return dataError(path +
                     ": is no table of choices, and so is not written over; name a new file");
  // Nobody named it, or it is about to be written: it must not stand in the way.
  if (!common.quiet)
    note(table.error().message + (isWritten ? "; it is written anew" : "; it is not used"));
  return std::shared_ptr<const ChoiceTable>();
}

CompileOptions CommonOptions::compileOptions() const {
  CompileOptions options{.fuse = fuse, .isa = isa, .plan = choices, .threads = threads};
  if (!noCache)
    options.cacheFolder = cacheDir ? *cacheDir : usualCacheFolder();
  if (dtype)
    options.dtype = WeightType::find(*dtype);
  if (kv)
    options.kv = runtime::findCacheElement(*kv);
  return options;
}

namespace {

/// An option that several verbs share, and the verbs that have a use for it.
struct CommonOption {
  std::string_view name;
  std::vector<std::string_view> verbs;
};

/// All verbs have --quiet.
const std::vector<CommonOption> commonOptions = [] {
  const std::vector<std::string_view> running = {"demo", "run", "score", "compare", "bench"};
  auto withRunning = [&](std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> all = running;
    all.insert(all.end(), more);
    return all;
  };
  return std::vector<CommonOption>{
      {"--fuse", withRunning({"show", "explain"})},
      {"--dtype", withRunning({"inspect", "show", "explain", "machine"})},
      {"--kv", withRunning({"inspect", "show", "explain", "machine"})},
      {"--isa", withRunning({"show", "explain", "machine"})},
      {"--plan", withRunning({"show", "explain", "machine"})},
      {"--threads", withRunning({"quantize", "explain", "machine"})},
      {"--strict", withRunning({"show", "explain"})},
      {"--cache-dir", withRunning({"machine"})},
      {"--no-cache", withRunning({"machine"})},
  };
}();

/// CLI11's help without what its descriptions say anyway: ranges, sets, exclusions.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_option_opts(const CLI::Option *option) const override {
    std::string type = option->get_type_name();
    return type.empty() || option->get_positional() ? "" : " " + type.substr(0, type.find(':'));
  }
};

} // namespace

std::function<std::string(const std::string &)> oneOf(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string &text) -> std::string {
    if (std::ranges::find(names, text) != names.end())
      return "";
    return fmt::format("needs {}{}, found '{}'", names.size() > 1 ? "one of " : "",
                       fmt::join(names, ", "), text);
  };
}

Parser::Parser(const Invocation &invocation, const std::string &about)
    : invocation(invocation), parser(about, invocation.argv[0]) {
  parser.set_help_flag("-h,--help", "print this and stop");
  parser.set_version_flag("--version", versionText(), "print the version and stop");
  parser.formatter(std::make_shared<HelpFormatter>());
  parser.get_formatter()->column_width(26);

  addCommonOptions();
}

bool Parser::takes(std::string_view option) const {
  for (const CommonOption &one : commonOptions)
    if (one.name == option)
      return std::ranges::find(one.verbs, invocation.verb) != one.verbs.end();
  return false;
}

void Parser::addCommonOptions() {
  const std::string group = "Common options";
  auto add = [&](const char *name, auto &value, const char *type, const char *description) {
    return takes(name) ? parser.add_option(name, value, description)->type_name(type)->group(group)
                       : nullptr;
  };
  add("--fuse", common.fuse, "SET", "fusions to make: all, none, NAME,... or all,-NAME,...");
  if (auto *option = add("--dtype", common.dtype, "TYPE",
                         "weights: f32, bf16, q8_0, q4_0, q4_k, q4_k_m, q6_k, int8; the model's "
                         "own by default"))
    option->check(oneOf({WeightType::names().begin(), WeightType::names().end()}));
  if (auto *option = add("--kv", common.kv, "TYPE",
                         "entries of the KV cache: f32, bf16, f16, int8; f32 where all weights "
                         "are, else bf16, by default"))
    option->check(
        oneOf({runtime::cacheElementNames().begin(), runtime::cacheElementNames().end()}));
  if (auto *option = add("--isa", common.isa, "ISA",
                         "instructions to use: avx2, avx512, avx512_vnni, avx512_bf16, native"))
    option->check(oneOf({"avx2", "avx512", "avx512_vnni", "avx512_bf16", "native"}));
  add("--plan", common.plan, "FILE",
      "fusions measured not to pay: default, or a file of heddle machine --tune; its usual file by "
      "default");
  if (takes("--threads"))
    addNumber("--threads", common.threads, 1, runtime::ThreadPool::maxThreads,
              "threads; the cores this process may use by default")
        ->group(group);
  if (takes("--strict"))
    parser.add_flag("--strict", common.strict, "the same bits however the work is cut")
        ->group(group);
  if (auto *folder = add("--cache-dir", common.cacheDir, "DIR",
                         "where compiled code is kept; a folder of your own")) {
    folder->check([](const std::string &text) {
      return text.empty() ? "needs a folder; --no-cache keeps nothing" : "";
    });
    parser.add_flag("--no-cache", common.noCache, "keep no compiled code")
        ->group(group)
        ->excludes(folder);
  }
  parser.add_flag("-q,--quiet", common.quiet, "nothing on standard error but errors")->group(group);
}

void Parser::addModel() {
  if (!invocation.graph)
    parser
        .add_option("MODEL", model,
                    "a checkpoint, a file of graph text (- is standard input), or a built-in shape")
        ->type_name("FILE")
        ->required();
  parser
      .add_option("--weights", loading.weights,
                  "a checkpoint to take the weights from; made up from a seed without one")
      ->type_name("FILE");
  reads(model);
  reads(loading.weights);
  addAllowUnknown(loading.opening);
}

void Parser::addAllowUnknown(OpenOptions &opening) {
  parser
      .add_option("--allow-unknown", opening.allowUnknown,
                  "go on without this configuration key or tensor, which is not known here")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option *Parser::addJson(std::string &file) {
  summary = &file;
  writes(file, "--json: ", " is read, or written already; the summary needs a file of its own");
  return parser.add_option("--json", file, "write the result as JSON to this file; - prints it")
      ->type_name("FILE");
}

/// Whether two files are named as those of one model, `NAME-00001-of-00003.gguf`.
static bool isOfOneModel(const std::filesystem::path &a, const std::filesystem::path &b) {
  constexpr std::string_view number = "-00001", ending = "-of-00003.gguf";
  const std::string one = a.filename().string(), other = b.filename().string();
  const size_t size = one.size(), tail = size - ending.size();
  if (size <= number.size() + ending.size() || other.size() != size || !one.ends_with(".gguf") ||
      one.compare(tail, 4, "-of-") != 0 || one.substr(tail) != other.substr(tail) ||
      one.substr(0, tail - number.size()) != other.substr(0, tail - number.size()))
    return false;
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::absolute(a, ignored).parent_path(),
                                     std::filesystem::absolute(b, ignored).parent_path(), ignored);
}

/// Whether writing to `path` changes what `read`, a file or folder, holds.
static bool isPartOf(const std::filesystem::path &path, const std::filesystem::path &read) {
  std::error_code ignored;
  return std::filesystem::equivalent(path, read, ignored) || isOfOneModel(path, read) ||
         (std::filesystem::exists(path, ignored) && std::filesystem::is_directory(read, ignored) &&
          std::filesystem::equivalent(std::filesystem::absolute(path, ignored).parent_path(), read,
                                      ignored));
}

/// Whether both name one file, which need not be there yet.
static bool isSameFile(const std::filesystem::path &a, const std::filesystem::path &b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored) ||
         std::filesystem::absolute(a, ignored).lexically_normal() ==
             std::filesystem::absolute(b, ignored).lexically_normal();
}

Status Parser::checkWritten() const {
  for (auto one = written.begin(); one != written.end(); ++one) {
    const std::string &path = *one->path;
    if (path.empty() || path == "-")
      continue;
    if (std::ranges::any_of(read, [&](const std::string *from) { return isPartOf(path, *from); }) ||
        std::any_of(written.begin(), one,
                    [&](const Written &other) { return isSameFile(path, *other.path); }))
      return usageError(one->before + path + one->after);
  }
  return {};
}

/// An empty name of a file is a mistake, and not the absence of one.
Status Parser::checkNamed() const {
  for (const CLI::Option *option : parser.get_options())
    if (option->get_type_name() == "FILE" && std::ranges::count(option->results(), "") > 0)
      return usageError(option->get_name() + ": needs the name of a file, found ''");
  return {};
}

/// Whether the summary can be written, before any work is done for it.
Status Parser::checkSummary() const {
  if (!summary || summary->empty() || *summary == "-")
    return {};
  // Who reads a pipe would see its end if it were opened and closed.
  std::error_code unknown;
  if (std::filesystem::is_fifo(*summary, unknown))
    return {};
  return OutputFile(*summary).open();
}

/// How many letters have to be put in, taken out or exchanged to make `b` of `a`.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1); // of what `a` begins with, against each beginning of `b`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1],
                               std::min({diagonal + (a[i] != b[j]), row[j] + 1, row[j + 1] + 1}));
  }
  return row.back();
}

std::string Parser::unknownArgument() const {
  std::vector<std::string> left = parser.remaining();
  std::erase(left, "--");
  if (left.empty())
    return "";
  auto isFlag = [](const std::string &text) { return text.size() > 1 && text[0] == '-'; };
  const auto flag = std::ranges::find_if(left, isFlag);
  if (flag == left.end())
    return fmt::format("'{}' is one argument too many", left.front());
  const std::string name = flag->substr(0, flag->find('='));
  if (const auto common = std::ranges::find(commonOptions, name, &CommonOption::name);
      common != commonOptions.end() && !takes(name))
    return fmt::format("{} has no use for {}; those that have are {}", invocation.verb, name,
                       fmt::join(common->verbs, ", "));
  std::string nearest;
  size_t least = name.size() / 3 + 1; // farther away, it is another word
  for (const CLI::Option *option : parser.get_options())
    for (const std::string &known : option->get_lnames())
      if (const size_t distance = editDistance(name, "--" + known); distance < least) {
        least = distance;
        nearest = "--" + known;
      }
  return fmt::format("unknown option '{}'", name) +
         (nearest.empty() ? "" : fmt::format("; the nearest is {}", nearest));
}

/// What CLI11 says, but for "--tokens: 1 required N missing" and "--tokens: At Most 1 required but
/// received 2".
static std::string inPlainWords(const CLI::ParseError &error) {
  const std::string said = error.what();
  const std::string option = said.substr(0, said.find(':'));
  if (said.ends_with(" missing"))
    return option + ": needs a value";
  return said.find(": At Most 1 required") != said.npos ? option + ": is given more than once"
                                                        : said;
}

std::optional<int> Parser::parse() {
  try {
    parser.parse(invocation.argc, invocation.argv);
  } catch (const CLI::CallForHelp &) {
    Status printed = print(parser.help());
    return printed ? exitOk : fail(printed.error());
  } catch (const CLI::CallForVersion &) {
    Status printed = print(versionText() + "\n");
    return printed ? exitOk : fail(printed.error());
  } catch (const CLI::ParseError &error) {
    // What is unknown may be why something else is missing or wrong.
    const std::string unknown = unknownArgument();
    note(fmt::format("{} (see {} --help)", unknown.empty() ? inPlainWords(error) : unknown,
                     invocation.argv[0]));
    return exitUsage;
  }
  for (const Status &usable : {checkNamed(), checkWritten(), checkSummary()})
    if (!usable)
      return fail(usable.error());
  if (takes("--plan")) {
    auto table = chooseTable(common, writesPlan && *writesPlan);
    if (!table)
      return fail(table.error());
    common.choices = std::move(*table);
  }
  return std::nullopt;
}

Result<LoadedModel> Parser::load(int64_t context, bool tellsRemarks) const {
  LoadOptions options = loading;
  options.context = context;
  options.dtype = common.compileOptions().dtype;
  auto loaded =
      invocation.graph ? loadModel(*invocation.graph, options) : loadModel(model, options);
  if (tellsRemarks && loaded && loaded->checkpoint && !common.quiet)
    for (const std::string &remark : loaded->checkpoint->remarks)
      note(remark);
  return loaded;
}

Status checkContext(int64_t asked, const ModelInfo &info) {
  if (info.longest && asked > info.longest)
    return usageError(fmt::format("--context: the model has a table of {}, found {}",
                                  counted(info.longest, "position"), asked));
  return {};
}

void noteContext(int64_t asked, const LoadedModel &model, const ModelInfo &info) {
  using Kind = RotaryScaling::Kind; // of which one is made to go further, and says so
  const bool isMeant =
      model.checkpoint && model.checkpoint->config.rotary.scaling.kind == Kind::dynamic;
  if (info.context && asked > info.context && !isMeant)
    note(fmt::format("--context: {} is more than the {} the model was made for; its positions are "
                     "computed and go on, but beyond those its results may be poor",
                     asked, counted(info.context, "position")));
}

Result<std::vector<int64_t>> readNumbers(std::string_view option, const std::string &text,
                                         int64_t least, int64_t most) {
  std::vector<int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size();;) {
    int64_t number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < least || number > most ||
        (next != end && (*next != ',' || next + 1 == end)))
      return usageError(fmt::format("{}: needs whole numbers from {} to {} with commas between "
                                    "them, found '{}'",
                                    option, least, most, text));
    numbers.push_back(number);
    if (next == end)
      return numbers;
    at = next + 1;
  }
}

Result<std::string> readText(const std::string &path) {
  std::FILE *file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return dataError(path + ": cannot be read: " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  constexpr size_t most = size_t(1) << 30;
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), file)) {
    text.append(buffer, count);
    if (text.size() > most)
      break;
  }
  bool failed = std::ferror(file) != 0;
  int why = errno;
  if (file != stdin)
    std::fclose(file);
  if (text.size() > most)
    return dataError(path + ": has more than a gigabyte, which is no text for a model");
  if (failed)
    return dataError(path + ": cannot be read: " + std::strerror(why));
  return text;
}

Status report(std::string_view text, const Json &result, const std::string &json) {
  if (!json.empty())
    if (Status written = writeFile(json, result.str()); !written)
      return written;
  return json == "-" ? Status() : print(text);
}

std::string versionText() { return "heddle " HEDDLE_VERSION; }

} // namespace heddle::command
