// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/error.h"

namespace mw::engine {
namespace {

constexpr std::string_view kNames[] = {"base", "avx2", "avx512", "avx512_bf16"};

Cpu detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") ? Cpu::avx512_bf16
                                                                                        : Cpu::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Cpu::avx2;
#endif
  return Cpu::base;
}

Cpu allowed() {
  const char* wish = std::getenv("MESHWRIGHT_CPU");
  if (!wish || !*wish) return Cpu::avx512_bf16;
  const auto* found = std::find(std::begin(kNames), std::end(kNames), std::string_view(wish));
  if (found == std::end(kNames))
    throw Error({.id = "CPU",
                 .message = "MESHWRIGHT_CPU names no instruction set",
                 .place = "environment",
                 .found = wish,
                 .expected = "base, avx2, avx512 or avx512_bf16",
                 .fix = "unset it to use the best this processor has"});
  return static_cast<Cpu>(found - std::begin(kNames));
}

}  // namespace

std::string_view name_of(Cpu cpu) {
  return kNames[static_cast<size_t>(cpu)];
}

Cpu usable_cpu() {
  static const Cpu cpu = std::min(detected(), allowed());
  return cpu;
}

}  // namespace mw::engine
