// SPDX-License-Identifier: Apache-2.0
// Autoregressive sampling from a Network (with its adapters) through a KV cache (category kv_cache), many rows at once.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/engine/transformer/network.h"

namespace mw::engine {

struct SampleOptions {
  int max_new_tokens = 64;
  float temperature = 0;  // 0: greedy
  int top_k = 0;          // 0: off
  float top_p = 1;
  std::uint64_t seed = 0;
  int first_row = 0;            // of the whole batch, where these prompts are a part of it
  std::vector<int> stop_ids{};  // a row ends before one of these (it is not returned)
};

// In (0, 1): the random number behind a row's token at `position` of its answer is a function of these three alone.
double sampling_uniform(std::uint64_t seed, int row, int position);

// The token that `uniform` in (0, 1) picks after temperature, top-k and top-p (which keeps the token that crosses the
// threshold), in that order. Overwrites the logits. Any thread.
int pick_token(std::span<float> logits, const SampleOptions& options, double uniform);

class Sampler {
 public:
  // A row's next token; false ends that row. Called on the generating thread, rows in order.
  using OnToken = std::function<bool(int row, int id)>;

  explicit Sampler(Network& network) : network_(network) {}
  // Continues every prompt (bos included), lengths as they come; rows that have ended leave the batch. Prompts are read
  // kPrefillTokens at a time. A stop ends all rows with what they have.
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& options,
                                               std::stop_token stop = {}, const OnToken& on_token = {});
  // One prompt: row 0 of a batch of its own. on_token may return false to stop early.
  std::vector<int> generate(std::span<const int> prompt, const SampleOptions& options, std::stop_token stop = {},
                            const std::function<bool(int)>& on_token = {});

  static constexpr int kPrefillTokens = sizes::kPassTokens;  // of one pass; a longer prompt has a pass to itself

 private:
  Network& network_;
};

}  // namespace mw::engine
