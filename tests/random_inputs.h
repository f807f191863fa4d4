// SPDX-License-Identifier: GPL-3.0-or-later
// How many random inputs the tests of properties take, and which: scripts/random-plans.sh sets the environment
// variables.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace mw::test {

inline long environment_number(const char* variable, long fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtol(text, nullptr, 10) : fallback;
}

// `each` times MW_RANDOM_TIMES.
inline int random_inputs(int each) {
  return each * static_cast<int>(environment_number("MW_RANDOM_TIMES", 1));
}

// Differs with MW_RANDOM_SEED, which is 0 in a usual run of the tests.
inline std::uint64_t random_seed(std::uint64_t own) {
  return own + 1'000'000'000 * static_cast<std::uint64_t>(environment_number("MW_RANDOM_SEED", 0));
}

}  // namespace mw::test
