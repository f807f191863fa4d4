// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of products. The processor decides their arithmetic, and so the bits of results; a timing never
// does. The classes (cpu.h) of one arithmetic differ in speed alone. Each kind of product takes the fastest class: from
// a shipped table for processors that were measured, else from one timing that is kept in the user's cache. Any thread.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/runtime/arithmetic.h"
#include "core/model/types.h"

namespace mw::engine {

// Kinds of products that may use different classes. few_bf16: at most kMaxSkinnyRows rows.
enum class ProductKind { f32, bf16, few_bf16, int8 };
// The kind for this number of rows of activations; for more than kMaxInt8Rows, int8 weights are widened to bf16.
ProductKind product_kind(model::WeightType type, std::int64_t rows);

enum class ChosenBy { only_one, shipped, cache, timing };

struct KernelChoice {
  std::array<Cpu, 4> classes{};  // by ProductKind
  ChosenBy by = ChosenBy::only_one;
  Cpu operator[](ProductKind kind) const { return classes[static_cast<size_t>(kind)]; }
  Cpu& operator[](ProductKind kind) { return classes[static_cast<size_t>(kind)]; }
};

// The arithmetic of usable_cpu().
Arithmetic best_arithmetic();
// Returns the arithmetic of usable_cpu() for weights of this type or, if one that more processors have gives the same
// bits, that one: fma instead of amx for f32 weights.
Arithmetic best_arithmetic(model::WeightType type);
// Whether this processor has the arithmetic and MESHWRIGHT_CPU permits it.
bool has(Arithmetic arithmetic);
// Whether products with weights of the type have the same bits in both.
bool gives_same_bits(Arithmetic a, Arithmetic b, model::WeightType type);

// Classes of this processor, up to `limit`, that differ in the kind of product; the highest last.
std::vector<Cpu> candidates(Arithmetic arithmetic, ProductKind kind, Cpu limit);

// Vendor, family and model, as in "AuthenticAMD 25 17"; in words, "AMD EPYC (family 25, model 17)".
std::string processor_model();
std::string processor_name();

// The choice stored for a processor in the content of a cache file; none if any of it is missing or wrong. Does not
// throw.
std::optional<KernelChoice> cached_choice(std::string_view content, Arithmetic arithmetic, Cpu limit,
                                          const std::string& processor);
// Seconds of a product by the kernels of a class; called several times for each.
using TimeProduct = std::function<double(ProductKind kind, Cpu cpu)>;
TimeProduct timed_products();
// Uses `cache` (empty: none), a JSON file; a missing, wrong or read-only one costs another timing. Does not throw.
KernelChoice choose_kernels(Arithmetic arithmetic, Cpu limit, const std::string& processor,
                            const std::filesystem::path& cache, const TimeProduct& time = timed_products());
CpuKernels kernels_of(const KernelChoice& choice);

// The choice of this process, made at the first call, and its kernels. Throws Error CPU unless has(arithmetic).
const KernelChoice& kernel_choice(Arithmetic arithmetic = best_arithmetic());
const CpuKernels& cpu_kernels(Arithmetic arithmetic = best_arithmetic());

// The instructions of products: "AVX2 FMA".
std::string product_instructions(ProductKind kind, Arithmetic arithmetic);
// In words: "AVX2 FMA on packed bf16 weights, in 12 bits for inference".
std::string describe_kernels(model::WeightType type, Arithmetic arithmetic);
// For each weight type, with how it was chosen: "f32: AVX2 FMA on packed f32 weights (shipped choice)".
std::vector<std::string> describe_choice();

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::engine::ProductKind>{"f32", "bf16", "few_bf16", "int8"};
template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::engine::ChosenBy>{"only one", "shipped choice", "timed earlier",
                                                                       "timed now"};
