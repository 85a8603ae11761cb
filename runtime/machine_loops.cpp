#include "runtime/machine_loops.h"

#include <immintrin.h>

namespace heddle::runtime {
namespace {

#define HEDDLE_AVX2 __attribute__((target("avx2,fma")))
#define HEDDLE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define HEDDLE_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define HEDDLE_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define HEDDLE_AVX_VNNI __attribute__((target("avx2,avxvnni")))

// Chains enough to cover the latency of every multiply-add there is (5 cycles on two units), few
// enough to stay in registers.
constexpr int wideChains = 24;
constexpr int narrowChains = 12;

/// One body for all: `step` extends a chain by one instruction. The empty assembly keeps every
/// chain in a register and every instruction in the loop.
#define HEDDLE_CHAINS(Vector, chains, init, step)                                                  \
  Vector acc[chains];                                                                              \
  _Pragma("clang loop unroll(full)") for (int i = 0; i < chains; ++i) acc[i] = init;               \
  for (int64_t n = 0; n < count; ++n) {                                                            \
    _Pragma("clang loop unroll(full)") for (int i = 0; i < chains; ++i) {                          \
      acc[i] = step;                                                                               \
      asm volatile("" : "+v"(acc[i]));                                                             \
    }                                                                                              \
  }

HEDDLE_AVX2 void f32Narrow(int64_t count) {
  __m256 a = _mm256_set1_ps(1.5f), b = _mm256_set1_ps(0.25f);
  asm volatile("" : "+v"(a), "+v"(b));
  HEDDLE_CHAINS(__m256, narrowChains, _mm256_setzero_ps(), _mm256_fmadd_ps(a, b, acc[i]))
}

HEDDLE_AVX512 void f32Wide(int64_t count) {
  __m512 a = _mm512_set1_ps(1.5f), b = _mm512_set1_ps(0.25f);
  asm volatile("" : "+v"(a), "+v"(b));
  HEDDLE_CHAINS(__m512, wideChains, _mm512_setzero_ps(), _mm512_fmadd_ps(a, b, acc[i]))
}

HEDDLE_BF16 void bf16Wide(int64_t count) {
  __m512i a = _mm512_set1_epi16(0x3fc0), b = _mm512_set1_epi16(0x3e80); // 1.5 and 0.25
  asm volatile("" : "+v"(a), "+v"(b));
  HEDDLE_CHAINS(
      __m512, wideChains, _mm512_setzero_ps(),
      _mm512_dpbf16_ps(acc[i], reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)))
}

HEDDLE_VNNI void int8Wide(int64_t count) {
  __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
  asm volatile("" : "+v"(a), "+v"(b));
  HEDDLE_CHAINS(__m512i, wideChains, _mm512_setzero_si512(), _mm512_dpbusd_epi32(acc[i], a, b))
}

HEDDLE_AVX_VNNI void int8Narrow(int64_t count) {
  __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2);
  asm volatile("" : "+v"(a), "+v"(b));
  HEDDLE_CHAINS(__m256i, narrowChains, _mm256_setzero_si256(),
                _mm256_dpbusd_avx_epi32(acc[i], a, b))
}

HEDDLE_AVX2 void readNarrow(const void *data, int64_t bytes) {
  auto *from = static_cast<const __m256i *>(data);
  __m256i acc[8] = {};
  for (const __m256i *end = from + bytes / 32; from != end; from += 8)
    for (int i = 0; i < 8; ++i)
      acc[i] = _mm256_xor_si256(acc[i], _mm256_load_si256(from + i));
  for (__m256i &each : acc)
    asm volatile("" : "+v"(each));
}

HEDDLE_AVX512 void readWide(const void *data, int64_t bytes) {
  auto *from = static_cast<const __m512i *>(data);
  __m512i acc[8] = {};
  for (const __m512i *end = from + bytes / 64; from != end; from += 8)
    for (int i = 0; i < 8; ++i)
      acc[i] = _mm512_xor_si512(acc[i], _mm512_load_si512(from + i));
  for (__m512i &each : acc)
    asm volatile("" : "+v"(each));
}

} // namespace

MachineLoops machineLoops(Isa isa, const CpuFeatures &features) {
  MachineLoops loops;
  if (isa == Isa::avx2) {
    loops.f32 = {f32Narrow, narrowChains * 8 * 2};
    if (features.avxVnni)
      loops.int8 = {int8Narrow, narrowChains * 32 * 2};
    loops.read = readNarrow;
    return loops;
  }
  loops.f32 = {f32Wide, wideChains * 16 * 2};
  if (isa == Isa::avx512_bf16 && features.avx512Bf16)
    loops.bf16 = {bf16Wide, wideChains * 32 * 2};
  if (isa >= Isa::avx512_vnni && features.avx512Vnni)
    loops.int8 = {int8Wide, wideChains * 64 * 2};
  loops.read = readWide;
  return loops;
}

} // namespace heddle::runtime
