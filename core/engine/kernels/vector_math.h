// SPDX-License-Identifier: Apache-2.0
// 16-float vectors for the files built once per instruction set. All in an unnamed namespace and free of library
// templates: nothing built for AVX-512 may be merged by the linker into code that runs elsewhere.
#pragma once
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace mw::engine {
namespace {

using i64 = std::int64_t;
using u64 = std::uint64_t;
constexpr i64 kLanes = 16;
typedef float V __attribute__((vector_size(64)));
typedef std::int32_t I __attribute__((vector_size(64)));
typedef std::uint16_t H __attribute__((vector_size(32)));
typedef double D __attribute__((vector_size(64)));

[[gnu::always_inline]] inline V splat(float x) {
  return V{} + x;
}
[[gnu::always_inline]] inline V load(const float* p) {
  V v;
  memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline void store(float* p, V v) {
  memcpy(p, &v, sizeof v);
}
[[gnu::always_inline]] inline V load_part(const float* p, i64 n) {
  V v{};
  memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
  return v;
}
[[gnu::always_inline]] inline void store_part(float* p, V v, i64 n) {
  memcpy(p, &v, static_cast<size_t>(n) * sizeof(float));
}

// a b + c, rounded once wherever the instruction set can. Left to the compiler, it would be rounded once in some copies
// of an inlined function and twice in others, and a row's bits would depend on the rows beside it.
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// Pairwise, in a fixed order.
[[gnu::always_inline]] inline float sum(V v) {
  float f[16];
  memcpy(f, &v, sizeof f);
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) f[i] += f[i + width];
  return f[0];
}
[[gnu::always_inline]] inline float highest(V v) {
  float f[16];
  memcpy(f, &v, sizeof f);
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) f[i] = f[i] > f[i + width] ? f[i] : f[i + width];
  return f[0];
}

// a < b ? yes : no. GCC 12 compares vectors that are wider than the registers one lane at a time, ten times as slowly.
[[gnu::always_inline]] inline V if_less(V a, V b, V yes, V no) {
#if defined(__AVX512F__)
  return a < b ? yes : no;
#else
#if defined(__AVX__)
  typedef float Part __attribute__((vector_size(32)));
#else
  typedef float Part __attribute__((vector_size(16)));
#endif
  constexpr int kParts = sizeof(V) / sizeof(Part);
  Part in[4][kParts], out[kParts];
  memcpy(in[0], &a, sizeof a);
  memcpy(in[1], &b, sizeof b);
  memcpy(in[2], &yes, sizeof yes);
  memcpy(in[3], &no, sizeof no);
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) out[i] = in[0][i] < in[1][i] ? in[2][i] : in[3][i];
  V v;
  memcpy(&v, out, sizeof v);
  return v;
#endif
}
[[gnu::always_inline]] inline V larger(V a, V b) {
  return if_less(b, a, a, b);
}

// e^x, relative error below 1.2e-7 on [-87.3, 88.7], clamped outside: x = n ln2 + r, degree-6 minimax in r.
[[gnu::always_inline]] inline V exp(V x) {
  x = if_less(x, splat(-87.3f), splat(-87.3f), x);  // this order of comparison keeps NaN
  x = if_less(splat(88.7f), x, splat(88.7f), x);
  const V shifter = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to the nearest integer
  const V z = x * 1.44269504f + shifter;
  const V n = z - shifter;
  const V r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  V p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  I bits;
  memcpy(&bits, &z, sizeof bits);
  bits = (bits << 23) + (127 << 23);  // the low bits of z are n; the shifter's own bits fall off the left
  V scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// 2^x for x <= 0, relative error below 3e-7; 0 below 2^-126.
[[gnu::always_inline]] inline V power_of_two(V x) {
  const V shifter = splat(12582912.0f);
  x = if_less(x, splat(-127.0f), splat(-127.0f), x);  // this order of comparison keeps NaN
  const V z = x + shifter, f = x - (z - shifter);
  V p = splat(1.32764725e-3f);
  p = p * f + 9.67554096e-3f;
  p = p * f + 5.55071309e-2f;
  p = p * f + 2.40221202e-1f;
  p = p * f + 6.93146944e-1f;
  p = p * f + 1.00000012f;
  I bits;
  memcpy(&bits, &z, sizeof bits);
  bits = (bits << 23) + (127 << 23);  // as in exp(); 2^-127 becomes 0
  V scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// tanh: an odd polynomial where 1 - 2/(e^2x + 1) would cancel; relative error below 2e-7 everywhere
[[gnu::always_inline]] inline V tanh(V x) {
  const V s = x * x;
  V p = splat(-0.0054534855f);
  p = p * s + 0.020412905f;
  p = p * s - 0.05367053f;
  p = p * s + 0.13330624f;
  p = p * s - 0.33333254f;
  const V near = x + x * s * p;
  const V far = 1.0f - 2.0f / (exp(x + x) + 1.0f);
  return if_less(s, splat(0.43f), near, far);
}

#if defined(__x86_64__)
// vdpbf16ps takes denormals for zeros and writes zeros for them, whatever the thread's settings are. Products of bf16
// by FMA do as it does while one of these exists.
class DenormalsAreZeros {
 public:
  DenormalsAreZeros() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }  // FTZ and DAZ
  ~DenormalsAreZeros() { _mm_setcsr(before_); }
  DenormalsAreZeros(const DenormalsAreZeros&) = delete;
  DenormalsAreZeros& operator=(const DenormalsAreZeros&) = delete;

 private:
  unsigned before_;
};
#else
struct DenormalsAreZeros {
  DenormalsAreZeros() {}
};
#endif

// Calls body(first, count) over [0, n): for full vectors, then for one partial vector.
template <class Body>
[[gnu::always_inline]] inline void for_vectors(i64 n, Body body) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

[[gnu::always_inline]] inline V load_n(const float* p, i64 n) {
  return n == kLanes ? load(p) : load_part(p, n);
}
[[gnu::always_inline]] inline void store_n(float* p, V v, i64 n) {
  if (n == kLanes)
    store(p, v);
  else
    store_part(p, v, n);
}

}  // namespace
}  // namespace mw::engine
