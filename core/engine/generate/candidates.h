// SPDX-License-Identifier: Apache-2.0
// The likeliest entries of a row of logits or probabilities. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mw::engine {

struct Candidate {
  float value;
  int id;
};
inline bool likelier(const Candidate& a, const Candidate& b) {  // of equals the first
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

// The k likeliest (all, if there are fewer), likeliest first.
std::vector<Candidate> likeliest(std::span<const float> values, std::size_t k);

}  // namespace mw::engine
