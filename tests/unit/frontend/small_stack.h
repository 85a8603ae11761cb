// Tokenizing where there is little stack, as in a thread of somebody else's.
#pragma once

#include "frontend/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <pthread.h>
#include <string>
#include <time.h>
#include <vector>

namespace heddle::test {

/// What a megabyte may take. The promise is a second of a quiet machine; what grows with the square
/// of the text takes minutes. Neighbours cost up to twice as much, the sanitizers several times.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr double mostSeconds = 20;
#else
constexpr double mostSeconds = 5;
#endif

struct Tokenized {
  std::string error; ///< empty: there was none
  std::vector<int32_t> ids;
  double seconds = 0; ///< of processor time
};

/// Encodes `text` on a stack of 256 KB.
inline Tokenized encodeOnASmallStack(const Tokenizer &tokenizer, const std::string &text,
                                     bool bos = false) {
  struct Work {
    const Tokenizer &tokenizer;
    const std::string &text;
    bool bos;
    Tokenized result;
  } work{tokenizer, text, bos, {}};
  const auto run = [](void *data) -> void * {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    Work &own = *static_cast<Work *>(data);
    const double start = now();
    auto ids = own.tokenizer.encode(own.text, own.bos);
    own.result.seconds = now() - start;
    if (ids)
      own.result.ids = *std::move(ids);
    else
      own.result.error = ids.error().message;
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return work.result;
}

/// Expects that a megabyte of any one of some characters, or of two in turn, takes no more.
inline void expectQuickOnLongRuns(const Tokenizer &tokenizer) {
  for (const char *character : {"a", " ", "1", "!", "\n", "\u00e9", "\xff", "'", "\u4e2d",
                                "\U0001f600", "\u0301", "a ", "1a", ". "}) {
    std::string text;
    while (text.size() < 1 << 20)
      text += character;
    const Tokenized result = encodeOnASmallStack(tokenizer, text);
    EXPECT_EQ(result.error, "") << testing::PrintToString(character);
    EXPECT_LT(result.seconds, mostSeconds) << testing::PrintToString(character);
  }
}

} // namespace heddle::test
