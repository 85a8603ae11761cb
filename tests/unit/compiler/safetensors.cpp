// Eight bytes of length, a header in JSON, then the tensors.
#include "tests/unit/compiler/safetensors.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace heddle::test {

std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::shared_ptr<runtime::WeightStore>
safetensorsWeights(const std::filesystem::path &path,
                   const std::function<std::string(const std::string &)> &rename) {
  auto bytes = std::make_shared<const std::string>(contentOf(path));
  auto store = std::make_shared<runtime::WeightStore>();
  store->keep(bytes);
  uint64_t length = 0;
  std::memcpy(&length, bytes->data(), sizeof length);
  auto header = llvm::json::parse(llvm::StringRef(bytes->data() + 8, length));
  if (!header) {
    ADD_FAILURE() << path << ": " << llvm::toString(header.takeError());
    return store;
  }
  for (const auto &[key, value] : *header->getAsObject()) {
    const auto *tensor = value.getAsObject();
    std::string name = rename(key.str());
    if (name.empty() || key.str() == "__metadata__")
      continue;
    runtime::MappedParam param;
    param.type = *tensor->getString("dtype") == "BF16" ? runtime::ElementType::bf16
                                                       : runtime::ElementType::f32;
    for (const auto &size : *tensor->getArray("shape"))
      param.shape.push_back(*size.getAsInteger());
    int64_t offset = *(*tensor->getArray("data_offsets"))[0].getAsInteger();
    param.data = bytes->data() + 8 + length + offset;
    EXPECT_TRUE(store->add(name, param)) << name;
  }
  return store;
}

} // namespace heddle::test
