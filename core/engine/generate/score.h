// SPDX-License-Identifier: Apache-2.0
// What a Network makes of given text, without gradients: the log-probability of every target, and the likeliest tokens
// in its place. With all logits at once, or with some rows of them at a time and only the results kept.
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

// By position of the batch, row * len + column; where there is no target: 0, and no ids (-1). Category logits.
struct Scores {
  Buffer<float> target;     // [rows*len] log p of the target
  Buffer<int> ids;          // [rows*len, k] likeliest first
  Buffer<float> log_probs;  // [rows*len, k] of those
  int k = 0;
};

class Scorer {
 public:
  explicit Scorer(Network& network) : network_(network) {}
  // Rows of the batch go through the layers kPassTokens at a time, whatever happens to the logits. Nothing after a
  // stop.
  std::optional<Scores> score(const TokenBatch& batch, const ScoreOptions& options, std::stop_token stop = {},
                              const std::function<void(long tokens_done)>& progress = {});

  static constexpr int kPassTokens = sizes::kPassTokens;  // a longer row has a pass to itself

 private:
  Network& network_;
};

}  // namespace mw::engine
