// SPDX-License-Identifier: GPL-3.0-or-later
// The choice of kernels: what MESHWRIGHT_CPU permits, with an empty cache, a filled one and one that is wrong.
#include "core/engine/kernels/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/base/json.h"
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

// What `bench`, `inspect` and About show is what products use.
TEST(KernelChoice, IsDescribedAsItIs) {
  const std::vector<std::string> lines = describe_choice();
  ASSERT_EQ(lines.size(), 3u);
  const KernelChoice& choice = kernel_choice(best_arithmetic(model::WeightType::f32));
  EXPECT_THAT(lines[0], testing::HasSubstr(cpu_kernels(best_arithmetic(model::WeightType::f32)).f32.instructions));
  EXPECT_THAT(lines[0], testing::HasSubstr(to_string(choice.by)));
  if (choice[ProductKind::f32] == Cpu::avx2) {
    EXPECT_EQ(product_instructions(model::WeightType::f32), "AVX2 FMA");
  }
  if (choice[ProductKind::f32] == Cpu::base) {
    EXPECT_EQ(product_instructions(model::WeightType::f32), "SSE2");
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
