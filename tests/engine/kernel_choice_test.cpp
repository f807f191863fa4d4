// SPDX-License-Identifier: GPL-3.0-or-later
// The choice of kernels: what MESHWRIGHT_CPU permits, with an empty cache, a filled one and one that is wrong.
#include "core/engine/kernels/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/engine/kernels/packed_gemm.h"
#include "tests/base/file_faults.h"
#include "tests/base/scratch.h"

namespace mw::engine {
namespace {

TEST(KernelChoice, IsOneOfTheProcessorsClassesUpToTheLimit) {
  for (const Arithmetic arithmetic : all_values<Arithmetic>()) {
    if (!has(arithmetic)) continue;
    const KernelChoice& choice = kernel_choice(arithmetic);
    for (const ProductKind kind : all_values<ProductKind>()) {
      EXPECT_TRUE(has(choice[kind])) << to_string(arithmetic) << ", " << to_string(kind);
      EXPECT_LE(choice[kind], usable_cpu()) << to_string(arithmetic) << ", " << to_string(kind);
    }
  }
}

// Each limit, as MESHWRIGHT_CPU sets it, whatever this process is held to.
TEST(KernelChoice, TakesTheClassThatALimitLeaves) {
  if (!has(Arithmetic::fma)) GTEST_SKIP() << "no AVX2 on this processor";
  const std::string processor = processor_model();
  const KernelChoice none = choose_kernels(Arithmetic::sse2, Cpu::base, processor, {});
  const KernelChoice avx2 = choose_kernels(Arithmetic::fma, Cpu::avx2, processor, {});
  EXPECT_EQ(none.by, ChosenBy::only_one);
  EXPECT_EQ(avx2.by, ChosenBy::only_one);
  for (const ProductKind kind : all_values<ProductKind>()) {
    EXPECT_EQ(none[kind], Cpu::base) << to_string(kind);
    EXPECT_EQ(avx2[kind], Cpu::avx2) << to_string(kind);
  }
  if (!has(Cpu::avx512_bf16)) return;
  const auto all = candidates(Arithmetic::fma, ProductKind::bf16, Cpu::avx512_bf16);
  EXPECT_THAT(all, testing::ElementsAre(Cpu::avx2, Cpu::avx512, Cpu::avx512_bf16));
  EXPECT_THAT(candidates(Arithmetic::fma, ProductKind::bf16, Cpu::avx512_vnni),
              testing::ElementsAre(Cpu::avx2, Cpu::avx512));
}

// Takes one class for one kind of product, and the lowest for the others.
TEST(KernelChoice, IsWhatProductsUse) {
  for (const Arithmetic arithmetic : all_values<Arithmetic>()) {
    if (!has(arithmetic)) continue;
    for (const ProductKind chosen : all_values<ProductKind>())
      for (const Cpu cpu : candidates(arithmetic, chosen, usable_cpu())) {
        KernelChoice choice, pure;
        for (const ProductKind kind : all_values<ProductKind>())
          choice[kind] = candidates(arithmetic, kind, usable_cpu()).front();
        const KernelChoice lowest = choice;
        choice[chosen] = cpu;
        pure.classes.fill(cpu);
        const CpuKernels found = kernels_of(choice), of_class = kernels_of(pure), of_lowest = kernels_of(lowest);
        const auto expected = [&](ProductKind kind) -> const CpuKernels& {
          return kind == chosen ? of_class : of_lowest;
        };
        EXPECT_EQ(found.f32.gemm.block, expected(ProductKind::f32).f32.gemm.block);
        EXPECT_EQ(found.f32.packed.skinny_rows, expected(ProductKind::f32).f32.packed.skinny_rows);
        EXPECT_EQ(found.bf16.gemm.block, expected(ProductKind::bf16).bf16.gemm.block);
        EXPECT_EQ(found.bf16.packed.block, expected(ProductKind::bf16).bf16.packed.block);
        EXPECT_EQ(found.bf16.packed.skinny_rows, expected(ProductKind::few_bf16).bf16.packed.skinny_rows);
        EXPECT_EQ(found.bf16.packed.skinny_bf16x12, expected(ProductKind::few_bf16).bf16.packed.skinny_bf16x12);
        EXPECT_EQ(found.bf16.packed.int8_rows, expected(ProductKind::int8).bf16.packed.int8_rows);
        EXPECT_EQ(found.bf16.packed.quantise_rows, expected(ProductKind::int8).bf16.packed.quantise_rows);
      }
    const CpuKernels now = kernels_of(kernel_choice(arithmetic));
    EXPECT_EQ(cpu_kernels(arithmetic).f32.gemm.block, now.f32.gemm.block);
    EXPECT_EQ(cpu_kernels(arithmetic).bf16.gemm.block, now.bf16.gemm.block);
    EXPECT_EQ(cpu_kernels(arithmetic).bf16.packed.skinny_bf16x12, now.bf16.packed.skinny_bf16x12);
    EXPECT_EQ(cpu_kernels(arithmetic).bf16.packed.int8_rows, now.bf16.packed.int8_rows);
  }
}

// Notes for which kind of product a kernel is called.
ProductKind ran{};
template <ProductKind kind, class F>
struct Noted;
template <ProductKind kind, class... A>
struct Noted<kind, void (*)(A...)> {
  static inline void (*kernel)(A...) = nullptr;
  static void call(A... arguments) {
    ran = kind;
    kernel(arguments...);
  }
};
template <ProductKind kind, class F>
void note(F& kernel) {
  Noted<kind, F>::kernel = kernel;
  kernel = Noted<kind, F>::call;
}

// `bench` names the kernels that product_kind() says; PackedGemm takes them by rows of its own.
TEST(KernelChoice, ProductsTakeTheKindThatIsNamed) {
  constexpr std::int64_t kColumns = 32, kDepth = 256;
  const std::vector<float> a(64 * kDepth, 1.0f);
  const std::vector<std::uint16_t> panels(kColumns * kDepth), scales(kColumns * groups_of(kDepth));
  const std::vector<std::int8_t> bytes(kColumns * kDepth);
  for (const Cpu cpu : candidates(Arithmetic::fma, ProductKind::bf16, usable_cpu())) {
    KernelChoice pure;
    pure.classes.fill(cpu);
    ProductKernels kernels = kernels_of(pure).bf16;
    note<ProductKind::bf16>(kernels.gemm.block), note<ProductKind::bf16>(kernels.packed.block);
    note<ProductKind::few_bf16>(kernels.packed.skinny_rows), note<ProductKind::int8>(kernels.packed.int8_rows);
    for (const model::WeightType type : {model::WeightType::bf16, model::WeightType::int8})
      for (std::int64_t rows = 1; rows <= 64; ++rows) {
        std::vector<float> c(static_cast<size_t>(rows * kColumns));
        PackedProduct product{.m = rows, .n = kColumns, .k = kDepth, .a = a.data(), .c = c.data()};
        product.b.packed = panels.data(), product.b.int8 = {bytes.data(), scales.data()};
        if (type == model::WeightType::int8) product.b.kind = PackedProduct::Kind::int8;
        Device device(Bytes(0), 1);
        DeviceBuffer<std::uint16_t> workspace;
        PackedGemm(device, kernels, workspace).run(product);
        EXPECT_EQ(ran, product_kind(type, rows)) << to_string(cpu) << ", " << to_string(type) << ", " << rows;
      }
  }
}

// Each class in turn is the fastest, or not by enough.
TEST(KernelChoice, IsTheFastestClass) {
  if (!has(Arithmetic::fma)) GTEST_SKIP() << "no AVX2 on this processor";
  for (const ProductKind kind : all_values<ProductKind>()) {
    const std::vector<Cpu> all = candidates(Arithmetic::fma, kind, usable_cpu());
    if (all.size() < 2) continue;
    for (const Cpu fast : all)
      for (const double seconds : {0.5, 0.97}) {
        const auto time = [&](ProductKind timed, Cpu cpu) { return timed == kind && cpu == fast ? seconds : 1.0; };
        const KernelChoice choice = choose_kernels(Arithmetic::fma, usable_cpu(), "Unknown 1 2", {}, time);
        EXPECT_EQ(choice.by, ChosenBy::timing);
        EXPECT_EQ(choice[kind], seconds < 0.9 ? fast : all.back()) << to_string(kind) << ", " << to_string(fast);
      }
  }
}

// `bench`, `inspect` and About show the kernels that products use.
TEST(KernelChoice, IsDescribedAsItIs) {
  const std::vector<std::string> lines = describe_choice();
  ASSERT_EQ(lines.size(), 3u);
  const KernelChoice& choice = kernel_choice(best_arithmetic(model::WeightType::f32));
  EXPECT_THAT(lines[0], testing::HasSubstr(cpu_kernels(best_arithmetic(model::WeightType::f32)).f32.instructions));
  const CpuKernels& bf16 = cpu_kernels(best_arithmetic(model::WeightType::bf16));
  EXPECT_THAT(lines[1], testing::HasSubstr(bf16.bf16.instructions));
  EXPECT_THAT(lines[2], testing::HasSubstr(cpu_kernels(best_arithmetic(model::WeightType::int8)).int8_instructions));
  EXPECT_THAT(lines[0], testing::HasSubstr(to_string(choice.by)));
  if (choice[ProductKind::f32] == Cpu::avx2) {
    EXPECT_EQ(product_instructions(ProductKind::f32, best_arithmetic(model::WeightType::f32)), "AVX2 FMA");
  }
  if (choice[ProductKind::f32] == Cpu::base) {
    EXPECT_EQ(product_instructions(ProductKind::f32, best_arithmetic(model::WeightType::f32)), "SSE2");
  }
}

TEST(KernelChoice, ThrowsForAnArithmeticThatTheProcessorLacks) {
  for (const Arithmetic arithmetic : all_values<Arithmetic>())
    if (!has(arithmetic)) {
      EXPECT_ANY_THROW(cpu_kernels(arithmetic)) << to_string(arithmetic);
    }
}

class KernelCache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (candidates(Arithmetic::fma, ProductKind::bf16, usable_cpu()).size() < 2 || !has(Arithmetic::fma))
      GTEST_SKIP() << "this processor has one class";
  }
  KernelChoice choose() const { return choose_kernels(Arithmetic::fma, usable_cpu(), "Unknown 1 2", file_); }
  mw::test::Scratch folder_;
  std::filesystem::path file_ = folder_.path() / "meshwright" / "kernels.json";
};

TEST_F(KernelCache, IsFilledByATimingAndReadAfterwards) {
  const KernelChoice timed = choose(), again = choose();
  EXPECT_EQ(timed.by, ChosenBy::timing);
  EXPECT_EQ(again.by, ChosenBy::cache);
  for (const ProductKind kind : all_values<ProductKind>()) EXPECT_EQ(timed[kind], again[kind]) << to_string(kind);
  // Another processor, or another limit, is timed apart; both stay.
  EXPECT_EQ(choose_kernels(Arithmetic::fma, usable_cpu(), "Unknown 3 4", file_).by, ChosenBy::timing);
  EXPECT_EQ(choose().by, ChosenBy::cache);
}

TEST_F(KernelCache, IsTimedAnewWhereTheContentIsWrong) {
  choose();
  const Json good = read_json(file_);
  const std::string key = good["choices"].begin().key();
  const auto with = [&](auto change) {
    Json bad = good;
    change(bad);
    return bad.dump();
  };
  for (const std::string& content :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"schema\": 3, \"choices\": {}}"),
        with([](Json& j) { j["schema"] = "meshwright-kernels-0"; }), with([](Json& j) { j["choices"] = 7; }),
        with([&](Json& j) { j["choices"][key] = "avx2"; }), with([&](Json& j) { j["choices"][key].erase("int8"); }),
        with([&](Json& j) { j["choices"][key]["bf16"] = 5; }),
        with([&](Json& j) { j["choices"][key]["bf16"] = "sse9"; }),
        with([&](Json& j) { j["choices"][key]["f32"] = "neon"; }),
        with([&](Json& j) { j["choices"][key]["bf16"] = "amx"; })}) {
    write_file_atomically(file_, content);
    EXPECT_EQ(choose().by, ChosenBy::timing) << content;
    EXPECT_EQ(choose().by, ChosenBy::cache) << content;
  }
}

TEST_F(KernelCache, IsDoneWithoutWhereItCannotBeWritten) {
  write_file_atomically(folder_.path() / "file", "");
  file_ = folder_.path() / "file" / "kernels.json";
  EXPECT_EQ(choose().by, ChosenBy::timing);
  file_.clear();
  EXPECT_EQ(choose().by, ChosenBy::timing);
}

// The cache is left out if it cannot be written, and never half-written.
TEST_F(KernelCache, SurvivesEveryFault) {
  const auto write = [](const std::filesystem::path& folder) {
    choose_kernels(Arithmetic::fma, usable_cpu(), "Unknown 5 6", folder / "meshwright" / "kernels.json");
  };
  const auto check = [](const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "meshwright" / "kernels.json";
    if (!is_file(file)) return;
    EXPECT_EQ(read_json(file)["choices"].size(), 1u);
  };
  mw::test::try_every_fault(
      {.prepare = [](const auto&) {}, .write = write, .check_written = check, .check_unwritten = check});
}

TEST(KernelChoice, ShippedChoicesAreCandidates) {
  const KernelChoice zen4 = choose_kernels(Arithmetic::fma, Cpu::avx512_bf16, "AuthenticAMD 25 17", {});
  if (!has(Cpu::avx512_bf16)) GTEST_SKIP() << "the processor lacks classes of the shipped choice";
  EXPECT_EQ(zen4.by, ChosenBy::shipped);
  for (const ProductKind kind : all_values<ProductKind>())
    EXPECT_THAT(candidates(Arithmetic::fma, kind, Cpu::avx512_bf16), testing::Contains(zen4[kind]));
}

TEST(Arithmetics, F32HasTheBitsOfTheProcessorsFma) {
  using enum Arithmetic;
  EXPECT_TRUE(gives_same_bits(amx, fma, model::WeightType::f32));
  EXPECT_FALSE(gives_same_bits(amx, fma, model::WeightType::bf16));
  EXPECT_FALSE(gives_same_bits(fma, sse2, model::WeightType::f32));
  EXPECT_TRUE(gives_same_bits(neon, neon_bf16, model::WeightType::f32));
  EXPECT_FALSE(gives_same_bits(neon, fma, model::WeightType::f32));
}

}  // namespace
}  // namespace mw::engine
