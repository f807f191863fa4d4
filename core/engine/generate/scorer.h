// SPDX-License-Identifier: Apache-2.0
// Scores given text without gradients: the log-probability of every target and the likeliest tokens in its place.
// Computes all logits at once, or some rows at a time and keeps only the results.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>

#include "core/base/buffer_sizes.h"
#include "core/engine/transformer/network.h"

namespace mw::engine {

struct ScoreOptions {
  int chunk = 64;  // rows of logits alive at once; 0: those of every target of the batch
  int top_k = 0;   // likeliest tokens kept of each row of logits
};

// Indexed by position in the batch, row * len + column; positions without a target: 0, ids -1. Category logits.
struct Scores {
  DeviceBuffer<float> target;     // [rows*len] log p of the target
  DeviceBuffer<int> ids;          // [rows*len, k] likeliest first
  DeviceBuffer<float> log_probs;  // [rows*len, k] of those
  int k = 0;
};

class Scorer {
 public:
  explicit Scorer(Network& network) : network_(network) {}
  // Computes kPassTokens tokens at a time, independent of the logits' chunk. Returns nothing after a stop.
  std::optional<Scores> score(const TokenBatch& batch, const ScoreOptions& options, std::stop_token stop = {},
                              const std::function<void(long tokens_done)>& progress = {});

  static constexpr int kPassTokens = sizes::kPassTokens;  // a longer row has a pass to itself

 private:
  Network& network_;
};

}  // namespace mw::engine
