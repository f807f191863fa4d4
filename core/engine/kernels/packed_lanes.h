// SPDX-License-Identifier: Apache-2.0
// The registers that packed_bodies.h, packed_f32.h and packed_int8.h are written for, one set for each build: baseline
// x86-64, AVX2, AVX-512 and NEON, the latter also with dot products of bytes and of bf16. All in an unnamed namespace,
// as in vector_math.h.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/vector_math.h"

namespace mw::engine {
namespace {

// Bytes of a register; rows of a tile, whose sums with two vectors of columns take 24 of 32 or 12 of 16 registers.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kTall = 12;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kTall = 6;
#elif defined(__x86_64__)
constexpr int kBytes = 16, kTall = 6;
#else
constexpr int kBytes = 16, kTall = 12;
#endif
constexpr int kWidth = kBytes / 4;                              // floats of a register
constexpr int kAcross = static_cast<int>(kPanelRows) / kWidth;  // registers of a panel's columns
// Tiles of up to this number of rows take all columns of a panel, so that enough independent sums hide the latency of a
// product.
constexpr int kWideTileRows = kBytes == 16 ? kTall / 6 : kTall * 2 / kAcross;

// Products of a pair of depth: one of its even and one of its odd values, or one of whole pairs.
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
constexpr int kParts = 1;
#else
constexpr int kParts = 2;
#endif

typedef float F __attribute__((vector_size(kBytes)));
typedef std::uint32_t W __attribute__((vector_size(kBytes)));
typedef std::int32_t S __attribute__((vector_size(kBytes)));
typedef std::uint16_t Words __attribute__((vector_size(kBytes)));
typedef std::uint16_t Halves __attribute__((vector_size(kBytes / 2)));

// The instructions of products of f32 and int8, in words.
#if defined(__AVX512VNNI__)
constexpr const char *kFmaName = "AVX-512 FMA", *kInt8Name = "AVX-512 vpdpwssd";
#elif defined(__AVX512F__)
constexpr const char *kFmaName = "AVX-512 FMA", *kInt8Name = "AVX-512 vpmaddwd";
#elif defined(__AVXVNNI__)
constexpr const char *kFmaName = "AVX2 FMA", *kInt8Name = "AVX-VNNI vpdpwssd";
#elif defined(__AVX2__)
constexpr const char *kFmaName = "AVX2 FMA", *kInt8Name = "AVX2 vpmaddwd";
#elif defined(__x86_64__)
constexpr const char *kFmaName = "SSE2", *kInt8Name = "SSE2 pmaddwd";
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
constexpr const char *kFmaName = "NEON FMA", *kInt8Name = "sdot and usdot";
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr const char *kFmaName = "NEON FMA", *kInt8Name = "sdot";
#else
constexpr const char *kFmaName = "NEON FMA", *kInt8Name = "NEON multiplication";
#endif

constexpr i64 lesser(i64 a, i64 b) {
  return a < b ? a : b;
}

template <class T>
[[gnu::always_inline]] inline T read(const void* at) {
  T v;
  memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void write(void* at, T v) {
  memcpy(at, &v, sizeof v);
}
// The first n lanes; the others are zero.
template <class T>
[[gnu::always_inline]] inline T read_part(const void* at, i64 n) {
  T v{};
  memcpy(&v, at, static_cast<size_t>(n) * 4);
  return v;
}
[[gnu::always_inline]] inline F read_floats(const float* at, i64 n) {
  return n >= kWidth ? read<F>(at) : n > 0 ? read_part<F>(at, n) : F{};
}
[[gnu::always_inline]] inline void write_floats(float* at, F v, i64 n) {
  if (n >= kWidth)
    write(at, v);
  else if (n > 0)
    memcpy(at, &v, static_cast<size_t>(n) * 4);
}

// The sums of a tile of R rows of V registers, of which `left` columns exist.
template <int R, int V>
[[gnu::always_inline]] inline void read_sums(const TileOutput& out, i64 left, F (&sums)[R][V]) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sums[r][v] =
          out.store == StoreMode::write ? F{} : read_floats(out.c + r * out.stride + kWidth * v, left - kWidth * v);
}
template <int R, int V>
[[gnu::always_inline]] inline void write_sums(const F (&sums)[R][V], const TileOutput& out, i64 left) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) write_floats(out.c + r * out.stride + kWidth * v, sums[r][v], left - kWidth * v);
}

// One line into the L2 cache, or into the L1 cache.
[[gnu::always_inline]] inline void fetch_line(const void* at) {
  __builtin_prefetch(at, 0, 2);
}
[[gnu::always_inline]] inline void fetch_line_to_l1(const void* at) {
  __builtin_prefetch(at, 0, 3);
}

// One pair or value in all lanes. Volatile, so that GCC 12 neither expands the pair in an integer register nor keeps
// pairs of several rows for their other part: a tile needs all registers.
[[gnu::always_inline]] inline W splat_pair(const std::uint16_t* p) {
  W both;
#if defined(__AVX2__)
  asm volatile("vpbroadcastd %1, %0" : "=v"(both) : "m"(*reinterpret_cast<const char(*)[4]>(p)));
#elif defined(__x86_64__)
  both = W{} + read<std::uint32_t>(p);
#else
  asm volatile("ld1r {%0.4s}, %1" : "=w"(both) : "Q"(*reinterpret_cast<const char(*)[4]>(p)));
#endif
  return both;
}
[[gnu::always_inline]] inline F splat_value(const float* p) {
  F all;
#if defined(__AVX2__)
  asm volatile("vbroadcastss %1, %0" : "=v"(all) : "m"(*p));
#elif defined(__x86_64__)
  all = F{} + *p;
#else
  asm volatile("ld1r {%0.4s}, %1" : "=w"(all) : "Q"(*p));
#endif
  return all;
}

// The values of pairs that product number Part multiplies.
template <int Part>
[[gnu::always_inline]] inline F part_of(W pairs) {
  if (kParts == 1) return (F)pairs;
  return Part == 0 ? (F)(pairs << 16) : (F)(pairs & 0xffff0000u);
}

// acc += x * b of f32, rounded once where the processor can. On x86-64 in place: GCC 12 would choose forms of the
// instruction that copy the sums, and run out of registers.
[[gnu::always_inline]] inline void add_f32_product(F x, F b, F& acc) {
#if defined(__FMA__)
  asm("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(b));
#elif defined(__x86_64__)
  acc += x * b;
#else
  acc = (F)vfmaq_f32((float32x4_t)acc, (float32x4_t)x, (float32x4_t)b);
#endif
}

// acc += x * b, for parts of pairs.
[[gnu::always_inline]] inline void add_product(F x, F b, F& acc) {
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  acc =
      (F)vbfdotq_f32((float32x4_t)acc, vreinterpretq_bf16_f32((float32x4_t)x), vreinterpretq_bf16_f32((float32x4_t)b));
#else
  add_f32_product(x, b, acc);
#endif
}

// A register of floats from f16, and 8 floats to it.
[[gnu::always_inline]] inline F read_f16(const std::uint16_t* in) {
#if defined(__AVX512F__)
  return (F)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
#elif defined(__F16C__)
  return (F)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
#elif defined(__x86_64__)  // finite values, exactly
  const W bits = __builtin_convertvector(read<Halves>(in), W);
  return (F)((W)((F)((bits & 0x7fffu) << 13) * 0x1p112f) | (bits & 0x8000u) << 16);
#else
  return (F)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(in)));
#endif
}
[[gnu::always_inline]] inline void write_f16(std::uint16_t* out, const float* x) {
#if defined(__x86_64__) && !defined(__F16C__)  // finite values in the range of f16
  for (int i = 0; i < 8; i += kWidth) {
    const W bits = read<W>(x + i), small = (W)((F)(bits & 0x7fffffffu) * 0x1p-112f);
    write(out + i,
          __builtin_convertvector((bits >> 16 & 0x8000u) | (small + 0xfffu + (small >> 13 & 1u)) >> 13, Halves));
  }
#elif defined(__x86_64__)
  const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), half);
#else
  for (int i = 0; i < 8; i += 4) vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
#endif
}

// How many independent sums hide the latency of add_pair_products(): that of an addition, with vpdpwssd that of a
// product.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr int kInt8Sums = 8;
#else
constexpr int kInt8Sums = 1;
#endif
// Pairs of int8 as pairs of 16-bit integers, one pair in each lane.
[[gnu::always_inline]] inline S int8_pairs(const std::int8_t* p) {
#if defined(__AVX512F__)
  return (S)_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  return (S)_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__x86_64__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return (S)_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
#else
  return (S)vmovl_s8(vld1_s8(p));
#endif
}
// acc += the sum of products of each lane's pairs. vpdpwssd is written in place, as in add_product(), and, where it has
// AVX-VNNI's encoding, between registers, which int8_kernels_test.cpp expects.
[[gnu::always_inline]] inline void add_pair_products(S a, S b, S& acc) {
#if defined(__AVX512VNNI__)
  asm("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
#elif defined(__AVX512F__)
  acc += (S)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVXVNNI__)
  asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b));
#elif defined(__AVX2__)
  acc += (S)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
  acc += (S)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  const auto x = (int16x8_t)a, y = (int16x8_t)b;
  acc += (S)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
#endif
}

// bf16 bits in the low half of each lane, as vcvtneps2bf16 gives them: round to nearest, ties to even; denormals become
// zeros, NaN becomes a quiet NaN.
[[gnu::always_inline]] inline W narrow(F x) {
  const W all = (W)x, bits = (all & 0x7f800000u) == 0 ? all & 0x80000000u : all,
          rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}
[[gnu::always_inline]] inline W paired(F even, F odd) {
#if defined(__AVX512BF16__)
  return (W)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)even)) |
         (W)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)odd)) << 16;
#else
  return narrow(even) | narrow(odd) << 16;
#endif
}
[[gnu::always_inline]] inline std::uint16_t narrow_one(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000u) == 0) return static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
[[gnu::always_inline]] inline std::uint32_t pair_of(std::uint16_t even, std::uint16_t odd) {
  return even | static_cast<std::uint32_t>(odd) << 16;
}

}  // namespace
}  // namespace mw::engine
