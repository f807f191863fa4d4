// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels may use.
#pragma once
#include <string_view>

namespace mw::engine {

enum class Cpu { base, avx2, avx512, avx512_bf16 };
std::string_view name_of(Cpu cpu);

// The best this processor has; the environment's MESHWRIGHT_CPU (one of the names) holds it lower, e.g. to test.
// Read once. Throws Error for a name that is none.
Cpu usable_cpu();

}  // namespace mw::engine
