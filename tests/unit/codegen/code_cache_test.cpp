// The folder of compiled code: what it gives back, what it refuses, and why.
#include "codegen/code_cache.h"

#include "codegen/jit/machine.h"
#include "codegen/model_bytes.h"
#include "tests/unit/frontend/files.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;

CodeKey keyOf(const std::string &graph, llvm::StringRef isa = "avx2") {
  return CodeKey(graph, *findTarget(isa));
}

class CodeCacheTest : public testing::Test {
protected:
  test::TemporaryFolder folder;
  std::string place = folder.path("code");
  CodeCache cache{place};
  CodeKey key = keyOf("a graph");
  std::string file = place + "/" + key.fileName();

  /// Only the file's bytes are others than those that were kept.
  void expectDamaged(const std::string &bytes, const std::string &what) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    CodeCache::Found found = cache.find(key);
    EXPECT_FALSE(found.content) << what;
    EXPECT_NE(found.miss.find("is damaged"), std::string::npos) << what << ": " << found.miss;
    EXPECT_FALSE(found.expected) << what;
  }
};

TEST_F(CodeCacheTest, GivesBackWhatWasKept) {
  CodeCache::Found found = cache.find(key);
  EXPECT_FALSE(found.content);
  EXPECT_TRUE(found.expected);
  EXPECT_EQ(found.miss, "nothing is kept of this graph");
  const std::string content("code\0with a zero", 16);
  EXPECT_EQ(cache.keep(key, content), "");
  EXPECT_EQ(cache.find(key).content, content);
  EXPECT_EQ(cache.find(key).miss, "");
  EXPECT_FALSE(cache.find(keyOf("another graph")).content);
  EXPECT_EQ(cache.keep(key, "anew"), "");
  EXPECT_EQ(cache.find(key).content, "anew");
  struct stat status = {};
  ASSERT_EQ(stat(place.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CodeCacheTest, SaysWhatIsDifferent) {
  ASSERT_EQ(cache.keep(key, "code"), "");
  CodeCache::Found found = cache.find(keyOf("a graph", "avx512"));
  EXPECT_FALSE(found.content);
  EXPECT_FALSE(found.expected);
  EXPECT_EQ(found.miss, "what is kept of this graph is for another instruction set");
  CodeKey fused = key;
  fused.add("choice of fusions", "none");
  EXPECT_EQ(cache.find(fused).miss, "what is kept of this graph is for another choice of fusions");
}

TEST_F(CodeCacheTest, SeesEveryDamagedByte) {
  ASSERT_EQ(cache.keep(key, "some code"), "");
  const std::string bytes = test::readFile(file);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ 0x10);
    expectDamaged(damaged, "byte " + std::to_string(at));
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    expectDamaged(bytes.substr(0, size), "cut to " + std::to_string(size));
  expectDamaged(bytes + "x", "a byte more");
  // And is whole again once it is made anew.
  EXPECT_EQ(cache.keep(key, "some code"), "");
  EXPECT_EQ(cache.find(key).content, "some code");
}

TEST_F(CodeCacheTest, TakesNoEntryUnderAnotherName) {
  ASSERT_EQ(cache.keep(key, "for avx2"), "");
  CodeKey other = keyOf("a graph", "avx512_bf16");
  fs::copy_file(file, place + "/" + other.fileName());
  CodeCache::Found found = cache.find(other);
  EXPECT_FALSE(found.content);
  EXPECT_NE(found.miss.find("is kept for something else"), std::string::npos) << found.miss;
}

TEST_F(CodeCacheTest, TrustsNothingThatOthersMayWrite) {
  ASSERT_EQ(cache.keep(key, "code"), "");
  chmod(file.c_str(), 0620);
  EXPECT_NE(cache.find(key).miss.find("others may write to it"), std::string::npos);
  chmod(file.c_str(), 0600);
  EXPECT_TRUE(cache.find(key).content);
  for (mode_t mode : {0770, 0702}) {
    chmod(place.c_str(), mode);
    EXPECT_NE(cache.find(key).miss.find("others may write to it"), std::string::npos);
    EXPECT_NE(cache.keep(key, "code").find("others may write to it"), std::string::npos);
  }
  chmod(place.c_str(), 0700);
  if (geteuid() != 0)
    return; // only root gives files away
  ASSERT_EQ(chown(file.c_str(), 12345, gid_t(-1)), 0);
  EXPECT_NE(cache.find(key).miss.find("belongs to somebody else"), std::string::npos);
  ASSERT_EQ(chown(file.c_str(), 0, gid_t(-1)), 0);
  ASSERT_EQ(chown(place.c_str(), 12345, gid_t(-1)), 0);
  EXPECT_NE(cache.find(key).miss.find("belongs to somebody else"), std::string::npos);
  EXPECT_NE(cache.keep(key, "code").find("belongs to somebody else"), std::string::npos);
}

TEST_F(CodeCacheTest, TakesFilesAlone) {
  ASSERT_EQ(cache.keep(key, "code"), "");
  fs::rename(file, place + "/moved");
  fs::create_symlink(place + "/moved", file);
  EXPECT_FALSE(cache.find(key).content);
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_NE(cache.find(key).miss.find("is no file"), std::string::npos);
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(cache.find(key).content);
  EXPECT_NE(cache.keep(key, "code"), "");
  // What could not be put in its place is not left behind.
  for (const auto &entry : fs::directory_iterator(place))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".new-")) << entry.path();
  CodeCache inFile(folder.write("plain", "text"));
  EXPECT_NE(inFile.find(key).miss, "");
  EXPECT_NE(inFile.keep(key, "code"), "");
  EXPECT_NE(CodeCache(folder.path("plain/below")).keep(key, "code"), "");
}

TEST_F(CodeCacheTest, LetsGoOfWhatWasLongestNotUsed) {
  const std::string content(1000, 'x');
  CodeCache small(place, 4000); // three entries with their keys
  auto step = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (const char *graph : {"a", "b", "c"}) {
    ASSERT_EQ(small.keep(keyOf(graph), content), "");
    step();
  }
  folder.write("code/notes.txt", std::string(5000, 'n'));
  EXPECT_TRUE(small.find(keyOf("a")).content);
  step();
  ASSERT_EQ(small.keep(keyOf("d"), content), "");
  EXPECT_TRUE(small.find(keyOf("a")).content);
  EXPECT_FALSE(small.find(keyOf("b")).content);
  EXPECT_TRUE(small.find(keyOf("c")).content);
  EXPECT_TRUE(small.find(keyOf("d")).content);
  // What is not ours is not counted and not touched.
  EXPECT_TRUE(fs::exists(place + "/notes.txt"));
  EXPECT_NE(small.keep(keyOf("e"), std::string(5000, 'x')), "");
  uintmax_t total = 0;
  for (const auto &entry : fs::directory_iterator(place))
    if (entry.path().extension() == ".code")
      total += entry.file_size();
  EXPECT_LE(total, 4000u);
}

TEST_F(CodeCacheTest, RemovesWhatWasAbandoned) {
  ASSERT_EQ(cache.keep(key, "code"), "");
  std::string old = folder.write("code/.new-1-1", "half"),
              young = folder.write("code/.new-2-2", "");
  timespec longAgo[] = {{time(nullptr) - 3600, 0}, {time(nullptr) - 3600, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), longAgo, 0), 0);
  ASSERT_EQ(cache.keep(keyOf("another"), "code"), "");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(CodeCacheTest, IsNoWorseForAFullDisk) {
  // A process that may not write so much has what a full disk is.
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit most = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &most);
    std::string why = cache.keep(key, std::string(100000, 'x'));
    bool none = !cache.find(key).content;
    _exit(!why.empty() && none && fs::is_empty(place) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/// What process `number` keeps.
std::string contentOf(int number) { return std::string(200000, char('a' + number)); }

TEST_F(CodeCacheTest, ServesEightProcessesThatAreKilledAnyTime) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60); // whatever becomes of this test
      for (;;)
        (void)cache.keep(key, contentOf(i));
    }
    children.push_back(child);
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  int found = 0, next = 0;
  while (std::chrono::steady_clock::now() < end || found == 0) {
    CodeCache::Found now = cache.find(key);
    if (now.content) {
      ++found;
      ASSERT_EQ(*now.content, contentOf(now.content->front() - 'a'));
    } else {
      ASSERT_TRUE(now.expected) << now.miss;
    }
    // One after the other is killed, whatever it is doing.
    if (next < 7)
      kill(children[size_t(next++)], SIGKILL);
  }
  for (pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(cache.find(key).content);
}

//===-- What is kept --------------------------------------------------------------------------===//

CompiledModel someModel() {
  CompiledModel model;
  runtime::Program &program = model.prefill.program;
  program.dims = {{runtime::DimKind::tokens, 0, 0}};
  program.inputs = {{runtime::Input::Kind::sequences, runtime::ElementType::i32, {}}};
  program.slots = {{{{{64, {0}}}, {}}}};
  program.constants = {{runtime::ElementType::i32, {2}, {1, 0, 0, 0, 2, 0, 0, 0}}};
  runtime::Step step;
  step.symbol = "kernel_0";
  step.id = "layers.0";
  step.operands = {{runtime::Source::dims, 0}, {runtime::Source::slot, 0}};
  step.grid = {{{{1, {0}}}, 32}};
  program.steps = {step};
  model.prefill.kernels = {{"kernel_0", std::string("\x7f"
                                                    "ELF\0",
                                                    5)}};
  return model;
}

TEST(ModelBytes, ReadBackWhatWasWritten) {
  std::string bytes = toBytes(someModel());
  auto model = fromBytes(bytes);
  ASSERT_TRUE(model);
  EXPECT_EQ(toBytes(*model), bytes);
  ASSERT_EQ(model->prefill.program.steps.size(), 1u);
  EXPECT_EQ(model->prefill.program.steps[0].grid[0].divisor, 32);
  EXPECT_EQ(model->prefill.kernels[0].bytes.size(), 5u);
}

TEST(ModelBytes, RefuseWhatIsNotWhole) {
  std::string bytes = toBytes(someModel());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(fromBytes(llvm::StringRef(bytes).take_front(size))) << size;
  EXPECT_FALSE(fromBytes(bytes + "x"));
  CompiledModel model = someModel();
  model.prefill.kernels.clear();
  EXPECT_FALSE(fromBytes(toBytes(model))) << "a step without its kernel";
  model = someModel();
  model.prefill.program.steps[0].operands[1].index = 1;
  EXPECT_FALSE(fromBytes(toBytes(model))) << "a slot that is not there";
}

} // namespace
} // namespace heddle::codegen
