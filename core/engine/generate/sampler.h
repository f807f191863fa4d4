// SPDX-License-Identifier: Apache-2.0
// Autoregressive sampling from a Network (with its adapters) through a KV cache in blocks (category kv_cache), for a
// batch of rows.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/engine/generate/pick_token.h"
#include "core/engine/transformer/network.h"

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

}  // namespace mw::engine
