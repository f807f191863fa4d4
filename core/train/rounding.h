// SPDX-License-Identifier: Apache-2.0
// Bounds of the difference between two runs of a training step that sum in different order. Plain values.
//
// A sum of n terms in floating point is the exact sum of terms that are each off by a factor 1 + d. In the worst case
// |d| <= n u, with roundings that are not all in one direction |d| <= lambda sqrt(n) u, except with a probability that
// falls as exp(-lambda^2 / 2) (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci.
// Comput. 41(5), 2019, theorem 2.4; u = 2^-24 for f32). Along a step the sums follow each other: forward through every
// layer's products, softmax and loss, the same back, and over the tokens for a gradient. Their lengths add up:
//   n = 2 * (sum over layers of the inner lengths of their products and of attention, plus dim and vocab) + tokens.
// DoRA divides the outputs of projections by norms of rows, which are sums as long as those of the products. A square
// root halves a relative error: their lengths count a quarter.
// Products that round their operands to bf16 (packed bf16 weights) add, for each of m consecutive products, an error
// that does not grow with the length, because it averages out: u16 / sqrt(3), u16 = 2^-9.
// A softmax turns a relative error of its scores into a relative error of the probabilities that is larger by the
// magnitude of the scores: s = attention_scale * sqrt(head_dim) for heads with q and k norms (1 for Gemma 3, more for
// Gemma 4).
// Two runs differ by at most twice that; relative to the largest gradient of the tensor:
//   relative = 2 * lambda * max(1, s) * sqrt(u^2 n + u16^2 m / 3),  lambda = 3
// The gradient starts at p - 1, where p is the probability of the right token. If p is close to 1, the summands of the
// gradient are larger than the gradient by 1 / (1 - p); exp(-loss) is used for p.
#pragma once
#include <cstdint>

#include "core/model/config.h"
#include "core/options/training.h"

namespace mw::train {

struct StepRounding {
  double relative = 0;      // bound relative to the magnitude of the result
  double cancellation = 1;  // factor for gradients, >= 1
  double gradient(double largest) const { return relative * cancellation * largest; }
};

struct RoundingInput {
  std::int64_t tokens = 1;  // of all micro-batches of the step
  int longest = 1;          // longest segment in tokens
  double loss = 1;          // mean loss in nats
  bool bf16_products = false;
  bool row_norms = false;  // of DoRA
};
StepRounding step_rounding(const model::Config& config, const RoundingInput& step);

// Bound of the mean loss, for logits of magnitude log(vocab) with independent errors per token.
double loss_bound(const StepRounding& rounding, double loss, int vocab, std::int64_t loss_tokens);

// Bounds of an AdamW update (optimizer.h) of one element whose gradient has an error.
struct UpdateInput {
  options::AdamWOptions options;
  std::int64_t t = 1;          // counts from 1
  double rate = 0;             // learning rate
  double coefficient = 1;      // clipping factor
  double off_coefficient = 0;  // relative error of the clipping factor
};
struct UpdateBound {
  double value = 0, first = 0, second = 0;
};
// `value`, `first` and `second` are value and moments before the update, equal in both runs; `gradient` is the gradient
// before clipping, with an error of at most `off`. Weight decay depends only on the value and adds no error.
UpdateBound update_bound(const UpdateInput& update, double value, double first, double second, double gradient,
                         double off);

}  // namespace mw::train
