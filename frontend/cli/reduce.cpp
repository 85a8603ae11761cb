// heddle reduce: the smallest graph that still goes wrong.
#include "frontend/reduce.h"
#include "frontend/cli/options.h"
#include "frontend/cli/output_file.h"
#include "frontend/cli/terminal.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::command {

namespace {

/// The file that the test looks at; gone when this object is.
class TestFile {
public:
  static Result<TestFile> create() {
    std::error_code error;
    TestFile file;
    file.path =
        (std::filesystem::temp_directory_path(error) / "heddle-reduce-XXXXXX.mlir").string();
    int made = mkstemps(file.path.data(), 5);
    if (made < 0)
      return dataError(file.path + ": cannot be written: " + std::strerror(errno));
    close(made);
    return file;
  }
  TestFile(TestFile &&other) noexcept : path(std::move(other.path)) { other.path.clear(); }
  TestFile &operator=(TestFile &&) = delete;
  ~TestFile() {
    if (!path.empty())
      unlink(path.c_str());
  }

  std::string path;

private:
  TestFile() = default;
};

} // namespace

/// The exit code of `command` with `path` as its last argument, which prints nothing.
static Result<int> exitCode(const std::string &command, const std::string &path) {
  std::string script = command + " \"$1\"";
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_RDWR);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      dup2(nowhere, stream);
    execl("/bin/sh", "sh", "-c", script.c_str(), "sh", path.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0)
    return dataError(std::string("--test: cannot be run: ") + std::strerror(errno));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
    return dataError("--test: was interrupted");
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 126 || code == 127)
    return dataError(fmt::format("--test: '{}' is no command that can be run", command));
  return code;
}

int reduce(const Invocation &invocation) {
  Parser parser(invocation, "Makes the text of a graph smaller as long as a command says that it "
                            "still shows what is looked for, and prints it.");
  std::string test;
  parser.addModel();
  parser.app()
      .add_option("--test", test,
                  "a command that gets a file of graph text as its last argument; exit code 0: it "
                  "still shows it")
      ->type_name("COMMAND")
      ->required();
  if (auto code = parser.parse())
    return *code;
  auto model = parser.load();
  if (!model)
    return fail(model.error());
  auto file = TestFile::create();
  if (!file)
    return fail(file.error());
  removeOnInterrupt(file->path.c_str());
  ProgressLine progress(!parser.common.quiet);
  int64_t tried = 0;
  auto interesting = [&](const std::string &text) -> Result<bool> {
    progress.update("reducing, " + counted(++tried, "test"));
    if (Status written = writeFile(file->path, text); !written)
      return written.error();
    auto code = exitCode(test, file->path);
    if (!code)
      return code.error();
    return *code == 0;
  };
  auto reduced = heddle::reduce(model->source, interesting);
  progress.clear();
  keepOnInterrupt(file->path.c_str());
  if (!reduced)
    return fail(reduced.error());
  if (!parser.common.quiet)
    note(fmt::format("{} became {}, in {}", counted(reduced->before, "operation"),
                     reduced->operations, counted(tried, "test")));
  Status printed = print(reduced->text);
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
