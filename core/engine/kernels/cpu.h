// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels use.
#pragma once
#include "core/base/enum_names.h"

namespace mw::engine {

enum class Cpu { base, avx2, avx512, avx512_bf16, amx };

// The best instruction set of this processor; the environment variable MESHWRIGHT_CPU (one of the names) selects a
// lower one, e.g. for tests. Read once. Throws Error for an unknown name.
Cpu usable_cpu();

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<5> mw::kEnumNames<mw::engine::Cpu>{"base", "avx2", "avx512", "avx512_bf16", "amx"};
