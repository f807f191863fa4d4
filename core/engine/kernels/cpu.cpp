// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace mw::engine {
namespace {

Cpu detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") ? Cpu::avx512_bf16
                                                                                        : Cpu::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    return Cpu::avx2;
#endif
  return Cpu::base;
}

Cpu allowed() {
  const char* wish = std::getenv("MESHWRIGHT_CPU");
  if (!wish || !*wish) return Cpu::avx512_bf16;
  const std::optional<Cpu> cpu = parse<Cpu>(wish);
  if (!cpu)
    throw Error({.id = "CPU",
                 .message = "MESHWRIGHT_CPU names no instruction set",
                 .place = "environment",
                 .found = wish,
                 .expected = "base, avx2, avx512 or avx512_bf16",
                 .fix = "unset it to use the best this processor has"});
  return *cpu;
}

}  // namespace

Cpu usable_cpu() {
  static const Cpu cpu = std::min(detected(), allowed());
  return cpu;
}

}  // namespace mw::engine
