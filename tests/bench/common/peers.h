// Matrix products by other libraries, those that the build found.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heddle::bench {

/// A product [rows, depth] x [depth, columns] that is ready to run.
struct PeerProduct {
  std::function<void()> run;
  std::string error; ///< why there is none, if so
};

struct Peer {
  std::string name, type; ///< of the operands: f32, bf16 or int8
  PeerProduct (*prepare)(int64_t rows, int64_t columns, int64_t depth, int threads);
};

/// Of each library and each type that it knows.
std::vector<Peer> peers();

} // namespace heddle::bench
