// SPDX-License-Identifier: Apache-2.0
// How far two runs of the same training step may differ whose sums are done in another order: what a proof allows and
// no more. Plain values; any thread.
//
// A sum of n terms in floating point is the exact sum of terms that are each off by a factor 1 + d. In the worst case
// |d| <= n u, with roundings that are not all in one direction |d| <= lambda sqrt(n) u, except with a probability that
// falls as exp(-lambda^2 / 2) (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci.
// Comput. 41(5), 2019, theorem 2.4; u = 2^-24 for f32). Along a step the sums follow each other: forward through every
// layer's products, softmax and loss, the same back, and over the tokens for a gradient. Their lengths add up:
//   n = 2 * (sum over layers of the inner lengths of their products and of attention, plus dim and vocab) + tokens.
// Where products round what they multiply to bf16 (packed bf16 weights), each of the m products in a row adds an error
// that does not grow with its length, for it averages: u16 / sqrt(3), u16 = 2^-9.
// A softmax makes of a relative error of its scores one of the probabilities that is larger by the size of the scores:
// s = attention_scale * sqrt(head_dim) for heads whose q and k have norms, as theirs have (1 for Gemma 3, more for 4).
// Two runs differ by at most twice that; relative to the largest gradient of the tensor:
//   relative = 2 * lambda * max(1, s) * sqrt(u^2 n + u16^2 m / 3),  lambda = 3
// The gradient starts at p - 1, p the probability of the right token: where p is near 1 its own summands are much
// larger than itself, by 1 / (1 - p); exp(-loss) stands for p.
#pragma once
#include <cstdint>

#include "core/engine/transformer/optimizer.h"
#include "core/model/config.h"

namespace mw::train {

struct StepRounding {
  double relative = 0;      // of whatever comes out of the whole chain, to its magnitude
  double cancellation = 1;  // of gradients, >= 1
  double gradient(double largest) const { return relative * cancellation * largest; }
};

struct RoundingOf {
  std::int64_t tokens = 1;  // of the step, all micro-batches
  int longest = 1;          // tokens that attend to each other
  double loss = 1;          // mean, nats
  bool bf16_products = false;
};
StepRounding step_rounding(const model::Config& config, const RoundingOf& step);

// Mean loss: logits of the size of the surprise of a uniform guess, off independently from token to token.
double loss_bound(const StepRounding& rounding, double loss, int vocab, std::int64_t loss_tokens);

// What AdamW (engine/optimizer.h) makes of a gradient that may be off, element by element.
struct UpdateOf {
  engine::AdamWOptions options;
  std::int64_t t = 1;          // counts from 1
  double rate = 0;             // learning rate
  double coefficient = 1;      // of clipping
  double off_coefficient = 0;  // by how much that may differ, relative
};
struct UpdateBound {
  double value = 0, first = 0, second = 0;
};
// value, first and second moment before the update, of both runs; gradient before clipping, off by at most `off`.
// Weight decay acts on the value alone, alike in both.
UpdateBound update_bound(const UpdateOf& update, double value, double first, double second, double gradient,
                         double off);

}  // namespace mw::train
