// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/engine/kernels/onednn_gemm.h"

namespace mw::engine {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
// Read directly, because __builtin_cpu_supports of clang 14 does not accept the names f16c and avxvnni.
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}
constexpr unsigned kAvxVnni = 1u << 4;  // leaf 7, subleaf 1: EAX
#endif

#if defined(__aarch64__)
constexpr Cpu kLowest = Cpu::neon, kHighest = Cpu::neon_bf16;
constexpr const char* kNames = "base, neon, neon_dotprod or neon_bf16";
#else
constexpr Cpu kLowest = Cpu::avx2, kHighest = Cpu::amx;
constexpr const char* kNames = "base, avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16 or amx";
#endif

Cpu allowed() {
  const char* wish = std::getenv("MESHWRIGHT_CPU");
  if (!wish || !*wish) return kHighest;
  std::string name = wish;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::optional<Cpu> cpu = parse<Cpu>(name);
  if (!cpu || (*cpu != Cpu::base && (*cpu < kLowest || *cpu > kHighest)))
    throw Error("CPU", "MESHWRIGHT_CPU names no instruction set of this architecture",
                {.place = "environment",
                 .found = wish,
                 .expected = kNames,
                 .fix = "unset it to use the best this processor has"});
  return *cpu;
}

}  // namespace

bool has(Cpu cpu) {
  switch (cpu) {
    case Cpu::base:
      return true;
#if defined(__x86_64__)
    case Cpu::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && (cpuid(1, 0).c & bit_F16C) != 0;
    case Cpu::avx_vnni:
      return has(Cpu::avx2) && (cpuid(7, 1).a & kAvxVnni) != 0;
    case Cpu::avx512:
      return has(Cpu::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Cpu::avx512_vnni:
      return has(Cpu::avx512) && __builtin_cpu_supports("avx512vnni");
    case Cpu::avx512_bf16:
      return has(Cpu::avx512_vnni) && __builtin_cpu_supports("avx512bf16");
    case Cpu::amx:
      return has(Cpu::avx512_bf16) && has_onednn_amx();
#elif defined(__aarch64__)
    case Cpu::neon:
      return true;
    case Cpu::neon_dotprod:
      return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    case Cpu::neon_bf16: {
      const unsigned long more = getauxval(AT_HWCAP2);
      return has(Cpu::neon_dotprod) && more & HWCAP2_BF16 && more & HWCAP2_I8MM;
    }
#endif
    default:
      return false;
  }
}

Cpu usable_cpu() {
  static const Cpu cpu = [] {
    Cpu best = allowed();
    while (!has(best)) best = static_cast<Cpu>(static_cast<int>(best) - 1);
    return best;
  }();
  return cpu;
}

}  // namespace mw::engine
