// SPDX-License-Identifier: GPL-3.0-or-later
// bf16 weights of 12 bits: the same numbers, the same products bit for bit, the same text, in three quarters of the
// memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/kernels/bf16x12.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/engine/kernels/packed_gemm.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine {
namespace {

using Bits = std::vector<std::uint16_t>;
using Element = std::function<float(const Rng&, std::uint64_t)>;

float normal(const Rng& rng, std::uint64_t i) {
  return 0.02f * rng.normal_at(i);
}
float wild(const Rng& rng, std::uint64_t i) {  // any exponent
  return std::ldexp(rng.normal_at(i), static_cast<int>(200 * rng.uniform_at(i + 1)) - 100);
}
// Outliers and zeros, fewer in a block than its header holds and more.
Element seldom(int one_in) {
  return [one_in](const Rng& rng, std::uint64_t i) {
    const auto which = static_cast<int>(rng.at(i + 1) % static_cast<std::uint64_t>(2 * one_in));
    return which == 0 ? 0.0f : which == 1 ? -3e4f : normal(rng, i);
  };
}

Bits values(std::int64_t rows, std::int64_t k, const Element& element) {
  const Rng rng{3};
  Bits bits(static_cast<size_t>(rows * k));
  for (size_t i = 0; i < bits.size(); ++i) {
    const float x = element(rng, 2 * i);
    vector_kernels().narrow(1, &x, &bits[i]);
  }
  return bits;
}

Bits panels(std::int64_t rows, std::int64_t k, const Bits& bits) {
  Bits out(bits.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < k; ++c)
      out[static_cast<size_t>(packed_index(k, r, c))] = bits[static_cast<size_t>(r * k + c)];
  return out;
}

struct Bf16x12Weights {
  Arena arena{Bytes(0)};
  OverflowTable overflow{arena};
  std::vector<std::byte> bytes;
  Bf16x12Weights(std::int64_t rows, std::int64_t k, const Bits& bits)
      : bytes(static_cast<size_t>(sizes::bf16x12_bytes(rows, k))) {
    for (std::int64_t r = 0; r < rows; r += kPanelRows)
      write_bf16x12_panel(k, bits.data() + r * k, bytes.data() + sizes::bf16x12_bytes(r, k), overflow);
  }
  bool has_overflow() const { return arena.use().now.total().value > 0; }
};

TEST(Bf16x12Gemm, EveryBitComesBack) {
  struct Row {
    const char* name;
    Element element;
    bool overflow;
  };
  const Row table[] = {{"normal", normal, false},
                       {"zero", [](const Rng&, std::uint64_t) { return 0.0f; }, false},
                       {"a few odd ones", seldom(2000), false},
                       {"many odd ones", seldom(100), true},
                       {"wild", wild, true}};
  for (const Row& row : table)
    for (const std::int64_t k : {4, 128, 132, 640, 1100}) {
      const std::int64_t rows = 96;
      const Bits bits = values(rows, k, row.element), expected = panels(rows, k, bits);
      const Bf16x12Weights compact(rows, k, bits);
      if (k >= 128) {
        EXPECT_EQ(compact.has_overflow(), row.overflow) << row.name << ", " << k;
      }
      Bits out(bits.size());
      cpu_kernels().bf16.packed.widen_bf16x12(rows, k, 0, k, compact.bytes.data(), out.data());
      EXPECT_EQ(out, expected) << row.name << ", " << k;
      for (std::int64_t r = 31; r < rows; r += 40) {
        const std::int64_t first = k / 3, count = k - first - 1;
        std::vector<float> part(static_cast<size_t>(count));
        widen_row({.bf16x12 = compact.bytes.data()}, k, r, first, count, part.data());
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(part[static_cast<size_t>(i)]),
                    std::uint32_t{bits[static_cast<size_t>(r * k + first + i)]} << 16)
              << row.name << ", row " << r << ", column " << first + i << " of " << k;
      }
    }
}

TEST(Bf16x12Gemm, ProductsAreThoseOfPanelsBitForBit) {
  for (const Element& element : {Element(normal), seldom(2000), seldom(100)})
    for (const int threads : {1, 3})
      for (const std::int64_t k : {64, 644, 4480})
        for (const std::int64_t m : {1, 2, 5, 12, 13, 16, 17, 31, 33, 300}) {
          const std::int64_t n = 160, rank = m % 3 == 0 ? 8 : 0;
          const Bits bits = values(n, k, element), packed = panels(n, k, bits);
          const Bf16x12Weights compact(n, k, bits);
          Device device(Bytes(0), threads);
          Gemm gemm(device, model::WeightType::bf16);
          const Rng rng{5};
          std::vector<float> a(static_cast<size_t>(m * k)), z(static_cast<size_t>(m * 8)),
              l(static_cast<size_t>(n * 8));
          for (std::vector<float>* x : {&a, &z, &l})
            for (size_t i = 0; i < x->size(); ++i) (*x)[i] = rng.normal_at(i);
          const LowRank low{rank > 0 ? z.data() : nullptr, l.data(), rank, 0.5f};
          std::vector<float> expected(static_cast<size_t>(m * n), 1.0f), c = expected;
          gemm.nt({m, n, k}, a.data(), {.packed = packed.data()}, expected.data(), {0.5f, 1.0f}, low);
          gemm.nt({m, n, k}, a.data(), {.bf16x12 = compact.bytes.data()}, c.data(), {0.5f, 1.0f}, low);
          ASSERT_EQ(c, expected) << m << " x " << n << " x " << k << ", " << threads << " threads";
          const WeightRef last = slice({.bf16x12 = compact.bytes.data()}, 128, k);
          std::vector<float> part(static_cast<size_t>(m * 32)), whole = part;
          gemm.nt({m, 32, k}, a.data(), last, part.data());
          gemm.nt({m, 32, k}, a.data(), slice({.packed = packed.data()}, 128, k), whole.data());
          ASSERT_EQ(part, whole) << "of a slice";
        }
}

// One value in `one_in` is of any size, denormals among them.
Element odd_sizes(int one_in) {
  return [one_in](const Rng& rng, std::uint64_t i) {
    const std::uint64_t r = rng.at(i + 1);
    return r % static_cast<std::uint64_t>(one_in) == 0 ? std::ldexp(normal(rng, i), -static_cast<int>(r / 7 % 134))
                                                       : normal(rng, i);
  };
}

TEST(Bf16x12Gemm, EveryClassOfX86GivesTheSameBits) {
  const std::vector<Cpu> classes = candidates(Arithmetic::fma, ProductKind::few_bf16, usable_cpu());
  if (classes.size() < 2) GTEST_SKIP() << "this processor has one class";
  for (const int one_in : {2, 1500})
    for (const std::int64_t m : {1, 5, 13, 16, 29, 64}) {
      const std::int64_t n = 96, k = 640;
      const Bf16x12Weights w(n, k, values(n, k, odd_sizes(one_in)));
      const Rng rng{9};
      std::vector<float> a(static_cast<size_t>(m * k)), first;
      for (size_t i = 0; i < a.size(); ++i) a[i] = 50 * odd_sizes(3)(rng, 2 * i);
      for (const Cpu cpu : classes) {
        KernelChoice pure;
        pure.classes.fill(cpu);
        const CpuKernels kernels = kernels_of(pure);
        Device device(Bytes(0), 2);
        DeviceBuffer<std::uint16_t> workspace;
        PackedGemm gemm(device, kernels.bf16, workspace);
        std::vector<float> c(static_cast<size_t>(m * n));
        gemm.run({.m = m,
                  .n = n,
                  .k = k,
                  .a = a.data(),
                  .b = {.kind = PackedProduct::Kind::bf16x12, .bf16x12 = w.bytes.data()},
                  .c = c.data()});
        if (first.empty()) first = c;
        ASSERT_EQ(std::memcmp(c.data(), first.data(), c.size() * sizeof(float)), 0)
            << to_string(cpu) << ", " << m << " rows, one in " << one_in;
      }
    }
}

// Every kind of layer, its matrices in whole panels.
model::Config family(const std::string& name) {
  model::Config c = test::tiny_config();
  c.vocab = 96, c.dim = 64;
  for (model::Layer& l : c.layers) l.heads = 4, l.kv_heads = 2, l.head_dim = 16, l.mlp_dim = 96;
  c = test::as_family(c, name);
  if (c.ple_dim > 0) c.ple_dim = 32;
  if (c.experts > 0) c.expert_dim = 32;
  return c;
}

struct Loaded {
  Device device{Bytes(0), 2};
  Network network;
  Loaded(const model::Config& config, NetworkUse use, const Element& element)
      : network(config, device, model::WeightType::bf16, use) {
    network.load({.f32 =
                      [&](size_t index, std::int64_t first, std::span<float> out) {
                        const Rng rng{8, index};
                        for (size_t i = 0; i < out.size(); ++i)
                          out[i] = 8 * element(rng, 2 * (static_cast<std::uint64_t>(first) + i));
                      },
                  .bf16 = {}});
  }
  double weight_bytes() { return static_cast<double>(device.arena.use().now[MemoryCategory::weights].value); }
};

class Bf16x12Families : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, Bf16x12Families, ::testing::ValuesIn(test::families()), test::family_name);

// On any processor: where kernels do not pack, both are the same.
TEST_P(Bf16x12Families, TextAndLogitsAreThoseOfPanels) {
  for (const Element& element : {Element(normal), seldom(2000)}) {
    const model::Config config = family(GetParam());
    Loaded panels(config, NetworkUse::training, element), compact(config, NetworkUse::inference, element);
    const test::OwnedBatch batch = test::packed_batch(2, 40, config.vocab);
    std::vector<float> logits[2];
    std::vector<std::vector<int>> prompts, answers[2];
    for (int row = 0; row < 13; ++row) prompts.push_back({5 * row + 2, row + 1, 7});
    for (Loaded* model : {&panels, &compact}) {
      const size_t which = model == &compact ? 1 : 0;
      logits[which].resize(80 * static_cast<size_t>(config.vocab));
      model->network.logits(batch, logits[which]);
      model->network.add_lora(test::all_projections(), 5);
      test::randomise_adapters(model->network, 6);
      answers[which] = Sampler(model->network).generate_batch(prompts, {.max_new_tokens = 12});
      answers[which].push_back(Sampler(model->network).generate(prompts[3], {.max_new_tokens = 20}));
    }
    EXPECT_EQ(logits[0], logits[1]);
    EXPECT_EQ(answers[0], answers[1]);
  }
}

model::Config larger() {
  model::Config c = family("gemma3");
  c.vocab = 1024, c.dim = 256;
  for (model::Layer& l : c.layers) l.head_dim = 32, l.mlp_dim = 512;
  return c;
}

TEST(Bf16x12Gemm, TakeThreeQuartersOfTheMemoryAndAtMostAsMuchWhereTheyDoNotFit) {
  EXPECT_NEAR(Loaded(larger(), NetworkUse::inference, normal).weight_bytes() /
                  Loaded(larger(), NetworkUse::training, normal).weight_bytes(),
              0.76, 0.01);
  const Element any = [](const Rng& rng, std::uint64_t i) { return std::ldexp(wild(rng, i), -3); };
  Loaded panels(larger(), NetworkUse::training, any), compact(larger(), NetworkUse::inference, any);
  EXPECT_NEAR(compact.weight_bytes() / panels.weight_bytes(), 1.02, 0.03);
  for (size_t i = 0; i < compact.network.inventory().tensors().size(); ++i) {
    const auto was = panels.network.weight_f32(i), is = compact.network.weight_f32(i);
    EXPECT_TRUE(std::equal(was.begin(), was.end(), is.begin(), is.end()))
        << compact.network.inventory().tensors()[i].name;
  }
}

TEST(Bf16x12, CannotBeTrained) {
  Loaded model(larger(), NetworkUse::inference, normal);
  model.network.add_lora(test::all_projections(), 1);
  EXPECT_THROW(model.network.set_trainable(model::TrainMethod::lora), Error);
}

}  // namespace
}  // namespace mw::engine
