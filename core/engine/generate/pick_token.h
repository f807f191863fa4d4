// SPDX-License-Identifier: Apache-2.0
// Choosing a token from a row of logits. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/options/sampling.h"

namespace mw::engine {

// In (0, 1): the random number behind a row's token at `position` of its answer is a function of these three alone.
double sampling_uniform(std::uint64_t seed, int row, int position);

// The token that `uniform` in (0, 1) picks after temperature, min-p (which drops tokens less likely than min_p times
// the likeliest), top-k and top-p (which keeps the token that crosses the threshold), in vLLM's order. Overwrites the
// logits. Any thread.
int pick_token(std::span<float> logits, const options::SampleOptions& options, double uniform);

struct TokenCandidate {
  float value;
  int id;
};
inline bool likelier(const TokenCandidate& a, const TokenCandidate& b) {  // of equals the first
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

// The k likeliest (all, if there are fewer), likeliest first.
std::vector<TokenCandidate> likeliest(std::span<const float> values, std::size_t k);

}  // namespace mw::engine
