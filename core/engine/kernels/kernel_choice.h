// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of products. Their arithmetic follows from the processor, never from a timing; among the classes
// of one arithmetic (cpu.h), which differ in speed alone, the fastest is taken for each kind of product: as shipped for
// processors that were measured, else as timed once and kept in the user's cache. Any thread.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/engine/kernels/cpu.h"
#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/runtime/arithmetic.h"
#include "core/model/types.h"

namespace mw::engine {

// The kinds of products whose kernels are chosen apart. few_bf16: at most kMaxSkinnyRows rows; int8: up to 24 rows.
enum class ProductKind { f32, bf16, few_bf16, int8 };

enum class ChosenBy { only_one, shipped, cache, timing };

struct KernelChoice {
  Cpu f32 = Cpu::base, bf16 = Cpu::base, few_bf16 = Cpu::base, int8 = Cpu::base;
  ChosenBy by = ChosenBy::only_one;
  bool operator==(const KernelChoice&) const = default;
};
Cpu class_of(const KernelChoice& choice, ProductKind kind);

// That of usable_cpu(); the one for weights of a type is the most common that gives its bits.
Arithmetic best_arithmetic();
Arithmetic best_arithmetic(model::WeightType type);
// Those that this processor has and MESHWRIGHT_CPU permits.
bool has(Arithmetic arithmetic);
// Whether products with weights of the type have the same bits.
bool gives_same_bits(Arithmetic a, Arithmetic b, model::WeightType type);

// Classes of the arithmetic that differ for the kind of product, up to `limit`, the best last.
std::vector<Cpu> candidates(Arithmetic arithmetic, ProductKind kind, Cpu limit);

// Vendor, family and model, as in "AuthenticAMD 25 17".
std::string processor_model();

// Reads and writes `cache` (empty: neither), whose content is not trusted. Throws nothing for it.
KernelChoice choose_kernels(Arithmetic arithmetic, Cpu limit, const std::string& processor,
                            const std::filesystem::path& cache);

// The choice for this process, made at the first call, and its kernels. Throws Error for an arithmetic that it lacks.
const KernelChoice& kernel_choice(Arithmetic arithmetic = best_arithmetic());
const CpuKernels& cpu_kernels(Arithmetic arithmetic = best_arithmetic());

// One line for each kind of product: "f32 products: AVX-512 FMA on packed f32 weights (shipped choice)".
std::vector<std::string> describe_kernels();

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::engine::ProductKind>{"f32", "bf16", "few_bf16", "int8"};
template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::engine::ChosenBy>{"only one", "shipped choice", "timed earlier",
                                                                       "timed now"};
