// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: a value depends only on the stream's identity and the index, not on call order or
// thread, so a resumed, rematerialised or resharded run draws the same numbers. Mixing: the SplitMix64 finaliser
// (Steele et al. 2014).
#pragma once
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace mw {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Rng {
 public:
  // `identity` names the stream, e.g. {seed, step, layer}; different lists give independent streams.
  constexpr Rng(std::initializer_list<std::uint64_t> identity) {
    for (const std::uint64_t part : identity) key_ = mix64(key_ ^ mix64(part));
  }
  constexpr std::uint64_t at(std::uint64_t index) const { return mix64(key_ + index * 0xd1342543de82ef95ull); }
  // In [0, 1), with 24 bits.
  constexpr float uniform_at(std::uint64_t index) const { return static_cast<float>(at(index) >> 40) * 0x1p-24f; }
  // Standard normal (Box-Muller), from draws 2 * index and 2 * index + 1.
  float normal_at(std::uint64_t index) const {
    const double u1 = (static_cast<double>(at(2 * index) >> 11) + 1.0) * 0x1p-53;
    const double u2 = static_cast<double>(at(2 * index + 1) >> 11) * 0x1p-53;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2));
  }
  // Sequential use.
  constexpr std::uint64_t next() { return at(counter_++); }
  float next_uniform() { return uniform_at(counter_++); }
  constexpr std::uint64_t below(std::uint64_t n) {  // n > 0; bias below 2^-32 for n < 2^32
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t key_ = 0x6d65736877726967ull;
  std::uint64_t counter_ = 0;
};

}  // namespace mw
