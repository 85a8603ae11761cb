#include "frontend/formats/checkpoint.h"

#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <sys/stat.h>

namespace heddle {
namespace {

using test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Header = std::array<int32_t, 7>;
constexpr Header tinyHeader = {8, 12, 2, 4, 2, 10, 6}; // heads 2 wide

/// A file of llama2.c whose every f32 is its own place, counted from the header's end. The order of
/// tensors is written out here a second time, from llama2.c's run.c.
struct TinyFile {
  std::string bytes;
  std::map<std::string, std::pair<std::vector<int64_t>, uint64_t>> tensors; ///< shape, first value

  explicit TinyFile(const Header &header = tinyHeader) {
    for (const int32_t field : header)
      test::put(bytes, field);
    const int64_t dim = header[0], hidden = header[1], layers = header[2], heads = header[3],
                  kvDim = dim / heads * header[4], vocab = std::abs(header[5]), seq = header[6];
    add("token_embedding", {vocab, dim});
    addLayers(layers, "attention_norm", {dim});
    addLayers(layers, "query", {dim, dim});
    addLayers(layers, "key", {kvDim, dim});
    addLayers(layers, "value", {kvDim, dim});
    addLayers(layers, "output", {dim, dim});
    addLayers(layers, "mlp_norm", {dim});
    addLayers(layers, "gate", {hidden, dim});
    addLayers(layers, "down", {dim, hidden});
    addLayers(layers, "up", {hidden, dim});
    add("final_norm", {dim});
    values(seq * (dim / heads / 2) * 2);
    if (header[5] < 0)
      add("output", {vocab, dim});
  }

  void values(int64_t count) {
    for (; count > 0; --count)
      test::put(bytes, static_cast<float>(next++));
  }
  void add(const std::string &name, const std::vector<int64_t> &shape) {
    tensors[name] = {shape, next};
    int64_t count = 1;
    for (const int64_t size : shape)
      count *= size;
    values(count);
  }
  void addLayers(int64_t layers, const std::string &name, const std::vector<int64_t> &shape) {
    for (int64_t i = 0; i < layers; ++i)
      add("layers." + std::to_string(i) + "." + name, shape);
  }

private:
  uint64_t next = 0;
};

float valueAt(std::span<const std::byte> bytes, size_t index) {
  float value;
  std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(float));
  return value;
}

void expectTensors(const Checkpoint &checkpoint, const TinyFile &tiny) {
  EXPECT_EQ(checkpoint.tensors.size(), tiny.tensors.size());
  for (const auto &[name, expected] : tiny.tensors) {
    const TensorInfo *tensor = checkpoint.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->storage, &f32Storage);
    EXPECT_EQ(tensor->shape, expected.first) << name;
    const auto bytes = checkpoint.bytes(*tensor);
    int64_t count = 1;
    for (const int64_t size : expected.first)
      count *= size;
    ASSERT_EQ(bytes.size(), static_cast<size_t>(count) * sizeof(float)) << name;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      ASSERT_EQ(valueAt(bytes, i), static_cast<float>(expected.second + i)) << name;
  }
}

/// The error of the file there; it must be one line that begins with the file.
std::string errorAt(const std::string &path) {
  const auto checkpoint = openCheckpoint(path);
  if (checkpoint)
    return "opened";
  EXPECT_EQ(checkpoint.error().kind, ErrorKind::data);
  const std::string &message = checkpoint.error().message;
  EXPECT_TRUE(message.starts_with(path + ": ")) << message;
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message.substr(path.size() + 2);
}

/// The error of a file with these bytes.
std::string errorOf(const TemporaryFolder &folder, std::string_view bytes) {
  return errorAt(folder.write("model.bin", bytes));
}

TEST(Checkpoint, ReadsATinyFileWithTiedEmbedding) {
  const TemporaryFolder folder;
  const TinyFile tiny;
  const auto checkpoint = openCheckpoint(folder.write("model.bin", tiny.bytes));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig &config = checkpoint->config;
  EXPECT_EQ(config.width, 8);
  EXPECT_EQ(config.hidden, 12);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kvHeads, 2);
  EXPECT_EQ(config.headWidth, 2);
  EXPECT_EQ(config.vocabulary, 10);
  EXPECT_EQ(config.context, 6);
  EXPECT_EQ(config.normEpsilon, 1e-5);
  EXPECT_EQ(config.rotary.base, 10000);
  EXPECT_EQ(config.rotary.pairing, RotaryPairing::interleaved);
  EXPECT_TRUE(config.tiedEmbedding);
  EXPECT_EQ(checkpoint->find("output"), nullptr);
  EXPECT_EQ(checkpoint->find("layers.2.query"), nullptr);
  expectTensors(*checkpoint, tiny);
}

TEST(Checkpoint, ANegativeVocabularyMeansSeparateOutputWeights) {
  const TemporaryFolder folder;
  Header header = tinyHeader;
  header[5] = -header[5];
  const TinyFile tiny(header);
  const auto checkpoint = openCheckpoint(folder.write("model.bin", tiny.bytes));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->config.tiedEmbedding);
  EXPECT_EQ(checkpoint->config.vocabulary, 10);
  expectTensors(*checkpoint, tiny);
}

TEST(Checkpoint, CopiesShareTheMapping) {
  const TemporaryFolder folder;
  auto opened = openCheckpoint(folder.write("model.bin", TinyFile().bytes));
  ASSERT_TRUE(opened);
  const std::byte *address = opened->bytes(opened->tensors[3]).data();
  const Checkpoint copy = *opened;
  const Checkpoint moved = *std::move(opened);
  EXPECT_EQ(copy.bytes(copy.tensors[3]).data(), address);
  EXPECT_EQ(moved.bytes(moved.tensors[3]).data(), address);
}

TEST(Checkpoint, ReadsTheTrainedModel) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/stories260K.bin");
  const auto checkpoint = openCheckpoint(model.string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig &config = checkpoint->config;
  EXPECT_EQ(config.width, 64);
  EXPECT_EQ(config.hidden, 172);
  EXPECT_EQ(config.layers, 5);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.kvHeads, 4);
  EXPECT_EQ(config.headWidth, 8);
  EXPECT_EQ(config.vocabulary, 512);
  EXPECT_EQ(config.context, 512);
  EXPECT_TRUE(config.tiedEmbedding);
  EXPECT_EQ(checkpoint->tensors.size(), 5u * 9 + 2);
}

// The same weights were published as GGUF, by another program. A tensor whose bytes are found
// there whole was laid out right.
TEST(Checkpoint, TensorsOfTheTrainedModelAreThoseOfItsOtherFormat) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/stories260K.bin");
  const auto checkpoint = openCheckpoint(model.string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  HEDDLE_TEST_DATA_FILE(other, "gguf/stories260Ktok512.gguf");
  const std::string gguf = test::readFile(other);
  for (const TensorInfo &tensor : checkpoint->tensors) {
    const auto bytes = checkpoint->bytes(tensor);
    EXPECT_NE(memmem(gguf.data(), gguf.size(), bytes.data(), bytes.size()), nullptr) << tensor.name;
  }
}

TEST(Checkpoint, RefusesEveryTruncation) {
  const TemporaryFolder folder;
  const TinyFile tiny;
  const std::string path = folder.write("model.bin", tiny.bytes);
  for (size_t size = tiny.bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const std::string error = errorAt(path);
    ASSERT_NE(error, "opened") << size;
    if (size >= 28) {
      ASSERT_THAT(error, AllOf(HasSubstr("cut short in "), HasSubstr(std::to_string(size))));
    }
  }
}

TEST(Checkpoint, SaysInWhichTensorAFileEnds) {
  const TemporaryFolder folder;
  const TinyFile tiny;
  for (const char *name : {"token_embedding", "layers.1.query", "layers.0.down", "final_norm"}) {
    const size_t start = 28 + tiny.tensors.at(name).second * sizeof(float);
    EXPECT_THAT(errorOf(folder, tiny.bytes.substr(0, start)),
                HasSubstr(std::string("cut short in ") + name + ":"));
  }
}

TEST(Checkpoint, RefusesTrailingBytes) {
  const TemporaryFolder folder;
  EXPECT_THAT(errorOf(folder, TinyFile().bytes + "abc"), HasSubstr("3 bytes follow"));
}

TEST(Checkpoint, RefusesEveryFieldAtItsExtremes) {
  constexpr std::array<const char *, 7> names = {"dim",        "hidden_dim", "n_layers", "n_heads",
                                                 "n_kv_heads", "vocab_size", "seq_len"};
  constexpr int32_t lowest = std::numeric_limits<int32_t>::min();
  constexpr int32_t highest = std::numeric_limits<int32_t>::max();
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  for (size_t field = 0; field < names.size(); ++field)
    for (const int32_t value :
         {lowest, lowest + 1, -1, 0, 1 << 16, 1 << 30, highest - 7, highest}) {
      std::string bytes = TinyFile().bytes;
      std::memcpy(bytes.data() + field * sizeof(value), &value, sizeof(value));
      EXPECT_THAT(errorOf(folder, bytes),
                  AllOf(HasSubstr(names[field]), HasSubstr(std::to_string(value))));
    }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Checkpoint, RefusesHeadersWhoseProductsOverflow) {
  const TemporaryFolder folder;
  for (const int32_t size : {1 << 16, 1 << 24, 1 << 30}) {
    std::string bytes;
    for (int i = 0; i < 7; ++i)
      test::put(bytes, i == 3 || i == 4 ? 1 : size);
    EXPECT_NE(errorOf(folder, bytes), "opened");
    // 2^64 bytes of embedding would wrap around to none.
    bytes.append(4096, '\0');
    EXPECT_NE(errorOf(folder, bytes), "opened");
  }
}

TEST(Checkpoint, RefusesHeadsThatDoNotDivide) {
  const TemporaryFolder folder;
  const auto errorWith = [&](size_t field, int32_t value) {
    std::string bytes = TinyFile().bytes;
    std::memcpy(bytes.data() + field * sizeof(value), &value, sizeof(value));
    return errorOf(folder, bytes);
  };
  EXPECT_THAT(errorWith(3, 3), AllOf(HasSubstr("n_heads"), HasSubstr("divisor of dim, 8")));
  EXPECT_THAT(errorWith(3, 8), AllOf(HasSubstr("n_heads"), HasSubstr("even width")));
  EXPECT_THAT(errorWith(4, 3), AllOf(HasSubstr("n_kv_heads"), HasSubstr("divisor of n_heads, 4")));
}

TEST(Checkpoint, NamesOtherKindsOfFiles) {
  const TemporaryFolder folder;
  const std::string zeros(64, '\0');
  std::string safetensors;
  test::put(safetensors, uint64_t{2});
  safetensors += "{}";
  std::string sentencePiece = {'\x0a', '\x0e', '\x0a', '\x05'};
  sentencePiece += "<unk>\x15" + zeros;
  std::string versioned;
  test::put(versioned, uint32_t{0x616b3432});
  const std::string magicOnly = versioned;
  test::put(versioned, int32_t{2});
  std::string noise = "\x01\xff\x80\x81\x82\xfe\xfd\xfc";
  for (int i = 0; i < 3; ++i)
    noise += noise;
  const std::vector<std::pair<std::string, const char *>> files = {
      {"", "is an empty file"},
      {"GGUF" + zeros, "GGUF file of version 0"},
      {"GGUF", "is cut short in its version"},
      {safetensors + zeros, "is a safetensors file without config.json"},
      {sentencePiece, "is a SentencePiece tokenizer"},
      {test::tokenizerFile(test::marksAndBytes(), 6), "is a tokenizer of llama2.c"},
      {"PK\x03\x04" + zeros, "is a zip archive"},
      {"\x80\x02" + zeros, "is a Python pickle"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"},
      {"\n<!DOCTYPE html><html></html>", "is an HTML page"},
      {"  {\"a\": 1}", "is a JSON file"},
      {"once upon a time\n", "is a text file"},
      {versioned + zeros, "header field dim (offset 8) of a llama2.c checkpoint is 0"},
      {magicOnly, "ends after 4 bytes"},
      {zeros, "is not a checkpoint known here"},
      {std::string("\x01\x00", 2), "is not a checkpoint known here"},
      {noise, "is not a checkpoint known here"},
  };
  for (const auto &[bytes, expected] : files)
    EXPECT_THAT(errorOf(folder, bytes), HasSubstr(expected));
}

TEST(Checkpoint, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const auto messageAt = [](const std::string &path) {
    const auto checkpoint = openCheckpoint(path);
    return checkpoint ? "opened" : checkpoint.error().message;
  };
  EXPECT_THAT(messageAt(folder.path("nothing.bin")), HasSubstr("nothing.bin: no such file"));
  EXPECT_THAT(messageAt(folder.path("")), HasSubstr("is a directory"));
  EXPECT_THAT(messageAt(""), HasSubstr("no such file"));
  EXPECT_THAT(messageAt(std::string("a\0b", 3)), HasSubstr("zero byte"));
  EXPECT_THAT(messageAt("/dev/null"), HasSubstr("device"));
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(messageAt(pipe), HasSubstr("pipe"));
}

TEST(Checkpoint, RefusesTheBrokenFilesOfOtherProjects) {
  HEDDLE_TEST_DATA_FILE(needed, "malformed-gguf");
  size_t count = 0;
  for (const char *folder : {"malformed-gguf", "malformed-st", "gguf-vocab", "expected"})
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(test::dataFolder() / folder)) {
      const auto checkpoint = openCheckpoint(entry.path().string());
      ASSERT_FALSE(checkpoint) << entry.path();
      EXPECT_THAT(checkpoint.error().message, HasSubstr(entry.path().filename().string()));
      ++count;
    }
  EXPECT_GT(count, 10u);
}

} // namespace
} // namespace heddle
