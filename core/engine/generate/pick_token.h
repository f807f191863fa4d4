// SPDX-License-Identifier: Apache-2.0
// Choosing a token from a row of logits. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mw::engine {

struct SampleOptions {
  int max_new_tokens = 64;
  float temperature = 0;  // 0: greedy
  int top_k = 0;          // 0: off
  float top_p = 1;
  float min_p = 0;  // 0: off
  std::uint64_t seed = 0;
  int first_row = 0;            // of the whole batch, where these prompts are a part of it
  std::vector<int> stop_ids{};  // a row ends before one of these (it is not returned)
};

// In (0, 1): the random number behind a row's token at `position` of its answer is a function of these three alone.
double sampling_uniform(std::uint64_t seed, int row, int position);

// The token that `uniform` in (0, 1) picks after temperature, min-p (which drops tokens less likely than min_p times
// the likeliest), top-k and top-p (which keeps the token that crosses the threshold), in vLLM's order. Overwrites the
// logits. Any thread.
int pick_token(std::span<float> logits, const SampleOptions& options, double uniform);

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
