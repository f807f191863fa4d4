// SPDX-License-Identifier: Apache-2.0
// The arithmetic of matrix products: kernels of one arithmetic give the same bits on every processor that has them.
#pragma once
#include "core/base/enum_names.h"

namespace mw::engine {

// sse2, fma, amx: x86-64. Products with f32 weights have the bits of fma with amx, too, and of neon with neon_bf16.
enum class Arithmetic { sse2, fma, amx, neon, neon_bf16 };

}  // namespace mw::engine

template <>
inline constexpr mw::EnumNames<5> mw::kEnumNames<mw::engine::Arithmetic>{"sse2", "fma", "amx", "neon", "neon_bf16"};
