#include "tests/bench/common/peers.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#ifdef HEDDLE_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef HEDDLE_BENCH_ONEDNN
#include <dlfcn.h>
#include <dnnl.hpp>
#endif

namespace heddle::bench {

#ifdef HEDDLE_BENCH_OPENBLAS
/// Weights stand as in a model, [columns, depth].
static PeerProduct prepareOpenBlas(int64_t rows, int64_t columns, int64_t depth, int threads) {
  struct Operands {
    std::vector<float> input, weight, result;
  };
  auto operands = std::make_shared<Operands>(Operands{std::vector<float>(rows * depth, 0.01f),
                                                      std::vector<float>(columns * depth, 0.02f),
                                                      std::vector<float>(rows * columns)});
  return {[=] {
            openblas_set_num_threads(threads);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, int(rows), int(columns),
                        int(depth), 1, operands->input.data(), int(depth), operands->weight.data(),
                        int(depth), 0, operands->result.data(), int(columns));
          },
          ""};
}
#endif

#ifdef HEDDLE_BENCH_ONEDNN
/// oneDNN takes its threads from the OpenMP it was linked with; null of other builds of it.
static void (*openMpThreads())(int) {
  return reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
}

/// With weights in the order oneDNN likes best: packed before, as Heddle's are.
template <dnnl_data_type_t input, dnnl_data_type_t weight, dnnl_data_type_t result>
static PeerProduct prepareOneDnn(int64_t rows, int64_t columns, int64_t depth, int threads) {
  using Type = dnnl::memory::data_type;
  using Tag = dnnl::memory::format_tag;
  auto *setThreads = openMpThreads();
  if (!setThreads)
    return {nullptr, "this oneDNN does not take its threads from OpenMP"};
  setThreads(threads);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::memory::desc a({rows, depth}, Type(input), Tag::ab);
  dnnl::memory::desc b({depth, columns}, Type(weight), Tag::any);
  dnnl::memory::desc c({rows, columns}, Type(result), Tag::ab);
  dnnl::matmul::primitive_desc described(dnnl::matmul::desc(a, b, c), engine, true);
  if (!described)
    return {nullptr, "oneDNN has no such product here"};
  dnnl::memory source(a, engine), packed(described.weights_desc(), engine), target(c, engine);
  // Any bytes do that make no infinities.
  for (const dnnl::memory *each : {&source, &packed, &target}) {
    auto *data = static_cast<uint8_t *>(each->get_data_handle());
    std::fill(data, data + each->get_desc().get_size(), uint8_t(60));
  }
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, target}};
  return {[=, product = dnnl::matmul(described), stream = dnnl::stream(engine)]() mutable {
            setThreads(threads);
            product.execute(stream, arguments);
            stream.wait();
          },
          ""};
}
#endif

std::vector<Peer> peers() {
  std::vector<Peer> all;
#ifdef HEDDLE_BENCH_OPENBLAS
  all.push_back({"openblas", "f32", prepareOpenBlas});
#endif
#ifdef HEDDLE_BENCH_ONEDNN
  all.push_back({"onednn", "f32", prepareOneDnn<dnnl_f32, dnnl_f32, dnnl_f32>});
  all.push_back({"onednn", "bf16", prepareOneDnn<dnnl_bf16, dnnl_bf16, dnnl_f32>});
  all.push_back({"onednn", "int8", prepareOneDnn<dnnl_u8, dnnl_s8, dnnl_s32>});
#endif
  return all;
}

} // namespace heddle::bench
