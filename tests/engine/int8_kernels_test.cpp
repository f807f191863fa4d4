// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels for int8 weights of other classes beside those of AVX2. On processors without AVX-VNNI its one
// instruction is emulated here, so that its kernels run wherever AVX2 does.
#if defined(__x86_64__)
#include <cpuid.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {
namespace {

volatile int emulated = 0;  // instructions

// A YMM register in a signal's frame: its low half as FXSAVE has it, its high half in XSAVE's standard format (Intel's
// manual, volume 1, chapter 13).
struct Registers {
  std::byte* frame;
  std::byte* high;
  explicit Registers(const ucontext_t& context) : frame(reinterpret_cast<std::byte*>(context.uc_mcontext.fpregs)) {
    unsigned size = 0, offset = 0, c = 0, d = 0;
    __get_cpuid_count(0xd, 2, &size, &offset, &c, &d);
    high = frame + offset;
  }
  std::array<std::int16_t, 16> read(int i) const {
    std::array<std::int16_t, 16> out;
    std::memcpy(out.data(), frame + 160 + 16 * i, 16);
    std::memcpy(out.data() + 8, high + 16 * i, 16);
    return out;
  }
  void write(int i, const std::array<std::int32_t, 8>& value) const {
    std::memcpy(frame + 160 + 16 * i, value.data(), 16);
    std::memcpy(high + 16 * i, value.data() + 4, 16);
  }
};

// VEX.256.66.0F38.W0 52 /r between registers: vpdpwssd ymm1, ymm2, ymm3. Another instruction stops the program.
void emulate(int, siginfo_t*, void* at) {
  auto& context = *static_cast<ucontext_t*>(at);
  greg_t& next = context.uc_mcontext.gregs[REG_RIP];
  const auto* const code = reinterpret_cast<const unsigned char*>(next);
  const bool known =
      code[0] == 0xc4 && (code[1] & 0x1f) == 2 && (code[2] & 0x87) == 5 && code[3] == 0x52 && (code[4] & 0xc0) == 0xc0;
  if (!known) {
    signal(SIGILL, SIG_DFL);
    return;
  }
  const int to = (code[4] >> 3 & 7) | (~code[1] >> 4 & 8), first = ~code[2] >> 3 & 15,
            second = (code[4] & 7) | (~code[1] >> 2 & 8);
  const Registers registers(context);
  std::array<std::int32_t, 8> sums;
  const auto before = registers.read(to), a = registers.read(first), b = registers.read(second);
  std::memcpy(sums.data(), before.data(), sizeof sums);
  for (size_t i = 0; i < 8; ++i) sums[i] += a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
  registers.write(to, sums);
  next += 5;
  emulated = emulated + 1;
}

class AvxVnni : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has(Cpu::avx2)) GTEST_SKIP() << "no AVX2 on this processor";
    if (has(Cpu::avx_vnni)) return;
    struct sigaction action {};
    action.sa_sigaction = emulate;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before_);
  }
  void TearDown() override {
    if (has(Cpu::avx2) && !has(Cpu::avx_vnni)) sigaction(SIGILL, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

struct Operands {
  std::vector<float> x;
  std::vector<std::int8_t> w;
  std::vector<std::uint16_t> scales;
};

Operands operands(const GemmShape& shape) {
  const Rng rng{7};
  const auto panels = static_cast<size_t>((shape.n + kPanelRows - 1) / kPanelRows * kPanelRows);
  Operands o{std::vector<float>(static_cast<size_t>(shape.m * shape.k)),
             std::vector<std::int8_t>(panels * static_cast<size_t>(shape.k)),
             std::vector<std::uint16_t>(panels * static_cast<size_t>(groups_of(shape.k)))};
  for (size_t i = 0; i < o.x.size(); ++i) o.x[i] = rng.normal_at(i);
  for (size_t i = 0; i < o.w.size(); ++i) o.w[i] = static_cast<std::int8_t>(rng.uniform_at(i) * 255 - 127);
  for (size_t i = 0; i < o.scales.size(); ++i) o.scales[i] = static_cast<std::uint16_t>(0x3c00 + i % 128);
  return o;
}

std::vector<float> product(const PackedKernels& kernels, const GemmShape& shape, const Operands& o) {
  std::vector<std::int16_t> a(o.x.size());
  std::vector<float> a_scales(static_cast<size_t>(shape.m * groups_of(shape.k))),
      out(static_cast<size_t>(shape.m * shape.n), -1.0f);
  kernels.quantise_rows(shape.m, shape.k, o.x.data(), a.data(), a_scales.data());
  kernels.int8_rows(shape, a.data(), a_scales.data(), {o.w.data(), o.scales.data()},
                    {out.data(), shape.n, StoreMode::write});
  return out;
}

TEST_F(AvxVnni, ProductsWithInt8WeightsHaveTheBitsOfAvx2) {
  for (std::int64_t rows = 1; rows <= kMaxSkinnyRows; ++rows)
    for (const std::int64_t depth : {2, 66, 256}) {
      const GemmShape shape{rows, 40, depth};
      const Operands o = operands(shape);
      const std::vector<float> expected = product(kernels_avx2().bf16.packed, shape, o);
      emulated = 0;
      EXPECT_EQ(product(kernels_avx_vnni().bf16.packed, shape, o), expected) << rows << " rows, depth " << depth;
      EXPECT_TRUE(emulated > 0 || has(Cpu::avx_vnni));
    }
}

TEST(Int8Kernels, EveryClassHasTheBitsOfAvx2) {
  struct Class {
    Cpu cpu;
    const CpuKernels& (*kernels)();
  };
  if (!has(Cpu::avx512)) GTEST_SKIP() << "no AVX-512 on this processor";
  const GemmShape shape{kMaxSkinnyRows, 40, 1152};
  const Operands o = operands(shape);
  const std::vector<float> expected = product(kernels_avx2().bf16.packed, shape, o);
  for (const Class& c : {Class{Cpu::avx512, kernels_avx512}, Class{Cpu::avx512_vnni, kernels_avx512_vnni},
                         Class{Cpu::avx512_bf16, kernels_avx512_bf16}})
    if (has(c.cpu)) {
      EXPECT_EQ(product(c.kernels().bf16.packed, shape, o), expected) << to_string(c.cpu);
    }
}

}  // namespace
}  // namespace mw::engine
#endif
