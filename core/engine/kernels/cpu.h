// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels use.
#pragma once
#include "core/base/enum_names.h"

namespace mw::engine {

// neon to neon_bf16: ARM64; avx2 to amx: x86-64.
enum class Cpu { base, neon, neon_dotprod, neon_bf16, avx2, avx512, avx512_bf16, amx };

// The best instruction set of this processor; the environment variable MESHWRIGHT_CPU (one of the names) selects a
// lower one, e.g. for tests. Read once. Throws Error for a name of another architecture or an unknown one.
Cpu usable_cpu();

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<8> mw::kEnumNames<mw::engine::Cpu>{"base", "neon",   "neon_dotprod", "neon_bf16",
                                                                  "avx2", "avx512", "avx512_bf16",  "amx"};
