// SPDX-License-Identifier: GPL-3.0-or-later
// Products on packed bf16 weights against double arithmetic on the same rounded operands; skipped where the processor
// lacks AVX-512 BF16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/gemm.h"
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

class Packed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!packed_kernels()) GTEST_SKIP() << "no packed kernels on this processor";
  }
};

struct Size {
  std::int64_t m, n, k, rank;
};
constexpr Size kSizes[] = {{1, 32, 2, 0},     {1, 544, 640, 16},  {2, 96, 34, 3},      {3, 160, 1100, 8},
                           {7, 64, 258, 16},  {13, 2080, 66, 1},  {40, 32, 2050, 0},   {64, 1056, 130, 5},
                           {600, 64, 96, 16}, {1100, 32, 544, 7}, {30, 160, 1058, 300}};

TEST_F(Packed, ProductsAgreeWithDoubleArithmetic) {
  for (const int threads : {1, 3})
    for (const Size s : kSizes) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), z = normals(s.m, s.rank, 3),
                   l = normals(s.n, s.rank, 4), l_t = transposed(l);
      const std::vector<std::uint16_t> w = packed(b);
      const Matrix turned = transposed(b);
      std::vector<float> nt(static_cast<size_t>(s.m * s.n), 1.0f), nn = nt, plain = nt;
      const LowRank low{s.rank ? z.at.data() : nullptr, l.at.data(), s.rank, 0.5f};
      LowRank low_nn = low;
      low_nn.l = l_t.at.data();
      gemm.nt({s.m, s.n, s.k}, a.at.data(), {.packed = w.data()}, nt.data(), {.beta = 1.0f}, low);
      gemm.nt({s.m, s.n, s.k}, a.at.data(), {.packed = w.data()}, plain.data());
      const bool both = packable(turned.rows, turned.cols);
      const std::vector<std::uint16_t> w_turned = both ? packed(turned) : std::vector<std::uint16_t>();
      if (both) gemm.nn({s.m, s.n, s.k}, a.at.data(), {.packed = w_turned.data()}, nn.data(), {.beta = 1.0f}, low_nn);
      const Matrix ra = rounded(a), rb = rounded(b);
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

// On any processor: without packed kernels the bytes are widened.
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

TEST_F(Packed, FactorsKeptInF32ArePackedOnTheWay) {
  for (const Size s : {Size{17, 16, 640, 0}, Size{700, 5, 70, 0}, Size{40, 77, 1031, 0}, Size{33, 640, 7, 0}}) {
    Device device(Bytes(0), 2);
    Gemm gemm(device, model::WeightType::bf16);
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), b_t = transposed(b);
    std::vector<float> nt(static_cast<size_t>(s.m * s.n)), nn = nt;
    gemm.nt({s.m, s.n, s.k}, a.at.data(), {.f32 = b.at.data()}, nt.data(), {.alpha = 2.0f});
    gemm.nn({s.m, s.n, s.k}, a.at.data(), {.f32 = b_t.at.data()}, nn.data(), {.alpha = 2.0f});
    const Matrix ra = rounded(a), rb = rounded(b);
    for (std::int64_t m = 0; m < s.m; m += 5)
      for (std::int64_t n = 0; n < s.n; ++n) {
        const double sum = 2 * expected(ra, rb, m, n), tolerance = 4e-5 * std::sqrt(static_cast<double>(s.k));
        ASSERT_NEAR(nt[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
        ASSERT_NEAR(nn[static_cast<size_t>(m * s.n + n)], sum, tolerance) << s.n << " x " << s.k;
      }
  }
}

TEST_F(Packed, BlocksOfAttentionInEveryOrientation) {
  Device device(Bytes(0), 1);
  Gemm gemm(device, model::WeightType::bf16);
  gemm.prepare_blocks();
  for (const Size s : {Size{9, 5, 3, 0}, Size{64, 130, 256, 0}, Size{700, 48, 64, 0}, Size{33, 640, 530, 0}}) {
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2), a_t = transposed(a), b_t = transposed(b);
    const Matrix ra = rounded(a), rb = rounded(b);
    for (const Transpose transpose_a : {Transpose::no, Transpose::yes})
      for (const Transpose transpose_b : {Transpose::no, Transpose::yes}) {
        const Matrix &at = transpose_a == Transpose::no ? a : a_t, &bt = transpose_b == Transpose::no ? b_t : b;
        const std::int64_t ldc = s.n + 3;
        std::vector<float> c(static_cast<size_t>(s.m * ldc), 1.0f);
        const MatrixOperand left{at.at.data(), at.cols, transpose_a}, right{bt.at.data(), bt.cols, transpose_b};
        std::vector<float> with_kept = c;
        gemm.block(0, {s.m, s.n, s.k}, left, {right}, {c.data(), ldc}, {2.0f, 1.0f});
        const KeptPanels unused = gemm.keep(0, right, s.k, s.n, 0), kept = gemm.keep(0, right, s.k, s.n, unused.end);
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
TEST_F(Packed, SixtyFourThreadsGiveTheBitsOfOne) {
  Device one(Bytes(0), 1), many(Bytes(0), 64);
  Gemm alone(one, model::WeightType::bf16), shared(many, model::WeightType::bf16);
  for (const Size s : {Size{1, 4096, 256, 0}, Size{5, 96, 4096, 0}, Size{40, 544, 512, 0}, Size{1000, 64, 96, 0}}) {
    const Matrix a = normals(s.m, s.k, 1), b = normals(s.n, s.k, 2);
    const std::vector<std::uint16_t> w = packed(b);
    std::vector<float> expected_bits(static_cast<size_t>(s.m * s.n)), c = expected_bits;
    alone.nt({s.m, s.n, s.k}, a.at.data(), {.packed = w.data()}, expected_bits.data());
    shared.nt({s.m, s.n, s.k}, a.at.data(), {.packed = w.data()}, c.data());
    EXPECT_EQ(c, expected_bits) << s.m << " x " << s.n << " x " << s.k;
  }
}

TEST_F(Packed, FirstKeysOfKeptPanelsGiveTheSameBits) {
  Device device(Bytes(0), 1);
  Gemm gemm(device, model::WeightType::bf16);
  gemm.prepare_blocks();
  const std::int64_t queries = 64, keys = 600, dim = 48, seen = 517;
  const Matrix p = normals(queries, keys, 1), v = normals(keys, dim, 2);
  std::vector<float> plain(static_cast<size_t>(queries * dim)), kept = plain;
  const MatrixOperand left{p.at.data(), keys}, right{v.at.data(), dim};
  gemm.block(0, {queries, dim, seen}, left, {right}, {plain.data(), dim});
  gemm.block(0, {queries, dim, seen}, left, {right, gemm.keep(0, right, keys, dim, 0)}, {kept.data(), dim});
  EXPECT_EQ(kept, plain);
}

TEST_F(Packed, KeepsOnlyPanelsThatFit) {
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

TEST_F(Packed, ARowDoesNotDependOnTheRowsBesideIt) {
  Device device(Bytes(0), 2);
  Gemm gemm(device, model::WeightType::bf16);
  const std::int64_t rows = 100, n = 96;
  for (const std::int64_t k : {640, 1500, 2304, 6912}) {  // with AMX deep products are computed in slices
    const Matrix a = normals(rows, k, 1), b = normals(n, k, 2);
    const std::vector<std::uint16_t> w = packed(b);
    std::vector<float> all(static_cast<size_t>(rows * n)), part;
    gemm.nt({rows, n, k}, a.at.data(), {.packed = w.data()}, all.data());
    for (const std::int64_t some : {1, 3, 4, 5, 16, 17}) {  // AMX uses other instructions for few rows
      part.resize(static_cast<size_t>(some * n));
      for (std::int64_t r = 0; r + some <= rows; r += 9) {
        gemm.nt({some, n, k}, a.at.data() + r * k, {.packed = w.data()}, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + r * n))
            << r << ", of " << some << ", depth " << k;
      }
    }
  }
}

TEST_F(Packed, ARowOfADecodedBatchDoesNotDependOnItsSize) {
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

TEST_F(Packed, StreamedTilesAreTheProduct) {
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
TEST_F(Packed, LogitTilesGiveTheLossAndItsGradient) {
  const GemmKernels& kernels = *gemm_kernels();
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
          vector_kernels().widen(1, &groups[static_cast<size_t>(group_index(gemm_kernels()->group_rows, n, r, i))],
                                 &gradient);
          EXPECT_NEAR(gradient, g, 0.01 * g + 1e-8) << n;
        }
    }
}

// What streamed_loss makes of a stripe: any left operand that is laid out on the way.
TEST_F(Packed, GatheredStripesAreTheProduct) {
  for (const int threads : {1, 3})
    for (const Size s : {Size{5, 32, 64, 0}, Size{30, 160, 1504, 0}, Size{100, 96, 2080, 0}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      const Matrix a = normals(s.m, s.k, 1), b = normals(s.k, s.n, 2), ra = rounded(a), rb = transposed(rounded(b));
      const std::vector<std::uint16_t> w = packed(b);
      std::vector<float> c(static_cast<size_t>(s.m * s.n), NAN);
      const auto fill = [&](const PackedGemm::Stripe& at, std::uint16_t* out) {
        gemm_kernels()->groups(at.rows, at.columns, {a.at.data() + at.row * s.k + at.column, s.k, nullptr, {}}, 1.0f,
                               out);
      };
      gemm.packed().multiply_stripes({s.m, s.n, s.k}, s.m + 4, w.data(), fill, c.data());
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t n = 0; n < s.n; n += 7)
          ASSERT_NEAR(c[static_cast<size_t>(m * s.n + n)], expected(ra, rb, m, n),
                      4e-5 * std::sqrt(static_cast<double>(s.k)));
    }
}

// Norm, two weights and their LoRA branches in one dispatch: the bits of doing it one after the other.
TEST_F(Packed, FusedBranchesAreTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  const auto factor = [](Kind kind, const Matrix& m) { return PackedProduct::Matrix{kind, nullptr, m.at.data(), {}}; };
  for (const int threads : {1, 3})
    for (const Size s : {Size{75, 64, 96, 8}, Size{640, 96, 2080, 16}, Size{1300, 32, 640, 40}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      if (!gemm.packed().can_fuse(s.m, s.k)) {  // with AMX this one is too deep
        EXPECT_GT(s.k, gemm_kernels()->most_fused_depth);
        continue;
      }
      const Matrix x = normals(s.m, s.k, 1), gain = normals(1, s.k, 2), b = normals(s.n, s.k, 3),
                   down = normals(s.rank, s.k, 4), up = normals(s.n, s.rank, 5), b_t = transposed(b),
                   up_t = transposed(up), down_t = transposed(down);
      Matrix y = x;
      std::vector<float> inv(static_cast<size_t>(s.m)), inv_again = inv;
      const NormGain g{gain.at.data(), 1.0f};
      vector_kernels().rms_norm({s.m, s.k, x.at.data(), g}, 1e-6f, y.at.data(), inv.data());
      const std::vector<std::uint16_t> w = packed(b), turned = packable(s.k, s.n) ? packed(b_t) : w;
      std::vector<float> z(static_cast<size_t>(s.m * s.rank)), z2 = z, c(static_cast<size_t>(s.m * s.n)), c2(c), c3(c);
      gemm.nt({s.m, s.rank, s.k}, y.at.data(), {.f32 = down.at.data()}, z.data());
      gemm.nt({s.m, s.n, s.k}, y.at.data(), {.packed = w.data()}, c.data(), {}, {z.data(), up.at.data(), s.rank, 0.5f});
      FusedProduct nt{.b = {Kind::panels, w.data(), nullptr, {}}, .n = s.n, .c = c2.data(), .low = {}}, nn = nt;
      nt.low = {factor(Kind::rows, down), factor(Kind::rows, up), s.rank, z2.data(), 1.0f, 0.5f};
      nn.b = {Kind::transposed_panels, turned.data(), nullptr, {}}, nn.c = c3.data();
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
TEST_F(Packed, GatedProductAloneIsTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  for (const int threads : {1, 3})
    for (const Size s : {Size{75, 64, 96, 0}, Size{100, 160, 160, 0}, Size{1300, 32, 2048, 0}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      const Matrix x = normals(s.m, s.k, 1), w[] = {normals(s.n, s.k, 2), normals(s.n, s.k, 3)};
      std::vector<std::uint16_t> turned[2];
      std::vector<float> c[2];
      FusedProduct branches[2];
      for (size_t i = 0; i < 2; ++i) {
        turned[i] = packed(transposed(w[i]));
        c[i].resize(static_cast<size_t>(s.m * s.n));
        gemm.nt({s.m, s.n, s.k}, x.at.data(), {.packed = packed(w[i]).data()}, c[i].data());
        branches[i] = {.b = {Kind::transposed_panels, turned[i].data(), nullptr, {}}, .n = s.n, .low = {}};
      }
      std::vector<float> apart(c[0].size()), gated = apart;
      vector_kernels().geglu(s.m * s.n, c[0].data(), c[1].data(), apart.data());
      ASSERT_TRUE(PackedGemm::can_gate_alone(s.k, branches));
      gemm.packed().multiply_fused(s.m, s.k, {x.at.data(), s.k}, branches, {}, gated.data());
      EXPECT_EQ(gated, apart);
      EXPECT_FALSE(PackedGemm::can_gate_alone(s.k + 2048, branches));
      branches[1].b.kind = Kind::panels;
      EXPECT_FALSE(PackedGemm::can_gate_alone(s.k, branches));
    }
}

// The same of the few rows of decoding, with GeGLU, bf16 and int8.
TEST_F(Packed, FewRowsInOneDispatchAreTheSeparateProducts) {
  using Kind = PackedProduct::Kind;
  const auto factor = [](const Matrix& m) { return PackedProduct::Matrix{Kind::rows, nullptr, m.at.data(), {}}; };
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
          both[i].b = {ref.packed ? Kind::panels : Kind::int8, ref.packed, nullptr, ref.int8};
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

TEST_F(Packed, SumsOverRowsAgreeWithDoubleArithmetic) {
  for (const int threads : {1, 3})
    for (const Size s : {Size{7, 40, 0, 3}, Size{1030, 96, 0, 16}, Size{60, 1200, 0, 70}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::bf16);
      const Matrix l = normals(s.m, s.rank, 1), x = normals(s.m, s.n, 2), gain = normals(1, s.n, 3);
      std::vector<float> inv(static_cast<size_t>(s.m));
      Matrix y = x;
      vector_kernels().rms_norm({s.m, s.n, x.at.data(), {gain.at.data(), 0.0f}}, 1e-6f, y.at.data(), inv.data());
      const Matrix rl = transposed(rounded(l)), rx = transposed(rounded(x)), ry = transposed(rounded(y));
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

}  // namespace
}  // namespace mw::engine
