// SPDX-License-Identifier: GPL-3.0-or-later
// Products on packed weights against double arithmetic on the same operands, which those of bf16 round.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/engine/kernels/packed_classes.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {
namespace {

struct Matrix {
  std::int64_t rows, cols;
  std::vector<float> at;
  float operator()(std::int64_t r, std::int64_t c) const { return at[static_cast<size_t>(r * cols + c)]; }
};

Matrix normals(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const Rng rng{seed};
  Matrix m{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols))};
  for (size_t i = 0; i < m.at.size(); ++i) m.at[i] = rng.normal_at(i);
  return m;
}

std::vector<std::uint16_t> bits_of(const Matrix& m) {
  std::vector<std::uint16_t> bits(m.at.size());
  vector_kernels().narrow(static_cast<std::int64_t>(bits.size()), m.at.data(), bits.data());
  return bits;
}

Matrix rounded(const Matrix& m) {
  Matrix out = m;
  const std::vector<std::uint16_t> bits = bits_of(m);
  vector_kernels().widen(static_cast<std::int64_t>(bits.size()), bits.data(), out.at.data());
  return out;
}

std::vector<std::uint16_t> packed(const Matrix& m) {
  const std::vector<std::uint16_t> bits = bits_of(m);
  std::vector<std::uint16_t> out(bits.size());
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.cols; ++c)
      out[static_cast<size_t>(packed_index(m.cols, r, c))] = bits[static_cast<size_t>(r * m.cols + c)];
  return out;
}

// A weight in panels of either kind.
struct Panels {
  std::vector<std::uint16_t> bf16;
  std::vector<float> f32;
  Panels() = default;
  Panels(model::WeightType type, const Matrix& m) {
    if (type != model::WeightType::f32) {
      bf16 = packed(m);
      return;
    }
    f32.resize(m.at.size());
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c) f32[static_cast<size_t>(packed_f32_index(m.cols, r, c))] = m(r, c);
  }
  WeightRef ref() const { return f32.empty() ? WeightRef{.packed = bf16.data()} : WeightRef{.packed_f32 = f32.data()}; }
};

// The values that products with weights of the type multiply.
Matrix multiplied(model::WeightType type, const Matrix& m) {
  return type == model::WeightType::f32 ? m : rounded(m);
}

Matrix transposed(const Matrix& m) {
  Matrix t{m.cols, m.rows, std::vector<float>(m.at.size())};
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.cols; ++c) t.at[static_cast<size_t>(c * m.rows + r)] = m(r, c);
  return t;
}

// start + scale * a b^T (+ low_scale * z l^T), all rounded to bf16 first.
double expected(const Matrix& a, const Matrix& b, std::int64_t m, std::int64_t n) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.cols; ++k) sum += static_cast<double>(a(m, k)) * static_cast<double>(b(n, k));
  return sum;
}

class PackedTypes : public ::testing::TestWithParam<model::WeightType> {};
INSTANTIATE_TEST_SUITE_P(Types, PackedTypes, ::testing::Values(model::WeightType::f32, model::WeightType::bf16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

struct Size {
  std::int64_t m, n, k, rank;
};
constexpr Size kSizes[] = {{1, 32, 2, 0},     {1, 544, 640, 16},  {2, 96, 34, 3},      {3, 160, 1100, 8},
                           {7, 64, 258, 16},  {13, 2080, 66, 1},  {40, 32, 2050, 0},   {64, 1056, 130, 5},
                           {600, 64, 96, 16}, {1100, 32, 544, 7}, {30, 160, 1058, 300}};

TEST_P(PackedTypes, ProductsAgreeWithDoubleArithmetic) {
  for (const int threads : {1, 3})
    for (const Size s : kSizes) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, GetParam());
      const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), z = normals(s.m, s.rank, 3),
                   l = normals(s.n, s.rank, 4), l_t = transposed(l);
      const Panels w(GetParam(), b);
      const Matrix turned = transposed(b);
      std::vector<float> nt(static_cast<size_t>(s.m * s.n), 1.0f), nn = nt, plain = nt;
      const LowRank low{s.rank ? z.at.data() : nullptr, l.at.data(), s.rank, 0.5f};
      LowRank low_nn = low;
      low_nn.l = l_t.at.data();
      gemm.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), nt.data(), {.beta = 1.0f}, low);
      gemm.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), plain.data());
      const bool both = packable(turned.rows, turned.cols);
      const Panels w_turned = both ? Panels(GetParam(), turned) : Panels();
      if (both) gemm.nn({s.m, s.n, s.k}, a.at.data(), w_turned.ref(), nn.data(), {.beta = 1.0f}, low_nn);
      const Matrix ra = multiplied(GetParam(), a), rb = multiplied(GetParam(), b);
      const double tolerance = 2e-5 * std::sqrt(static_cast<double>(s.k));
      const double low_tolerance = tolerance + (s.rank ? 0.02 * std::sqrt(static_cast<double>(s.rank)) : 0);
      for (std::int64_t m = 0; m<s.m; m += s.m> 100 ? 41 : 1)
        for (std::int64_t n = 0; n<s.n; n += s.n> 100 ? 7 : 1) {
          const auto at = static_cast<size_t>(m * s.n + n);
          const double main = expected(ra, rb, m, n), extra = s.rank ? 0.5 * expected(z, l, m, n) : 0;
          ASSERT_NEAR(plain[at], main, tolerance) << s.m << " x " << s.n << " x " << s.k;
          ASSERT_NEAR(nt[at], 1 + main + extra, low_tolerance) << s.m << " x " << s.n << " x " << s.k;
          if (both) {
            ASSERT_NEAR(nn[at], 1 + main + extra, low_tolerance) << s.m << " x " << s.n << " x " << s.k;
          }
        }
    }
}

struct Int8 {
  std::vector<std::int8_t> at;
  std::vector<std::uint16_t> scales;
  Matrix means;  // what the bytes stand for
  explicit Int8(const Matrix& m) : at(m.at.size()), scales(static_cast<size_t>(m.rows * groups_of(m.cols))), means(m) {
    const Rng rng{9};
    for (size_t i = 0; i < scales.size(); ++i) {
      const float scale = 0.01f + 0.02f * rng.uniform_at(i);
      vector_kernels().narrow(1, &scale, &scales[i]);
    }
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c) {
        float scale;
        vector_kernels().widen(1, &scales[static_cast<size_t>(scale_index(m.cols, r, c))], &scale);
        const float q = std::clamp(std::nearbyint(m(r, c) / scale), -127.0f, 127.0f);
        at[static_cast<size_t>(packed_index(m.cols, r, c))] = static_cast<std::int8_t>(q);
        means.at[static_cast<size_t>(r * m.cols + c)] = q * scale;
      }
  }
  WeightRef ref() const { return {.int8 = {at.data(), scales.data()}}; }
};

// On any processor.
TEST(Int8, ProductsAgreeWithDoubleArithmetic) {
  for (const int threads : {1, 3})
    for (const Size s : {Size{1, 32, 2, 0}, Size{1, 544, 640, 0}, Size{2, 96, 130, 3}, Size{5, 160, 1088, 0},
                         Size{9, 64, 66, 16}, Size{24, 96, 258, 0}, Size{25, 96, 258, 4}, Size{70, 1056, 1090, 0}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::int8);
      const Matrix a = normals(s.m, s.k, 1), z = normals(s.m, s.rank, 3), l = normals(s.n, s.rank, 4);
      const Int8 w(normals(s.n, s.k, 2));
      std::vector<float> c(static_cast<size_t>(s.m * s.n), 1.0f);
      gemm.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), c.data(), {0.5f, 1.0f},
              {s.rank ? z.at.data() : nullptr, l.at.data(), s.rank, 0.5f});
      const double root = std::sqrt(static_cast<double>(s.k)), few = 1e-4 * root, many = 5e-3 * root;
      const double low = s.rank ? 0.02 * std::sqrt(static_cast<double>(s.rank)) : 0;
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t n = 0; n<s.n; n += s.n> 100 ? 7 : 1)
          ASSERT_NEAR(c[static_cast<size_t>(m * s.n + n)],
                      1 + 0.5 * expected(a, w.means, m, n) + (s.rank ? 0.5 * expected(z, l, m, n) : 0),
                      (s.m > 24 ? many : few) + low)
              << s.m << " x " << s.n << " x " << s.k;
    }
}

TEST_P(PackedTypes, FactorsKeptInF32ArePackedOnTheWay) {
  for (const Size s : {Size{17, 16, 640, 0}, Size{700, 5, 70, 0}, Size{40, 77, 1031, 0}, Size{33, 640, 7, 0}}) {
    Device device(Bytes(0), 2);
    Gemm gemm(device, GetParam());
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), b_t = transposed(b);
    std::vector<float> nt(static_cast<size_t>(s.m * s.n)), nn = nt;
    gemm.nt({s.m, s.n, s.k}, a.at.data(), {.f32 = b.at.data()}, nt.data(), {.alpha = 2.0f});
    gemm.nn({s.m, s.n, s.k}, a.at.data(), {.f32 = b_t.at.data()}, nn.data(), {.alpha = 2.0f});
    const Matrix ra = multiplied(GetParam(), a), rb = multiplied(GetParam(), b);
    for (std::int64_t m = 0; m < s.m; m += 5)
      for (std::int64_t n = 0; n < s.n; ++n) {
        const double sum = 2 * expected(ra, rb, m, n), tolerance = 4e-5 * std::sqrt(static_cast<double>(s.k));
        ASSERT_NEAR(nt[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
        ASSERT_NEAR(nn[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
      }
  }
}

TEST_P(PackedTypes, BlocksOfAttentionInEveryOrientation) {
  Device device(Bytes(0), 1);
  Gemm gemm(device, GetParam());
  gemm.prepare_blocks();
  for (const Size s : {Size{9, 5, 3, 0}, Size{64, 130, 256, 0}, Size{700, 48, 64, 0}, Size{33, 640, 530, 0}}) {
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), a_t = transposed(a), b_t = transposed(b);
    const Matrix ra = multiplied(GetParam(), a), rb = multiplied(GetParam(), b);
    for (const Transpose transpose_a : {Transpose::no, Transpose::yes})
      for (const Transpose transpose_b : {Transpose::no, Transpose::yes}) {
        const Matrix &at = transpose_a == Transpose::no ? a : a_t, &bt = transpose_b == Transpose::no ? b_t : b;
        const std::int64_t ldc = s.n + 3;
        std::vector<float> c(static_cast<size_t>(s.m * ldc), 1.0f);
        const MatrixOperand left{at.at.data(), at.cols, transpose_a}, right{bt.at.data(), bt.cols, transpose_b};
        std::vector<float> with_kept = c;
        gemm.block(0, {s.m, s.n, s.k}, left, {right}, {c.data(), ldc}, {2.0f, 1.0f});
        const KeptPanels unused = gemm.keep(0, right, s.k, std::min(s.n, kPanelRows), 0),
                         kept = gemm.keep(0, right, s.k, s.n, unused.end);
        ASSERT_NE(kept.at, nullptr);
        gemm.block(0, {s.m, s.n, s.k}, left, {right, kept}, {with_kept.data(), ldc}, {2.0f, 1.0f});
        ASSERT_EQ(with_kept, c) << s.m << " x " << s.n << " x " << s.k;
        for (std::int64_t m = 0; m<s.m; m += s.m> 100 ? 13 : 1) {
          for (std::int64_t n = 0; n < s.n; ++n)
            ASSERT_NEAR(c[static_cast<size_t>(m * ldc + n)], 1 + 2 * expected(ra, rb, m, n),
                        4e-5 * std::sqrt(static_cast<double>(s.k)))
                << s.m << " x " << s.n << " x " << s.k;
          for (std::int64_t n = s.n; n < ldc; ++n) ASSERT_EQ(c[static_cast<size_t>(m * ldc + n)], 1.0f);
        }
      }
  }
}

// More threads than cores, rows or panels: every output is computed once, with the bits of one thread.
TEST_P(PackedTypes, SixtyFourThreadsGiveTheBitsOfOne) {
  Device one(Bytes(0), 1), many(Bytes(0), 64);
  Gemm alone(one, GetParam()), shared(many, GetParam());
  for (const Size s : {Size{1, 4096, 256, 0}, Size{5, 96, 4096, 0}, Size{40, 544, 512, 0}, Size{1000, 64, 96, 0}}) {
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2);
    const Panels w(GetParam(), b);
    std::vector<float> expected_bits(static_cast<size_t>(s.m * s.n)), c = expected_bits;
    alone.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), expected_bits.data());
    shared.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), c.data());
    EXPECT_EQ(c, expected_bits) << s.m << " x " << s.n << " x " << s.k;
  }
}

TEST_P(PackedTypes, FirstKeysOfKeptPanelsGiveTheSameBits) {
  Device device(Bytes(0), 1);
  Gemm gemm(device, GetParam());
  gemm.prepare_blocks();
  const std::int64_t queries = 64, keys = 600, dim = 48, seen = 517;
  const Matrix p = normals(queries, keys, 1), v = normals(keys, dim, 2);
  std::vector<float> plain(static_cast<size_t>(queries * dim)), kept = plain;
  const MatrixOperand left{p.at.data(), keys}, right{v.at.data(), dim};
  gemm.block(0, {queries, dim, seen}, left, {right}, {plain.data(), dim});
  gemm.block(0, {queries, dim, seen}, left, {right, gemm.keep(0, right, keys, dim, 0)}, {kept.data(), dim});
  EXPECT_EQ(kept, plain);
}

TEST(Packed, KeepsOnlyPanelsThatFit) {
  Device device(Bytes(0), 1);
  Gemm gemm(device, model::WeightType::bf16);
  gemm.prepare_blocks();
  const std::int64_t keys = 1024, dim = 32;
  const Matrix v = normals(keys, dim, 2);
  std::int64_t used = 0, count = 0;
  for (; count < 1000; ++count) {
    const KeptPanels kept = gemm.keep(0, {v.at.data(), dim}, keys, dim, used);
    if (!kept.at) break;
    ASSERT_EQ(kept.end, used + keys * dim);
    used = kept.end;
  }
  EXPECT_GT(count, 1);
  EXPECT_LE(used, sizes::kPackedBlocks);
}

TEST_P(PackedTypes, ARowDoesNotDependOnTheRowsBesideIt) {
  Device device(Bytes(0), 2);
  Gemm gemm(device, GetParam());
  const std::int64_t rows = 100, n = 96;
  for (const std::int64_t k : {640, 1500, 2304, 6912}) {  // with AMX deep products are computed in slices
    const Matrix a = normals(rows, k, 1), b = normals(n, k, 2);
    const Panels w(GetParam(), b);
    std::vector<float> all(static_cast<size_t>(rows * n)), part;
    gemm.nt({rows, n, k}, a.at.data(), w.ref(), all.data());
    for (const std::int64_t some : {1, 3, 4, 5, 16, 17}) {  // AMX uses other instructions for few rows
      part.resize(static_cast<size_t>(some * n));
      for (std::int64_t r = 0; r + some <= rows; r += 9) {
        gemm.nt({some, n, k}, a.at.data() + r * k, w.ref(), part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + r * n))
            << r << ", of " << some << ", depth " << k;
      }
    }
  }
}

TEST(Packed, ARowOfADecodedBatchDoesNotDependOnItsSize) {
  Device device(Bytes(0), 2);
  Gemm gemm(device, model::WeightType::bf16);
  for (const std::int64_t k : {2, 66, 128, 1500}) {
    const std::int64_t n = 96, rank = 16;
    const Matrix a = normals(20, k, 1), b = normals(n, k, 2), z = normals(20, rank, 3), l = normals(n, rank, 4);
    const std::vector<std::uint16_t> w = packed(b);
    std::vector<float> one(static_cast<size_t>(20 * n));
    const auto product = [&](std::int64_t first, std::int64_t rows, float* c) {
      gemm.nt({rows, n, k}, a.at.data() + first * k, {.packed = w.data()}, c, {.beta = 1.0f},
              {z.at.data() + first * rank, l.at.data(), rank, 0.5f});
    };
    for (std::int64_t r = 0; r < 20; ++r) product(r, 1, one.data() + r * n);
    for (std::int64_t rows = 2; rows <= kMaxSkinnyRows; ++rows) {
      std::vector<float> all(static_cast<size_t>(rows * n));
      product(20 - rows, rows, all.data());
      EXPECT_TRUE(std::equal(all.begin(), all.end(), one.end() - rows * n)) << rows << " rows, depth " << k;
    }
  }
}

TEST(Packed, StreamedTilesAreTheProduct) {
  Device device(Bytes(0), 2);
  Gemm gemm(device, model::WeightType::bf16);
  const std::int64_t rows = 150, n = 1504, k = 66;
  const Matrix a = normals(rows, k, 1), b = normals(n, k, 2);
  const std::vector<std::uint16_t> w = packed(b);
  std::vector<float> whole(static_cast<size_t>(rows * n)), tiles(whole.size(), NAN);
  gemm.nt({rows, n, k}, a.at.data(), {.packed = w.data()}, whole.data());
  gemm.packed().stream_tiles({rows, n, k}, a.at.data(), w.data(), [&](const PackedGemm::Tile& t) {
    for (std::int64_t r = 0; r < t.rows; ++r)
      std::copy_n(t.at + r * t.stride, t.columns, tiles.begin() + (t.row + r) * n + t.column);
  });
  EXPECT_EQ(tiles, whole);
}

// Rows of logits as the loss streams them: log-sum-exp, and exponentials that one factor a row makes gradients.
TEST(Packed, LogitTilesGiveTheLossAndItsGradient) {
  const GemmKernels& kernels = cpu_kernels().bf16.gemm;
  const std::int64_t rows = 14;
  for (const float cap : {0.0f, 30.0f})
    for (const int n : {2, 16, 96, 334}) {
      const Matrix x = normals(rows, n, 7);
      std::vector<float> logits = x.at, lse, factor;
      for (float& v : logits) v *= 5;
      std::vector<std::uint16_t> half(x.at.size()), groups(static_cast<size_t>(2 * kGroupRows * n));
      std::vector<double> exact;
      for (const float v : logits) exact.push_back(cap > 0 ? cap * std::tanh(static_cast<double>(v) / cap) : v);
      for (std::int64_t r = 0; r < rows; ++r) {
        float max = -3.0f, sum = 0.5f;  // of what came before
        double total = 0.5 * std::exp(-3.0);
        kernels.logit_tile(n, cap, logits.data() + r * n, half.data() + r * n, &max, &sum);
        for (std::int64_t i = r * n; i < (r + 1) * n; ++i) total += std::exp(exact[static_cast<size_t>(i)]);
        lse.push_back(max + std::log(sum));
        EXPECT_NEAR(lse.back(), std::log(total), 1e-5 * (1 + std::abs(lse.back())));
        factor.push_back(0.25f * std::exp(max - lse.back()));
      }
      kernels.scaled_groups(rows, n, factor.data(), half.data(), n, groups.data());
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t i = 0; i < n; ++i) {
          const double v = exact[static_cast<size_t>(r * n + i)], slope = cap > 0 ? 1 - v / cap * v / cap : 1;
          const double g = 0.25 * std::exp(v - static_cast<double>(lse[static_cast<size_t>(r)])) * slope;
          float gradient;
          vector_kernels().widen(
              1, &groups[static_cast<size_t>(group_index(cpu_kernels().bf16.gemm.group_rows, n, r, i))], &gradient);
          EXPECT_NEAR(gradient, g, 0.01 * g + 1e-8) << n;
        }
    }
}

// What streamed_loss makes of a stripe: any left operand that is laid out on the way.
TEST(Packed, GatheredStripesAreTheProduct) {
  for (const int threads : {1, 3})
    for (const Size s : {Size{5, 32, 64, 0}, Size{30, 160, 1504, 0}, Size{100, 96, 2080, 0}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      const Matrix a = normals(s.m, s.k, 1), b = normals(s.k, s.n, 2), ra = rounded(a), rb = transposed(rounded(b));
      const std::vector<std::uint16_t> w = packed(b);
      std::vector<float> c(static_cast<size_t>(s.m * s.n), NAN);
      const auto fill = [&](const PackedGemm::Stripe& at, std::uint16_t* out) {
        cpu_kernels().bf16.gemm.groups(at.rows, at.columns, {a.at.data() + at.row * s.k + at.column, s.k, nullptr, {}},
                                       1.0f, out);
      };
      gemm.packed().multiply_stripes({s.m, s.n, s.k}, s.m + 4, w.data(), fill, c.data());
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t n = 0; n < s.n; n += 7)
          ASSERT_NEAR(c[static_cast<size_t>(m * s.n + n)], expected(ra, rb, m, n),
                      4e-5 * std::sqrt(static_cast<double>(s.k)));
    }
}

// Norm, two weights and their LoRA branches in one dispatch: the bits of doing it one after the other.
TEST_P(PackedTypes, FusedBranchesAreTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  const auto factor = [](Kind kind, const Matrix& m) {
    return PackedProduct::Matrix{.kind = kind, .f32 = m.at.data()};
  };
  for (const int threads : {1, 3})
    for (const Size s : {Size{75, 64, 96, 8}, Size{640, 96, 2080, 16}, Size{1300, 32, 640, 40}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, GetParam());
      if (!gemm.packed().can_fuse(s.m, s.k)) {  // with AMX this one is too deep
        EXPECT_GT(s.k, gemm.packed().products().gemm.most_fused_depth);
        continue;
      }
      const Matrix x = normals(s.m, s.k, 1), gain = normals(1, s.k, 2), b = normals(s.n, s.k, 3),
                   down = normals(s.rank, s.k, 4), up = normals(s.n, s.rank, 5), b_t = transposed(b),
                   up_t = transposed(up), down_t = transposed(down);
      Matrix y = x;
      std::vector<float> inv(static_cast<size_t>(s.m)), inv_again = inv;
      const NormGain g{gain.at.data(), 1.0f};
      vector_kernels().rms_norm({s.m, s.k, x.at.data(), g}, 1e-6f, y.at.data(), inv.data());
      const Panels w(GetParam(), b), turned = packable(s.k, s.n) ? Panels(GetParam(), b_t) : w;
      std::vector<float> z(static_cast<size_t>(s.m * s.rank)), z2 = z, c(static_cast<size_t>(s.m * s.n)), c2(c), c3(c);
      gemm.nt({s.m, s.rank, s.k}, y.at.data(), {.f32 = down.at.data()}, z.data());
      gemm.nt({s.m, s.n, s.k}, y.at.data(), w.ref(), c.data(), {}, {z.data(), up.at.data(), s.rank, 0.5f});
      FusedProduct nt{.b = stored_matrix(w.ref(), Transpose::no), .n = s.n, .c = c2.data(), .low = {}}, nn = nt;
      nt.low = {factor(Kind::rows, down), factor(Kind::rows, up), s.rank, z2.data(), 1.0f, 0.5f};
      nn.b = stored_matrix(turned.ref(), Transpose::yes), nn.c = c3.data();
      nn.low = {factor(Kind::columns, down_t), factor(Kind::columns, up_t), s.rank, z2.data(), 1.0f, 0.5f};
      const FusedProduct both[] = {nt, nn};
      std::vector<float> gated(c.size()), gated_apart(c.size());
      vector_kernels().geglu(s.m * s.n, c.data(), c.data(), gated_apart.data());
      for (float* const out : {static_cast<float*>(nullptr), gated.data()}) {
        gemm.packed().multiply_fused(s.m, s.k, {x.at.data(), s.k, inv_again.data(), g}, both, {inv_again.data(), 1e-6f},
                                     out);
        EXPECT_EQ(inv, inv_again);
        EXPECT_EQ(z, z2);
        EXPECT_EQ(c, c2);
        EXPECT_EQ(c, c3);
      }
      EXPECT_EQ(gated, gated_apart);
    }
}

// Gate and up projections of which only the gated product is kept.
TEST_P(PackedTypes, GatedProductAloneIsTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  for (const int threads : {1, 3})
    for (const Size s : {Size{75, 64, 96, 0}, Size{100, 160, 160, 0}, Size{1300, 32, 2048, 0}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, GetParam());
      const Matrix x = normals(s.m, s.k, 1), w[] = {normals(s.n, s.k, 2), normals(s.n, s.k, 3)};
      Panels turned[2];
      std::vector<float> c[2];
      FusedProduct branches[2];
      for (size_t i = 0; i < 2; ++i) {
        turned[i] = Panels(GetParam(), transposed(w[i]));
        c[i].resize(static_cast<size_t>(s.m * s.n));
        gemm.nt({s.m, s.n, s.k}, x.at.data(), Panels(GetParam(), w[i]).ref(), c[i].data());
        branches[i] = {.b = stored_matrix(turned[i].ref(), Transpose::yes), .n = s.n, .low = {}};
      }
      std::vector<float> apart(c[0].size()), gated = apart;
      vector_kernels().geglu(s.m * s.n, c[0].data(), c[1].data(), apart.data());
      if (GetParam() == model::WeightType::f32 && s.k > 1024) {
        EXPECT_FALSE(gemm.packed().can_gate_alone(s.k, branches));
        continue;
      }
      ASSERT_TRUE(gemm.packed().can_gate_alone(s.k, branches));
      gemm.packed().multiply_fused(s.m, s.k, {x.at.data(), s.k}, branches, {}, gated.data());
      EXPECT_EQ(gated, apart);
      EXPECT_FALSE(gemm.packed().can_gate_alone(s.k + 2048, branches));
      branches[1].b.kind = Kind::panels;
      EXPECT_FALSE(gemm.packed().can_gate_alone(s.k, branches));
    }
}

// The same of the few rows of decoding, with GeGLU, bf16 and int8.
TEST(Packed, FewRowsInOneDispatchAreTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  const auto factor = [](const Matrix& m) { return PackedProduct::Matrix{.kind = Kind::rows, .f32 = m.at.data()}; };
  for (const int threads : {1, 3})
    for (const model::WeightType type : {model::WeightType::bf16, model::WeightType::int8})
      for (const Size s : {Size{1, 544, 640, 16}, Size{3, 2080, 640, 5}, Size{9, 64, 34, 24}, Size{16, 320, 1100, 16},
                           Size{16, 32, 640, 64}, Size{16, 320, 64, 24}, Size{2, 96, 2, 0}}) {
        Device device(Bytes(0), threads);
        Gemm gemm(device, type);
        ASSERT_TRUE(gemm.packed().fits_skinny(s.m, s.k));
        const Matrix x = normals(s.m, s.k, 1), gain = normals(1, s.k, 2), low_a = normals(s.rank, s.k, 3),
                     low_b = normals(s.n, s.rank, 4), w[] = {normals(s.n, s.k, 5), normals(s.n, s.k, 6)};
        const std::vector<std::uint16_t> panels[] = {packed(w[0]), packed(w[1])};
        const Int8 bytes[] = {Int8(w[0]), Int8(w[1])};
        Matrix y = x;
        std::vector<float> inv(static_cast<size_t>(s.m)), inv2 = inv;
        const NormGain g{gain.at.data(), 1.0f};
        vector_kernels().rms_norm({s.m, s.k, x.at.data(), g}, 1e-6f, y.at.data(), inv.data());
        std::vector<float> z(static_cast<size_t>(s.m * s.rank)), z2[] = {z, z}, c[2], c2[2];
        FusedProduct both[2];
        for (size_t i = 0; i < 2; ++i) {
          c[i].resize(static_cast<size_t>(s.m * s.n)), c2[i] = c[i];
          const WeightRef ref =
              type == model::WeightType::int8 ? bytes[i].ref() : WeightRef{.packed = panels[i].data()};
          gemm.nt({s.m, s.rank, s.k}, y.at.data(), {.f32 = low_a.at.data()}, z.data());
          gemm.nt({s.m, s.n, s.k}, y.at.data(), ref, c[i].data(), {},
                  {s.rank > 0 ? z.data() : nullptr, low_b.at.data(), s.rank, 0.5f});
          both[i].b = stored_matrix(ref, Transpose::no);
          both[i].n = s.n, both[i].c = c2[i].data();
          if (s.rank > 0) both[i].low = {factor(low_a), factor(low_b), s.rank, z2[i].data(), 1.0f, 0.5f};
        }
        std::vector<float> gated(c[0].size()), gated2 = gated;
        vector_kernels().geglu(s.m * s.n, c[0].data(), c[1].data(), gated.data());
        gemm.packed().multiply_skinny(s.m, s.k, {x.at.data(), s.k, inv2.data(), g}, both, {inv2.data(), 1e-6f},
                                      gated2.data());
        EXPECT_EQ(inv, inv2);
        for (size_t i = 0; i < 2; ++i) {
          EXPECT_EQ(z, z2[i]);
          EXPECT_EQ(c[i], c2[i]);
        }
        EXPECT_EQ(gated, gated2);
      }
}

TEST_P(PackedTypes, SumsOverRowsAgreeWithDoubleArithmetic) {
  for (const int threads : {1, 3})
    for (const Size s : {Size{7, 40, 0, 3}, Size{1030, 96, 0, 16}, Size{60, 1200, 0, 70}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, GetParam());
      const Matrix l = normals(s.m, s.rank, 1), x = normals(s.m, s.n, 2), gain = normals(1, s.n, 3);
      std::vector<float> inv(static_cast<size_t>(s.m));
      Matrix y = x;
      vector_kernels().rms_norm({s.m, s.n, x.at.data(), {gain.at.data(), 0.0f}}, 1e-6f, y.at.data(), inv.data());
      const Matrix rl = transposed(multiplied(GetParam(), l)), rx = transposed(multiplied(GetParam(), x)),
                   ry = transposed(multiplied(GetParam(), y));
      std::vector<float> plain(static_cast<size_t>(s.rank * s.n), 1.0f), normed = plain;
      gemm.packed().add_lora_gradient({.m = s.m,
                                       .rank = s.rank,
                                       .columns = s.n,
                                       .scale = 2.0f,
                                       .l = l.at.data(),
                                       .x = {x.at.data(), s.n},
                                       .transpose = Transpose::yes,
                                       .g = plain.data()});
      gemm.packed().add_lora_gradient({.m = s.m,
                                       .rank = s.rank,
                                       .columns = s.n,
                                       .scale = 2.0f,
                                       .l = l.at.data(),
                                       .x = {x.at.data(), s.n, inv.data(), {gain.at.data(), 0.0f}},
                                       .g = normed.data()});
      const double tolerance = 1e-4 * std::sqrt(static_cast<double>(s.m));
      for (std::int64_t r = 0; r < s.rank; ++r)
        for (std::int64_t n = 0; n < s.n; ++n) {
          ASSERT_NEAR(plain[static_cast<size_t>(n * s.rank + r)], 1 + 2 * expected(rl, rx, r, n), tolerance);
          ASSERT_NEAR(normed[static_cast<size_t>(r * s.n + n)], 1 + 2 * expected(rl, ry, r, n), tolerance);
        }
    }
}

// Weights whose rows are not whole panels, in rows of f32 or bf16.
TEST_P(PackedTypes, RowMajorWeightsArePackedOnTheWay) {
  for (const Size s : {Size{1, 33, 20, 0}, Size{17, 70, 101, 0}, Size{70, 41, 650, 0}, Size{3, 130, 300, 0}}) {
    Device device(Bytes(0), 2);
    Gemm gemm(device, GetParam());
    const Matrix a = normals(s.m, s.k, 1), b = rounded(normals(s.n, s.k, 2)), b_t = transposed(b);
    const std::vector<std::uint16_t> bits = bits_of(b), bits_t = bits_of(b_t);
    std::vector<float> nt(static_cast<size_t>(s.m * s.n)), nn = nt;
    gemm.nt({s.m, s.n, s.k}, a.at.data(), {.bf16 = bits.data()}, nt.data());
    gemm.nn({s.m, s.n, s.k}, a.at.data(), {.bf16 = bits_t.data()}, nn.data());
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n) {
        const double sum = expected(a, b, m, n), tolerance = 2e-5 * std::sqrt(static_cast<double>(s.k));
        ASSERT_NEAR(nt[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
        ASSERT_NEAR(nn[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
      }
  }
}

// The order that packed_f32.h states, for every way to an output.
TEST(Packed, F32ProductsAddInTheStatedOrder) {
  if (usable_cpu() == Cpu::base) GTEST_SKIP() << "without FMA a product is rounded before it is added";
  for (const Size s : {Size{1, 32, 700, 0}, Size{5, 96, 128, 0}, Size{40, 64, 1154, 0}, Size{300, 32, 2310, 0}}) {
    Device device(Bytes(0), 2);
    Gemm gemm(device, model::WeightType::f32);
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), a_t = transposed(a), b_t = transposed(b);
    const Panels w(model::WeightType::f32, b);
    std::vector<float> exact(static_cast<size_t>(s.m * s.n)), nt(exact), rows(exact), nn(exact), tn(exact);
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n) {
        float total = 0;
        for (std::int64_t first = 0; first < s.k; first += sizes::kF32Run) {
          float sum = 0;
          for (std::int64_t k = first; k < std::min(s.k, first + sizes::kF32Run); ++k)
            sum = std::fma(a(m, k), b(n, k), sum);
          total = first == 0 ? sum : total + sum;
        }
        exact[static_cast<size_t>(m * s.n + n)] = total;
      }
    gemm.nt({s.m, s.n, s.k}, a.at.data(), w.ref(), nt.data());
    gemm.nt({s.m, s.n, s.k}, a.at.data(), {.f32 = b.at.data()}, rows.data());
    gemm.nn({s.m, s.n, s.k}, a.at.data(), {.f32 = b_t.at.data()}, nn.data());
    // A low-rank summand extends the sum, fused into the product or not.
    std::vector<float> extended = exact, with_low(exact);
    const Matrix z = normals(s.m, 7, 3), l = normals(s.n, 7, 4);
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t k = 0; k < 7; ++k) {
          float& sum = extended[static_cast<size_t>(m * s.n + n)];
          sum = std::fma(0.5f * z(m, k), l(n, k), sum);
        }
    for (const WeightRef& weight : {w.ref(), WeightRef{.f32 = b.at.data()}}) {
      gemm.nt({s.m, s.n, s.k}, a.at.data(), weight, with_low.data(), {}, {z.at.data(), l.at.data(), 7, 0.5f});
      ASSERT_EQ(with_low, extended) << s.m << " x " << s.n << " x " << s.k;
    }
    gemm.tn({s.m, s.n, s.k}, a_t.at.data(), b_t.at.data(), tn.data());
    for (const auto* c : {&nt, &rows, &nn, &tn}) ASSERT_EQ(*c, exact) << s.m << " x " << s.n << " x " << s.k;
  }
}

// Every set of kernels that this processor runs, but those of AMX, whose order in bf16 is another.
std::vector<std::pair<Cpu, const CpuKernels*>> classes() {
  std::vector<std::pair<Cpu, const CpuKernels*>> all;
#if defined(__x86_64__)
  if (has(Cpu::avx2)) all.emplace_back(Cpu::avx2, &kernels_avx2());
  if (has(Cpu::avx512)) all.emplace_back(Cpu::avx512, &kernels_avx512());
  if (has(Cpu::avx512_vnni)) all.emplace_back(Cpu::avx512_vnni, &kernels_avx512_vnni());
  if (has(Cpu::avx512_bf16)) all.emplace_back(Cpu::avx512_bf16, &kernels_avx512_bf16());
#endif
  return all;
}

// Values of every size, denormals among them.
Matrix wild(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix m = normals(rows, cols, seed);
  const Rng rng{seed + 1000};
  for (size_t i = 0; i < m.at.size(); ++i)
    if (rng.at(i) % 4 == 0) m.at[i] = std::ldexp(m.at[i], -static_cast<int>(rng.at(i + m.at.size()) % 140));
  return m;
}

TEST_P(PackedTypes, EveryClassOfX86GivesTheSameBits) {
  const auto all = classes();
  if (all.size() < 2) GTEST_SKIP() << "this processor has one class";
  for (const Size s : {Size{1, 96, 640, 0}, Size{2, 64, 66, 0}, Size{4, 160, 256, 0}, Size{7, 96, 1154, 0},
                       Size{16, 64, 640, 0}, Size{29, 32, 514, 3}, Size{100, 96, 1500, 16}, Size{530, 64, 4610, 8}}) {
    const Matrix a = wild(s.m, s.k, 1), b = wild(s.n, s.k, 2), z = wild(s.m, s.rank, 3), l = wild(s.n, s.rank, 4),
                 turned = wild(s.k / 32 * 32, s.n, 5), down = wild(16, s.k, 6), gain = normals(1, s.k, 7);
    const Panels w(GetParam(), b), w_turned(GetParam(), turned);
    std::vector<std::vector<float>> first;
    for (const auto& [cpu, kernels] : all) {
      Device device(Bytes(0), 2);
      DeviceBuffer<std::uint16_t> workspace;
      const ProductKernels& products = GetParam() == model::WeightType::f32 ? kernels->f32 : kernels->bf16;
      PackedGemm gemm(device, products, workspace);
      const auto size = static_cast<size_t>(s.m * s.n);
      std::vector<std::vector<float>> c(4, std::vector<float>(size, 0.25f));
      PackedProduct product{.m = s.m, .n = s.n, .k = s.k, .scale = 0.3f, .a = a.at.data()};
      product.b = stored_matrix(w.ref(), Transpose::no), product.store = StoreMode::accumulate, product.c = c[0].data();
      if (s.rank) product.low = {z.at.data(), s.rank, 0.5f, stored_matrix({.f32 = l.at.data()}, Transpose::no)};
      gemm.run(product);
      product.k = s.k / 32 * 32, product.low = {}, product.store = StoreMode::write;
      product.b = stored_matrix(w_turned.ref(), Transpose::yes), product.c = c[1].data();
      gemm.run(product);
      c[2].assign(static_cast<size_t>(16 * s.k), 0.0f);
      const std::vector<float> inv(static_cast<size_t>(s.m), 0.7f);
      gemm.add_lora_gradient({.m = s.m,
                              .rank = 16,
                              .columns = s.k,
                              .l = down.at.data(),
                              .x = {a.at.data(), s.k, inv.data(), {gain.at.data(), 1.0f}},
                              .g = c[2].data()});
      gemm.prepare();
      gemm.block(0, {s.m, s.n, s.k}, {a.at.data(), s.k}, {{b.at.data(), s.k, Transpose::yes}},
                 {c[3].data(), s.n, StoreMode::write}, 0.7f);
      if (first.empty()) first = c;
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_EQ(std::memcmp(c[i].data(), first[i].data(), c[i].size() * sizeof(float)), 0)
            << to_string(cpu) << ", product " << i << ", " << s.m << " x " << s.n << " x " << s.k;
    }
  }
}

TEST(Packed, EveryClassOfX86GivesTheSameLogits) {
  const auto all = classes();
  if (all.size() < 2) GTEST_SKIP() << "this processor has one class";
  for (const float cap : {0.0f, 30.0f})
    for (const std::int64_t n : {2, 16, 334}) {
      const Matrix x = normals(14, n, 7);
      std::vector<float> first;
      for (const auto& [cpu, kernels] : all) {
        Matrix logits = x;
        for (float& v : logits.at) v *= 60;
        std::vector<std::uint16_t> half(logits.at.size()), groups(static_cast<size_t>(2 * kGroupRows * n));
        std::vector<float> results, factor(14, 0.3f);
        for (std::int64_t r = 0; r < 14; ++r) {
          float max = -3, sum = 0.5f;
          kernels->bf16.gemm.logit_tile(n, cap, &logits.at[static_cast<size_t>(r * n)],
                                        &half[static_cast<size_t>(r * n)], &max, &sum);
          results.insert(results.end(), {max, sum});
        }
        kernels->bf16.gemm.scaled_groups(14, n, factor.data(), half.data(), n, groups.data());
        for (const std::uint16_t h : half) results.push_back(static_cast<float>(h));
        for (const std::uint16_t g : groups) results.push_back(static_cast<float>(g));
        if (first.empty()) first = results;
        ASSERT_EQ(results, first) << to_string(cpu) << ", " << n << ", cap " << cap;
      }
    }
}

}  // namespace
}  // namespace mw::engine
