// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels use.
#pragma once
#include "core/base/enum_names.h"

namespace mw::engine {

// neon to neon_bf16: ARM64; avx2 to amx: x86-64. A processor that has one of them has all lower ones of its
// architecture, except avx_vnni, which few processors with AVX-512 have.
enum class Cpu { base, neon, neon_dotprod, neon_bf16, avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, amx };

// Whether this processor has the instruction set.
bool has(Cpu cpu);

// The best instruction set of this processor; the environment variable MESHWRIGHT_CPU (one of the names) selects a
// lower one, e.g. for tests. Read once. Throws Error for a name of another architecture or an unknown one.
Cpu usable_cpu();

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<10> mw::kEnumNames<mw::engine::Cpu>{
    "base", "neon", "neon_dotprod", "neon_bf16", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"};
