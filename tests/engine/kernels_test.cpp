// SPDX-License-Identifier: GPL-3.0-or-later
// Every instruction set this machine has, against double arithmetic, at sizes with and without vector tails.
#include "core/engine/kernels/vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/rng.h"
#include "core/engine/kernels/gemm.h"

namespace mw::engine {
namespace {

std::vector<float> normals(size_t n, std::uint64_t seed, float scale = 1) {
  const Rng rng{seed};
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = scale * rng.normal_at(i);
  return out;
}

std::vector<const VectorKernels*> available() {
  std::vector<const VectorKernels*> sets{&vector_kernels_base()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&vector_kernels_avx2());
  if (&vector_kernels() == &vector_kernels_avx512()) sets.push_back(&vector_kernels_avx512());
#endif
  return sets;
}

class Kernels : public ::testing::TestWithParam<int> {};

TEST_P(Kernels, NormAndItsBackward) {
  const auto n = static_cast<size_t>(GetParam());
  const std::vector<float> x = normals(n, 1), w = normals(n, 2, 0.3f), dy = normals(n, 3);
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double s = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
  for (const float offset : {0.0f, 1.0f}) {
    const NormGain g{w.data(), offset};
    double projection = 0;
    const auto gain = [&](size_t i) { return static_cast<double>(offset) + w[i]; };
    for (size_t i = 0; i < n; ++i) projection += gain(i) * dy[i] * x[i];
    for (const VectorKernels* k : available()) {
      std::vector<float> y(n), dx(n, 2.0f), again(n);
      float inv = 0;
      k->rms_norm({1, GetParam(), x.data(), g}, 1e-6f, y.data(), &inv);
      k->recompute_rms_norm({1, GetParam(), x.data(), g}, &inv, again.data());
      k->rms_norm_backward({1, GetParam(), x.data(), g}, &inv, dy.data(), dx.data(), StoreMode::accumulate);
      EXPECT_EQ(y, again) << k->name;
      for (size_t i = 0; i < n; ++i) {
        const double gradient = s * gain(i) * dy[i] - x[i] * s * s * s / static_cast<double>(n) * projection;
        EXPECT_NEAR(y[i], x[i] * s * gain(i), 4e-6) << k->name;
        EXPECT_NEAR(dx[i], 2 + gradient, 1e-5) << k->name;
      }
    }
  }
}

TEST_P(Kernels, SoftcapAndItsBackward) {
  const auto n = static_cast<size_t>(GetParam());
  std::vector<float> x = normals(n, 1, 40);  // from the straight part to far into saturation
  for (size_t i = 0; i < n; i += 3) x[i] *= 0.001f;
  const std::vector<float> d = normals(n, 2);
  for (const VectorKernels* k : available()) {
    std::vector<float> y = x, dx = d;
    k->softcap(GetParam(), 50, y.data());
    k->softcap_backward(GetParam(), 50, y.data(), dx.data());
    for (size_t i = 0; i < n; ++i) {
      const double expected = 50 * std::tanh(x[i] / 50.0), slope = 1 - std::pow(std::tanh(x[i] / 50.0), 2);
      EXPECT_NEAR(y[i], expected, 3e-7 * std::abs(expected)) << k->name;
      EXPECT_NEAR(dx[i], d[i] * slope, 4e-7 * std::abs(d[i])) << k->name;
    }
  }
}

double gelu(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
}

TEST_P(Kernels, GegluAndItsBackward) {
  const auto n = static_cast<size_t>(GetParam());
  const std::vector<float> gate = normals(n, 1, 3), up = normals(n, 2), d = normals(n, 3);
  for (const VectorKernels* k : available()) {
    std::vector<float> out(n), dg = gate, du = up, m = d;
    k->geglu(GetParam(), gate.data(), up.data(), out.data());
    k->geglu_backward(GetParam(), dg.data(), du.data(), m.data());
    EXPECT_EQ(m, out) << k->name << ": the backward must leave what the forward computed";
    for (size_t i = 0; i < n; ++i) {
      const double slope = (gelu(gate[i] + 1e-5) - gelu(gate[i] - 1e-5)) / 2e-5;
      EXPECT_NEAR(out[i], gelu(gate[i]) * up[i], 1e-6 * (1 + std::abs(out[i]))) << k->name;
      EXPECT_NEAR(dg[i], slope * up[i] * d[i], 3e-6 * (1 + std::abs(dg[i]))) << k->name;
      EXPECT_NEAR(du[i], gelu(gate[i]) * d[i], 1e-6 * (1 + std::abs(du[i]))) << k->name;
    }
  }
}

TEST_P(Kernels, SoftmaxOverASpan) {
  const int n = GetParam(), lo = n / 5, hi = n - n / 7;
  const std::vector<float> x = normals(static_cast<size_t>(n), 1, 6);
  double total = 0;
  for (int i = lo; i < hi; ++i) total += std::exp(static_cast<double>(x[static_cast<size_t>(i)]));
  for (const VectorKernels* k : available()) {
    std::vector<float> p = x, again = x;
    const float lse = k->softmax(n, lo, hi, p.data());
    k->recompute_softmax(n, lo, hi, lse, again.data());
    EXPECT_NEAR(lse, std::log(total), 2e-6 * (1 + std::abs(lse))) << k->name;
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      const double expected = i >= lo && i < hi ? std::exp(static_cast<double>(x[at])) / total : 0;
      EXPECT_NEAR(p[at], expected, 4e-6 * expected) << k->name;
      EXPECT_NEAR(again[at], expected, 6e-6 * expected) << k->name;
    }
  }
}

TEST_P(Kernels, CrossEntropyAndItsGradient) {
  const auto n = static_cast<size_t>(GetParam());
  const std::vector<float> x = normals(n, 1, 4);
  const size_t target = n / 2;
  double total = 0;
  for (const float v : x) total += std::exp(static_cast<double>(v));
  for (const VectorKernels* k : available()) {
    std::vector<float> logits = x, kept = x;
    const double loss = k->cross_entropy(GetParam(), logits.data(), static_cast<std::int64_t>(target), 0, 0.5f);
    EXPECT_NEAR(loss, std::log(total) - x[target], 1e-6) << k->name;
    EXPECT_EQ(k->cross_entropy(GetParam(), kept.data(), static_cast<std::int64_t>(target), 0, 0), loss) << k->name;
    for (size_t i = 0; i < n; ++i)
      EXPECT_NEAR(logits[i], 0.5 * (std::exp(static_cast<double>(x[i])) / total - (i == target)), 2e-7) << k->name;
  }
}

TEST_P(Kernels, CrossEntropyOfCappedLogitsGoesBackThroughTheCap) {
  const auto n = static_cast<size_t>(GetParam());
  const std::vector<float> x = normals(n, 1, 4);
  const size_t target = n / 2;
  for (const VectorKernels* k : available()) {
    std::vector<float> capped = x, plain = x;
    for (std::vector<float>* logits : {&capped, &plain}) k->softcap(GetParam(), 3, logits->data());
    const std::vector<float> y = capped;
    EXPECT_NEAR(k->cross_entropy(GetParam(), capped.data(), static_cast<std::int64_t>(target), 3, 0.5f),
                k->cross_entropy(GetParam(), plain.data(), static_cast<std::int64_t>(target), 0, 0.5f), 1e-12)
        << k->name;
    k->softcap_backward(GetParam(), 3, y.data(), plain.data());
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(capped[i], plain[i], 1e-7) << k->name;
  }
}

TEST_P(Kernels, WeightedSumsOfRowsAndTheHighest) {
  const int dim = GetParam(), n = 21;
  const std::vector<float> p = normals(static_cast<size_t>(7 * n), 1), v = normals(static_cast<size_t>(n * dim), 2);
  for (const VectorKernels* k : available()) {
    EXPECT_EQ(k->max(dim, v.data()), *std::max_element(v.begin(), v.begin() + dim)) << k->name;
    for (int m = 1; m <= 7; ++m) {
      std::vector<float> o(static_cast<size_t>(m * dim), 9.0f);
      k->weighted_sums({m, dim, n}, {p.data(), n}, v.data(), o.data(), StoreMode::write);
      for (int i = 0; i < m; ++i)
        for (int d = 0; d < dim; ++d) {
          double sum = 0;
          for (int j = 0; j < n; ++j)
            sum += static_cast<double>(p[static_cast<size_t>(i * n + j)]) * v[static_cast<size_t>(j * dim + d)];
          ASSERT_NEAR(o[static_cast<size_t>(i * dim + d)], sum, 1e-5) << k->name << " " << m << " " << d;
        }
    }
  }
}

TEST_P(Kernels, SmallMatrixProducts) {
  const int n = GetParam(), rows = 39;
  const std::vector<float> a = normals(static_cast<size_t>(5 * n), 1), b = normals(static_cast<size_t>(rows * n), 2);
  for (const VectorKernels* k : available())
    for (int m = 1; m <= 5; ++m) {
      std::vector<float> c(static_cast<size_t>(m * rows), 1.0f);
      k->dot_rows({m, rows, n}, a.data(), b.data(), c.data(), {2, 1}, {0, rows});
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < rows; ++j) {
          double sum = 0;
          for (int l = 0; l < n; ++l)
            sum += static_cast<double>(a[static_cast<size_t>(i * n + l)]) * b[static_cast<size_t>(j * n + l)];
          EXPECT_NEAR(c[static_cast<size_t>(i * rows + j)], 1 + 2 * sum, 1e-6 * n + 1e-5) << k->name;
        }
    }
}

TEST_P(Kernels, ARowsBitsDoNotDependOnItsCompany) {
  const int n = GetParam(), rows = 39;
  const std::vector<float> a = normals(static_cast<size_t>(n), 1), b = normals(static_cast<size_t>(rows * n), 2);
  std::vector<float> copies;
  for (int i = 0; i < 7; ++i) copies.insert(copies.end(), a.begin(), a.end());
  for (const VectorKernels* k : available())
    for (const float beta : {0.0f, 1.0f}) {
      std::vector<float> alone(static_cast<size_t>(rows), 1.3f);
      k->dot_rows({1, rows, n}, a.data(), b.data(), alone.data(), {0.3f, beta}, {0, rows});
      for (int m = 2; m <= 7; ++m) {
        std::vector<float> c(static_cast<size_t>(m * rows), 1.3f);
        k->dot_rows({m, rows, n}, copies.data(), b.data(), c.data(), {0.3f, beta}, {0, rows});
        for (int i = 0; i < m; ++i)
          EXPECT_TRUE(std::equal(alone.begin(), alone.end(), c.begin() + i * rows))
              << k->name << ", row " << i << " of " << m << ", beta " << beta;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Kernels, ::testing::Values(1, 5, 16, 31, 48, 1027, 9001));

TEST(KernelSet, Bf16RoundsToNearestEvenAndKeepsNan) {
  const std::vector<float> x{1.0f, 1.00390625f, 1.01171875f, -2.5f, NAN, INFINITY, 3.4e38f, 1e-40f};
  for (const VectorKernels* k : available()) {
    std::vector<std::uint16_t> bits(x.size());
    std::vector<float> back(x.size());
    k->narrow(static_cast<std::int64_t>(x.size()), x.data(), bits.data());
    k->widen(static_cast<std::int64_t>(x.size()), bits.data(), back.data());
    EXPECT_EQ(back[0], 1.0f);
    EXPECT_EQ(back[1], 1.0f) << "a tie goes to the even neighbour below";
    EXPECT_EQ(back[2], 1.015625f) << "a tie goes to the even neighbour above";
    EXPECT_EQ(back[3], -2.5f);
    EXPECT_TRUE(std::isnan(back[4]));
    EXPECT_EQ(back[5], INFINITY);
    EXPECT_EQ(back[6], INFINITY);
  }
}

// AVX2 and AVX-512 give the same bits: a run can move between them. (The baseline has no FMA.)
TEST(KernelSet, EveryClassWithFmaGivesTheSameBits) {
  std::vector<const VectorKernels*> all;
  for (const VectorKernels* k : available())
    if (k != &vector_kernels_base()) all.push_back(k);
  if (all.size() < 2) GTEST_SKIP() << "this processor has one class with FMA";
  for (const int n : {1, 4, 8, 12, 16, 24, 31, 32, 48, 64, 192}) {
    const auto size = static_cast<size_t>(n);
    const std::vector<float> x = normals(5 * size, 1), y = normals(5 * size, 2), g = normals(size, 3),
                             b = normals(size * size, 4), few = normals(16 * (size + 1), 5);
    const auto same = [&](const char* what, auto results) {
      std::vector<float> first;
      for (const VectorKernels* k : all) {
        const std::vector<float> now = results(*k);
        if (first.empty()) first = now;
        EXPECT_TRUE(now == first) << what << ", " << k->name << ", " << n;
      }
    };
    same("rms_norm_add", [&](const VectorKernels& k) {
      std::vector<float> out(5 * size), inv(5);
      k.rms_norm_add({5, n, x.data(), {g.data(), 1}}, 1e-6f, y.data(), out.data(), inv.data());
      out.insert(out.end(), inv.begin(), inv.end());
      return out;
    });
    same("rms_norm_backward", [&](const VectorKernels& k) {
      std::vector<float> out = y;
      const std::vector<float> inv(5, 0.7f);
      k.rms_norm_backward({5, n, x.data(), {g.data(), 1}}, inv.data(), y.data(), out.data(), StoreMode::accumulate);
      return out;
    });
    same("rms_norm_weight", [&](const VectorKernels& k) {
      std::vector<float> dw = g;
      const std::vector<float> inv(5, 0.7f);
      k.rms_norm_weight({5, n, x.data(), {g.data(), 1}}, inv.data(), y.data(), {0, n}, dw.data());
      return dw;
    });
    if (n % 2 == 0)
      same("rope", [&](const VectorKernels& k) {
        std::vector<float> heads = x;
        const std::vector<float> cosines = normals(8 * size, 6), sines = normals(8 * size, 7);
        const int positions[] = {0, 3, 1, 2, 4};
        k.rope({5, 1, n, positions}, {cosines.data(), sines.data()}, 1, heads.data());
        return heads;
      });
    same("softcap", [&](const VectorKernels& k) {
      std::vector<float> v = x;
      k.softcap(n, 3, v.data());
      k.softcap_backward(n, 3, v.data(), v.data() + size);
      return v;
    });
    same("weighted_sums", [&](const VectorKernels& k) {
      std::vector<float> o = y;
      k.weighted_sums({3, n, 5}, {few.data(), 5}, x.data(), o.data(), StoreMode::accumulate);
      return o;
    });
    same("sums", [&](const VectorKernels& k) {
      std::vector<float> v = x;
      k.add(n, y.data(), 0.3f, v.data());
      v.push_back(static_cast<float>(k.dot(n, x.data(), y.data())));
      v.push_back(static_cast<float>(k.exp_sum(n, 2, x.data())));
      k.recompute_softmax(n, 0, n, 1.3f, v.data());
      return v;
    });
    same("geglu", [&](const VectorKernels& k) {
      std::vector<float> gate = x, up = y, d = y;
      k.geglu_backward(n, gate.data(), up.data(), d.data());
      gate.insert(gate.end(), d.begin(), d.end());
      return gate;
    });
    same("softmax", [&](const VectorKernels& k) {
      std::vector<float> s = x;
      s.push_back(k.softmax(n, n / 4, n, s.data()));
      k.softmax_backward(n, s.data(), y.data(), 0.3f);
      return s;
    });
    for (const float cap : {0.0f, 30.0f})
      same("cross_entropy", [&](const VectorKernels& k) {
        std::vector<float> s = x;
        s.push_back(static_cast<float>(k.cross_entropy(n, s.data(), n / 2, cap, 0.5f)));
        return s;
      });
    for (const float beta : {0.0f, 1.0f})
      for (const int rows : {1, 2, 5}) {
        same("dot_rows", [&](const VectorKernels& k) {
          std::vector<float> c(5 * size, 1.0f);
          k.dot_rows({rows, n, n}, x.data(), b.data(), c.data(), {0.3f, beta}, {0, n});
          return c;
        });
        same("dot_rows, depth 16", [&](const VectorKernels& k) {
          std::vector<float> c(5 * size, 1.0f);
          k.dot_rows({rows, n, 16}, normals(80, 6).data(), few.data(), c.data(), {0.3f, beta}, {0, n});
          return c;
        });
      }
    same("dropout", [&](const VectorKernels& k) {
      std::vector<float> out = y;
      k.dropout(n, {9, 0, 0.3f}, x.data(), out.data(), StoreMode::accumulate);
      return out;
    });
    same("adamw", [&](const VectorKernels& k) {
      std::vector<float> value = x, m = y, v(size, 0.5f);
      k.adamw(n, {0.1f, 0.999f, 0.001f, 0.99f, 1e-3f, 1.1f, 1e-8f, 0.9f}, g.data(), value.data(), m.data(), v.data());
      value.insert(value.end(), v.begin(), v.end());
      return value;
    });
  }
}

TEST(KernelSet, NanPassesThroughGegluAndCrossEntropy) {  // a broken step must publish, not become a plausible number
  for (const VectorKernels* k : available()) {
    std::vector<float> x(40, 1.0f), out(40), up(40, 1.0f);
    x[3] = NAN;
    k->geglu(40, x.data(), up.data(), out.data());
    EXPECT_TRUE(std::isnan(out[3])) << k->name;
    EXPECT_FALSE(std::isnan(out[4])) << k->name;
    std::vector<float> logits(40, NAN);
    EXPECT_TRUE(std::isnan(k->cross_entropy(40, logits.data(), 2, 0, 1.0f))) << k->name;
  }
}

TEST(KernelSet, DropoutKeepsTheRightShareAndScales) {
  std::vector<float> x(20000, 2.0f);
  for (const VectorKernels* k : available()) {
    std::vector<float> out(x.size(), 1.0f), part(x.size(), 1.0f);
    k->dropout(20000, {99, 0, 0.25f}, x.data(), out.data(), StoreMode::write);
    k->dropout(5000, {99, 15000, 0.25f}, x.data() + 15000, part.data() + 15000, StoreMode::accumulate);
    int kept = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(out[i] == 0 || std::abs(out[i] - 2 / 0.75f) < 1e-6f);
      kept += out[i] != 0;
      if (i >= 15000) {
        EXPECT_EQ(part[i], 1 + out[i]) << "the mask depends on the index alone";
      }
    }
    EXPECT_NEAR(kept, 15000, 300);
  }
}

// All shapes of the seam, f32 and bf16, with sizes that leave ragged panels and threads without work.
TEST(Gemm, AgreesWithDoubleArithmetic) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const int threads : {1, 3})
    for (const Size s : {Size{1, 33, 20}, Size{5, 70, 100}, Size{9, 7, 3}, Size{70, 41, 65}, Size{33, 3, 300000},
                         Size{20, 300000, 3}}) {
      Device device(Bytes(0), threads);
      Gemm gemm(device, model::WeightType::f32);
      const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<size_t>(a * b); };
      const std::vector<float> a = normals(size(s.m, s.k), 1), b = normals(size(s.n, s.k), 2);
      std::vector<std::uint16_t> bits(b.size());
      std::vector<float> wide(b.size()), transposed(b.size()), a_t(a.size());
      vector_kernels().narrow(static_cast<std::int64_t>(b.size()), b.data(), bits.data());
      vector_kernels().widen(static_cast<std::int64_t>(b.size()), bits.data(), wide.data());
      std::vector<std::uint16_t> bits_t(b.size());
      for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t k = 0; k < s.k; ++k) {
          transposed[size(k, s.n) + static_cast<size_t>(n)] = b[size(n, s.k) + static_cast<size_t>(k)];
          bits_t[size(k, s.n) + static_cast<size_t>(n)] = bits[size(n, s.k) + static_cast<size_t>(k)];
        }
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t k = 0; k < s.k; ++k)
          a_t[size(k, s.m) + static_cast<size_t>(m)] = a[size(m, s.k) + static_cast<size_t>(k)];
      std::vector<float> nt(size(s.m, s.n), 1.0f), nt16 = nt, nn = nt, nn16 = nt, tn = nt;
      gemm.nt({s.m, s.n, s.k}, a.data(), {.f32 = b.data()}, nt.data(), {2, 1});
      gemm.nt({s.m, s.n, s.k}, a.data(), {.bf16 = bits.data()}, nt16.data(), {2, 1});
      gemm.nn({s.m, s.n, s.k}, a.data(), {.f32 = transposed.data()}, nn.data(), {2, 1});
      gemm.nn({s.m, s.n, s.k}, a.data(), {.bf16 = bits_t.data()}, nn16.data(), {2, 1});
      gemm.tn({s.m, s.n, s.k}, a_t.data(), transposed.data(), tn.data(), {2, 1});
      const double tolerance = 5e-5 * std::sqrt(static_cast<double>(s.k));
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t n = 0; n<s.n; n += s.n> 1000 ? 997 : 1) {
          double sum = 0, sum16 = 0;
          for (std::int64_t k = 0; k < s.k; ++k) {
            sum += static_cast<double>(a[size(m, s.k) + static_cast<size_t>(k)]) *
                   b[size(n, s.k) + static_cast<size_t>(k)];
            sum16 += static_cast<double>(a[size(m, s.k) + static_cast<size_t>(k)]) *
                     wide[size(n, s.k) + static_cast<size_t>(k)];
          }
          const size_t at = size(m, s.n) + static_cast<size_t>(n);
          for (const auto* c : {&nt, &nn, &tn})
            ASSERT_NEAR((*c)[at], 1 + 2 * sum, tolerance) << s.m << " x " << s.n << " x " << s.k;
          for (const auto* c : {&nt16, &nn16})
            ASSERT_NEAR((*c)[at], 1 + 2 * sum16, tolerance) << s.m << " x " << s.n << " x " << s.k;
        }
    }
}

}  // namespace
}  // namespace mw::engine
