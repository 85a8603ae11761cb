#include "frontend/cli/terminal.h"

#include "frontend/cli/command.h"

#include "fmt/format.h"

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace heddle::command {

bool stdoutIsTerminal() { return isatty(STDOUT_FILENO) != 0; }
bool stderrIsTerminal() { return isatty(STDERR_FILENO) != 0; }

static bool coloured() {
  static const bool answer = [] {
    const char *terminal = std::getenv("TERM"), *refused = std::getenv("NO_COLOR");
    return stdoutIsTerminal() && terminal && std::string_view(terminal) != "dumb" &&
           !(refused && *refused);
  }();
  return answer;
}

static std::string painted(const char *code, std::string_view text) {
  if (!coloured())
    return std::string(text);
  return std::string("\033[") + code + "m" + std::string(text) + "\033[0m";
}

std::string bold(std::string_view text) { return painted("1", text); }
std::string dim(std::string_view text) { return painted("2", text); }
std::string green(std::string_view text) { return painted("32", text); }

//===-- Progress
//--------------------------------------------------------------------------------===//

using Clock = std::chrono::steady_clock;

static constexpr char wipeLine[] = "\r\033[K";
static std::atomic<bool> lineDrawn = false;

ProgressLine::ProgressLine(bool wanted) : wanted(wanted && stderrIsTerminal()) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(std::string_view what, int64_t done, int64_t total) {
  using namespace std::chrono_literals;
  Clock::time_point now = Clock::now();
  if (!wanted || (drawn && now - last < 100ms))
    return;
  last = now;
  std::string line(what);
  winsize size{};
  size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  if (line.size() + 8 > columns)
    line.resize(columns > 8 ? columns - 8 : 0);
  if (total > 0) { // of much the share moves slowly
    const int decimals = total < 500 ? 0 : 1;
    const double steps = decimals == 0 ? 1 : 10; // cut off: 100 % is the end
    const double share = static_cast<double>(done) * 100 / static_cast<double>(total);
    line += fmt::format(" {:.{}f} %", std::floor(share * steps) / steps, decimals);
  }
  std::fprintf(stderr, "%s%s", wipeLine, line.c_str());
  std::fflush(stderr);
  drawn = true;
  lineDrawn = true;
}

void ProgressLine::clear() {
  if (!drawn)
    return;
  std::fputs(wipeLine, stderr);
  std::fflush(stderr);
  drawn = false;
  lineDrawn = false;
}

void ProgressLine::follow(CompileOptions &options) {
  options.progress = [this](const Progress &step) {
    if (step.stage == "compile")
      update("compiling");
    else
      update("preparing weights: " + std::string(step.stage), step.done, step.total);
  };
}

Result<Model> compileWithProgress(const LoadedModel &model, CompileOptions options, bool wanted) {
  ProgressLine progress(wanted);
  progress.follow(options);
  auto compiled = compile(model.source, options, model.weights);
  progress.clear();
  if (wanted && compiled && compiled->info().cacheFaulty)
    note("compiled anew: " + compiled->info().cacheMiss);
  return compiled;
}

//===-- Interrupts
//------------------------------------------------------------------------------===//

/// A model and its summary at most are written at once.
static std::atomic<const char *> temporaryFiles[2];

void removeOnInterrupt(const char *path) {
  for (std::atomic<const char *> &file : temporaryFiles)
    if (const char *none = nullptr; file.compare_exchange_strong(none, path))
      return;
}

void keepOnInterrupt(const char *path) {
  for (std::atomic<const char *> &file : temporaryFiles)
    if (file == path)
      file = nullptr;
}

static void interrupted(int signal) {
  for (const char *path : temporaryFiles)
    if (path)
      unlink(path);
  if (lineDrawn && write(STDERR_FILENO, wipeLine, sizeof(wipeLine) - 1) < 0) {
    // Nothing is left to be done about a terminal that is gone.
  }
  if (signal == SIGINT)
    _exit(exitInterrupted);
  if (getpid() == 1) // of a container, whom no signal ends
    _exit(128 + signal);
  raise(signal); // its own end again, see SA_RESETHAND, as soon as this returns
}

void endOnInterrupt() {
  struct sigaction action = {};
  action.sa_handler = interrupted;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) // as nohup has it
      sigaction(signal, &action, nullptr);
  }
}

} // namespace heddle::command
