#include "runtime/machine.h"

#include <gtest/gtest.h>

using namespace heddle::runtime;

namespace {

TEST(Isa, NamesAreThoseOfTheCommandLine) {
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16})
    EXPECT_EQ(findIsa(isaName(isa)), isa);
  EXPECT_EQ(isaName(Isa::avx512_bf16), "avx512_bf16");
  EXPECT_EQ(findIsa("sse2"), std::nullopt);
  EXPECT_EQ(findIsa(""), std::nullopt);
}

TEST(Isa, BestAndClampFollowTheFeatures) {
  CpuFeatures none, haswell{.avx2 = true}, skylake{.avx2 = true, .avx512 = true},
      iceLake{.avx2 = true, .avx512 = true, .avx512Vnni = true},
      zen4{.avx2 = true, .avx512 = true, .avx512Bf16 = true, .avx512Vnni = true};
  EXPECT_EQ(bestIsa(iceLake), Isa::avx512_vnni);
  EXPECT_EQ(bestIsa(none), std::nullopt);
  EXPECT_EQ(bestIsa(haswell), Isa::avx2);
  EXPECT_EQ(bestIsa(skylake), Isa::avx512);
  EXPECT_EQ(bestIsa(zen4), Isa::avx512_bf16);
  EXPECT_EQ(clampIsa(Isa::avx512_bf16, none), std::nullopt);
  EXPECT_EQ(clampIsa(Isa::avx512_bf16, skylake), Isa::avx512);
  EXPECT_EQ(clampIsa(Isa::avx2, zen4), Isa::avx2);
}

TEST(MachineLoops, AreThereWhereTheInstructionsAre) {
  CpuFeatures skylake{.avx2 = true, .avx512 = true}, alder{.avx2 = true, .avxVnni = true},
      zen4{.avx2 = true, .avx512 = true, .avx512Bf16 = true, .avx512Vnni = true};
  MachineLoops loops = machineLoops(Isa::avx512, skylake);
  EXPECT_NE(loops.f32.run, nullptr);
  EXPECT_EQ(loops.bf16.run, nullptr);
  EXPECT_EQ(loops.int8.run, nullptr);
  loops = machineLoops(Isa::avx2, alder);
  EXPECT_NE(loops.int8.run, nullptr);
  EXPECT_EQ(loops.bf16.run, nullptr);
  loops = machineLoops(Isa::avx2, zen4);
  EXPECT_EQ(loops.int8.run, nullptr);
  loops = machineLoops(Isa::avx512_bf16, zen4);
  EXPECT_NE(loops.bf16.run, nullptr);
  EXPECT_NE(loops.int8.run, nullptr);
  EXPECT_NE(loops.read, nullptr);
}

void expectRate(const Rate &rate) {
  EXPECT_GT(rate.median, 0);
  EXPECT_GE(rate.best, rate.median);
  EXPECT_GE(rate.spread, (rate.best - rate.median) / rate.median);
}

TEST(MachineProbe, MeasuresWhatTheProcessorHas) {
  if (!bestIsa())
    GTEST_SKIP() << "the processor has no AVX2";
  auto probe = MachineProbe::create(2);
  ASSERT_TRUE(probe);
  EXPECT_EQ((*probe)->isa(), *bestIsa());
  EXPECT_EQ((*probe)->threads(), 2);
  EXPECT_GE((*probe)->readBytes(), int64_t{256} << 20);
  MachineLimits limits = (*probe)->measure();
  ASSERT_TRUE(limits.f32);
  expectRate(limits.f32->core);
  expectRate(limits.f32->all);
  expectRate(limits.read.core);
  expectRate(limits.read.all);
  EXPECT_EQ(limits.bf16.has_value(), *bestIsa() == Isa::avx512_bf16);
  if (limits.bf16)
    expectRate(limits.bf16->all);
  if (limits.int8)
    expectRate(limits.int8->all);
  // No core does more than 128 multiply-adds of f32 a cycle, none runs below 0.1 GHz; what lies
  // outside counts wrongly.
  EXPECT_GT(limits.f32->core.best, 0.1);
  EXPECT_LT(limits.f32->core.best, 2000);
}

TEST(MachineLoops, RunOnThisProcessor) {
  if (!bestIsa())
    GTEST_SKIP() << "the processor has no AVX2";
  alignas(64) static std::byte data[4096] = {};
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16}) {
    if (isa > *bestIsa())
      continue;
    MachineLoops loops = machineLoops(isa, cpuFeatures());
    for (const ArithmeticLoop &loop : {loops.f32, loops.bf16, loops.int8}) {
      EXPECT_EQ(loop.run == nullptr, loop.operations == 0);
      if (loop.run)
        loop.run(100);
    }
    loops.read(data, sizeof data);
  }
}

} // namespace
