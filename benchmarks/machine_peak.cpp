// SPDX-License-Identifier: GPL-3.0-or-later
// Only functions marked with a target use more than the baseline, and only where usable_cpu() says so.
#include "benchmarks/machine_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/engine/kernels/cpu.h"

namespace mw {
namespace {

constexpr int kTries = 7, kChains = 24;  // independent sums, enough to hide any latency
constexpr std::int64_t kRounds = 500'000;

// Best rate over the tries; fn(thread) does `work` of it.
template <class F>
double best_rate(engine::ThreadPool& pool, int tries, double work, F fn) {
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(pool.threads(), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) fn(t);
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, work * pool.threads() / took.count());
  }
  return best;
}

#if defined(__x86_64__)

// "+v" keeps each sum in its register: nothing is folded, nothing is stored.
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

[[gnu::target("avx512f")]] void read_avx512(const std::int32_t* p, std::int64_t count) {
  __m512i sum[4] = {};
  for (std::int64_t i = 0; i + 64 <= count; i += 64)
    for (int c = 0; c < 4; ++c) sum[c] = _mm512_add_epi32(sum[c], _mm512_loadu_si512(p + i + 16 * c));
  for (const __m512i& s : sum) asm volatile("" : : "v"(s));
}

#endif

void read_plain(const std::int32_t* p, std::int64_t count) {
  typedef std::int32_t Four __attribute__((vector_size(16), may_alias));
  Four sum[8] = {};
  for (std::int64_t i = 0; i + 32 <= count; i += 32)
    for (int c = 0; c < 8; ++c) sum[c] += *reinterpret_cast<const Four*>(p + i + 4 * c);
  for (const Four& s : sum) asm volatile("" : : "x"(s));
}

double read_rate(engine::ThreadPool& pool, std::int64_t bytes, int passes) {
  const std::int64_t each = bytes / pool.threads() / 64 * 16;  // elements of a thread
  const std::vector<std::int32_t> data(static_cast<size_t>(each * pool.threads()), 1);
  auto* read = read_plain;
#if defined(__x86_64__)
  if (engine::usable_cpu() >= engine::Cpu::avx512) read = read_avx512;
#endif
  return best_rate(pool, kTries, 4.0 * static_cast<double>(each * passes), [&](std::int64_t t) {
    for (int pass = 0; pass < passes; ++pass) read(data.data() + t * each, each);
  });
}

}  // namespace

MachinePeak measure_machine_peak(engine::ThreadPool& pool) {
  MachinePeak peak;
#if defined(__x86_64__)
  const auto arithmetic = [&](double flops, void (*fn)()) {
    return best_rate(pool, kTries, flops * static_cast<double>(kRounds), [&](std::int64_t) { fn(); });
  };
  const engine::Cpu cpu = engine::usable_cpu();
  if (cpu >= engine::Cpu::avx512)
    peak.f32_flops = arithmetic(2.0 * 16 * kChains, fma_avx512);
  else if (cpu >= engine::Cpu::avx2)
    peak.f32_flops = arithmetic(2.0 * 8 * kChainsAvx2, fma_avx2);
  if (cpu >= engine::Cpu::avx512_bf16) peak.bf16_flops = arithmetic(2.0 * 32 * kChains, dot_avx512_bf16);
#endif
  peak.cache_bytes = read_rate(pool, std::int64_t{16} << 20, 20);
  peak.dram_bytes = read_rate(pool, std::int64_t{1} << 30, 1);
  return peak;
}

}  // namespace mw
