// What a fuzz target is: a reader, fed with any bytes, and the inputs it starts from. target.cpp
// makes a libFuzzer program of it that also fails where one input takes too long or too much
// memory.
#pragma once

#include "runtime/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

/// The target: reads `input` and calls `require` for all that holds whatever the input is.
void read(std::string_view input);

/// Small inputs that are read to their end.
std::vector<std::string> seeds();

/// Ends the program with `what` unless it holds; libFuzzer then keeps the input.
void require(bool holds, const char *what);

/// An error is for people: one line, and no bug of ours.
void requireClear(const Error &error);

inline std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

} // namespace heddle::fuzz
