// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/engine/kernels/onednn_gemm.h"

namespace mw::engine {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports of clang 14 does not know "f16c".
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

Cpu detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return !__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni") ? Cpu::avx512
           : has_onednn_amx()                                                             ? Cpu::amx
                                                                                          : Cpu::avx512_bf16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) return Cpu::avx2;
#elif defined(__aarch64__)
  const unsigned long has = getauxval(AT_HWCAP), has2 = getauxval(AT_HWCAP2);
  if (!(has & HWCAP_ASIMDDP)) return Cpu::neon;
  return has2 & HWCAP2_BF16 && has2 & HWCAP2_I8MM ? Cpu::neon_bf16 : Cpu::neon_dotprod;
#endif
  return Cpu::base;
}

#if defined(__aarch64__)
constexpr Cpu kLowest = Cpu::neon, kHighest = Cpu::neon_bf16;
constexpr const char* kNames = "base, neon, neon_dotprod or neon_bf16";
#else
constexpr Cpu kLowest = Cpu::avx2, kHighest = Cpu::amx;
constexpr const char* kNames = "base, avx2, avx512, avx512_bf16 or amx";
#endif

Cpu allowed() {
  const char* wish = std::getenv("MESHWRIGHT_CPU");
  if (!wish || !*wish) return kHighest;
  const std::optional<Cpu> cpu = parse<Cpu>(wish);
  if (!cpu || (*cpu != Cpu::base && (*cpu < kLowest || *cpu > kHighest)))
    throw Error({.id = "CPU",
                 .message = "MESHWRIGHT_CPU names no instruction set of this architecture",
                 .place = "environment",
                 .found = wish,
                 .expected = kNames,
                 .fix = "unset it to use the best this processor has"});
  return *cpu;
}

}  // namespace

Cpu usable_cpu() {
  static const Cpu cpu = std::min(detected(), allowed());
  return cpu;
}

}  // namespace mw::engine
