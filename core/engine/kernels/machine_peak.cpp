// SPDX-License-Identifier: Apache-2.0
// Functions with a target attribute exceed the baseline instruction set; they run only if usable_cpu() permits it.
#include "core/engine/kernels/machine_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/units.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/onednn_gemm.h"
#include "core/engine/kernels/packed.h"

namespace mw::engine {
namespace {

constexpr int kChains = 24;                  // independent sums, enough to hide the latency
constexpr std::int64_t kRounds = 5'000'000;  // about 30 ms, after which a woken worker has its own core

// Returns the best rate of the repetitions within `seconds`; fn(thread) does `work` units.
template <class F>
double best_rate(ThreadPool& pool, double seconds, double work, F fn) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (const auto begin = Clock::now(); seconds_since(begin) < seconds;) {
    const auto start = Clock::now();
    pool.parallel_for(pool.threads(), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) fn(t);
    });
    best = std::max(best, work * pool.threads() / seconds_since(start));
  }
  return best;
}

#if defined(__x86_64__)

// "+v" keeps each sum in its register, so that nothing is folded or stored.
[[gnu::target("avx512f")]] void fma_avx512() {
  __m512 sum[kChains] = {};
  const __m512 x = _mm512_set1_ps(0.5f);
  for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      sum[c] = _mm512_fmadd_ps(x, x, sum[c]);
      asm volatile("" : "+v"(sum[c]));
    }
  }
}

[[gnu::target("avx512f,avx512bf16")]] void dot_avx512_bf16() {
  __m512 sum[kChains] = {};
  const auto x = (__m512bh)_mm512_set1_epi16(0x3f00);  // 0.5
  for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      sum[c] = _mm512_dpbf16_ps(sum[c], x, x);
      asm volatile("" : "+v"(sum[c]));
    }
  }
}

constexpr int kChainsAvx2 = 12;  // of 16 registers
[[gnu::target("avx2,fma")]] void fma_avx2() {
  __m256 sum[kChainsAvx2] = {};
  const __m256 x = _mm256_set1_ps(0.5f);
  for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChainsAvx2; ++c) {
      sum[c] = _mm256_fmadd_ps(x, x, sum[c]);
      asm volatile("" : "+v"(sum[c]));
    }
  }
}

// Products through oneDNN whose operands stay in the L2 cache.
constexpr std::int64_t kAmxDepth512 = 512, kAmxProducts = 5'000;
constexpr double kAmxFlops = 2.0 * kAmxRows[0] * kPanelRows * kAmxDepth512 * kAmxProducts;
void multiply_amx() {
  struct alignas(64) Operands {
    std::uint16_t a[kAmxRows[0] * kAmxDepth512], panel[kPanelRows * kAmxDepth512];
    float tile[kAmxRows[0] * kPanelRows];
    std::byte scratch[kOnednnScratchBytes];
  };
  const auto operands = std::make_unique<Operands>();
  for (std::uint16_t& a : operands->a) a = 0x3f00;  // 0.5
  for (std::uint16_t& b : operands->panel) b = 0x3f00;
  PanelProduct& product = panel_product({0, 1, kAmxDepth512});
  for (std::int64_t i = 0; i < kAmxProducts; ++i)
    run(product, {operands->a, operands->panel, operands->tile, operands->scratch});
}

[[gnu::target("avx512f")]] void read_avx512(const std::int32_t* p, std::int64_t count) {
  __m512i sum[4] = {};
  for (std::int64_t i = 0; i + 64 <= count; i += 64)
    for (int c = 0; c < 4; ++c) sum[c] = _mm512_add_epi32(sum[c], _mm512_loadu_si512(p + i + 16 * c));
  for (const __m512i& s : sum) asm volatile("" : : "v"(s));
}

#elif defined(__aarch64__)

void fma_neon() {
  float32x4_t sum[kChains] = {};
  const float32x4_t x = vdupq_n_f32(0.5f);
  for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      sum[c] = vfmaq_f32(sum[c], x, x);
      asm volatile("" : "+w"(sum[c]));
    }
  }
}

[[gnu::target("arch=armv8.2-a+bf16")]] void dot_neon_bf16() {
  float32x4_t sum[kChains] = {};
  std::uint16_t bits = 0x3f00;    // 0.5
  asm volatile("" : "+r"(bits));  // GCC 12 would write a constant with an instruction of FEAT_FP16
  const bfloat16x8_t x = vreinterpretq_bf16_u16(vdupq_n_u16(bits));
  for (std::int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      sum[c] = vbfdotq_f32(sum[c], x, x);
      asm volatile("" : "+w"(sum[c]));
    }
  }
}

#endif

void read_plain(const std::int32_t* p, std::int64_t count) {
  typedef std::int32_t Four __attribute__((vector_size(16), may_alias));
  Four sum[8] = {};
  for (std::int64_t i = 0; i + 32 <= count; i += 32)
    for (int c = 0; c < 8; ++c) sum[c] += *reinterpret_cast<const Four*>(p + i + 4 * c);
  for (const Four& s : sum) asm volatile("" : : "x"(s));
}

// Reads memory of the engine's arena, because the page size affects the rate.
double read_rate(Device& device, double seconds, std::int64_t bytes, int passes) {
  const int threads = device.pool.threads();
  const std::int64_t each = bytes / threads / 64 * 16;  // elements per thread
  const DeviceBuffer<std::int32_t> data(device.arena,
                                        float_allocation(MemoryCategory::workspace, "read bandwidth", each * threads));
  std::fill_n(data.data(), data.size(), 1);
  auto* read = read_plain;
#if defined(__x86_64__)
  if (usable_cpu() >= Cpu::avx512) read = read_avx512;
#endif
  return best_rate(device.pool, seconds, 4.0 * static_cast<double>(each * passes), [&](std::int64_t t) {
    for (int pass = 0; pass < passes; ++pass) read(data.data() + t * each, each);
  });
}

}  // namespace

MachinePeak measure_machine_peak(Device& device, double seconds) {
  MachinePeak peak;
  ThreadPool alone(1);
  const auto arithmetic = [&](ThreadPool& pool, double flops, void (*fn)()) {
    return best_rate(pool, seconds, flops * static_cast<double>(kRounds), [&](std::int64_t) { fn(); });
  };
  const Cpu cpu = usable_cpu();
  std::pair<double, void (*)()> f32{0, nullptr}, bf16{0, nullptr};  // operations of one round
#if defined(__x86_64__)
  if (cpu >= Cpu::avx512)
    f32 = {2.0 * 16 * kChains, fma_avx512};
  else if (cpu >= Cpu::avx2)
    f32 = {2.0 * 8 * kChainsAvx2, fma_avx2};
  if (cpu == Cpu::avx512_bf16) bf16 = {2.0 * 32 * kChains, dot_avx512_bf16};
#elif defined(__aarch64__)
  f32 = {2.0 * 4 * kChains, fma_neon};
  if (cpu == Cpu::neon_bf16) bf16 = {2.0 * 8 * kChains, dot_neon_bf16};
#endif
  if (f32.second) {
    const double one = arithmetic(alone, f32.first, f32.second);
    peak.f32_flops = arithmetic(device.pool, f32.first, f32.second);
    peak.threads_worth = peak.f32_flops / one;
  }
  if (bf16.second) peak.bf16_flops = arithmetic(device.pool, bf16.first, bf16.second);
#if defined(__x86_64__)
  if (cpu == Cpu::amx)
    peak.bf16_flops = best_rate(device.pool, seconds, kAmxFlops, [](std::int64_t) { multiply_amx(); });
#endif
  peak.cache_bytes = read_rate(device, seconds, std::int64_t{16} << 20, 200);
  peak.dram_bytes = measure_dram_read(device, seconds);
  return peak;
}

double measure_dram_read(Device& device, double seconds) {
  return read_rate(device, seconds, std::int64_t{1} << 30, 1);
}

}  // namespace mw::engine
