// SPDX-License-Identifier: Apache-2.0
// Autoregressive sampling from a Network (with its adapters) through a KV cache in blocks (category kv_cache), for a
// batch of rows, and the choice of a token from a row of logits.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/engine/transformer/network.h"
#include "core/options/sampling.h"

namespace mw::engine {

class Sampler {
 public:
  // A row's next token; false ends that row. Called on the generating thread, rows in order.
  using OnToken = std::function<bool(int row, int id)>;

  explicit Sampler(Network& network) : network_(network) {}
  // Continues every prompt (bos included), of any lengths; rows that have ended leave the batch. Prompts are prefilled
  // kPrefillTokens at a time. A stop ends all rows with the tokens so far.
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts,
                                               const options::SampleOptions& options, std::stop_token stop = {},
                                               const OnToken& on_token = {});
  // One prompt: row 0 of a batch of its own. on_token may return false to stop early.
  std::vector<int> generate(std::span<const int> prompt, const options::SampleOptions& options,
                            std::stop_token stop = {}, const std::function<bool(int)>& on_token = {});

  static constexpr int kPrefillTokens = sizes::kPassTokens;  // of one pass; a longer prompt has a pass to itself

 private:
  Network& network_;
};

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
