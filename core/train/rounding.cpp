// SPDX-License-Identifier: Apache-2.0
#include "core/train/rounding.h"

#include <algorithm>
#include <cmath>

namespace mw::train {
namespace {

constexpr double kLambda = 3, kUnit = 0x1p-24, kUnit16 = 0x1p-9;
constexpr double kFewRoundings = 8;  // f32 operations of one update

// Sum of the inner lengths in the forward pass of one layer.
double lengths(const model::Config& c, const model::Layer& l, const RoundingInput& step) {
  const int longest = step.longest;
  const double context = l.attention == model::Attention::sliding ? std::min(c.sliding_window, longest) : longest;
  const double projections = 2.0 * c.dim + static_cast<double>(l.heads) * l.head_dim + l.mlp_dim;
  double n = (step.row_norms ? 1.25 : 1) * projections + l.head_dim + context;
  if (c.experts > 0) n += c.dim + c.expert_dim;
  if (c.ple_dim > 0) n += c.dim + c.ple_dim;
  return n;
}

// Magnitude of attention scores with QK-norm; at least 1.
double score_size(const model::Config& c) {
  double size = 1;
  for (const model::Layer& l : c.layers)
    if (c.qk_norm) size = std::max(size, static_cast<double>(c.attention_scale) * std::sqrt(l.head_dim));
  return c.attention_softcap > 0 ? std::min(size, std::max(1.0, static_cast<double>(c.attention_softcap))) : size;
}

}  // namespace

StepRounding step_rounding(const model::Config& c, const RoundingInput& step) {
  double forward = c.dim + static_cast<double>(c.vocab);
  for (const model::Layer& l : c.layers) forward += lengths(c, l, step);
  const double sums = 2 * forward + static_cast<double>(step.tokens);
  const double products = step.bf16_products ? 2 * (4 * static_cast<double>(c.layers.size()) + 1) : 0;
  StepRounding r;
  r.relative = 2 * kLambda * score_size(c) * std::sqrt(kUnit * kUnit * sums + kUnit16 * kUnit16 * products / 3);
  r.cancellation = 1 / std::max(1e-6, 1 - std::exp(-std::max(0.0, step.loss)));
  return r;
}

double loss_bound(const StepRounding& rounding, double loss, int vocab, std::int64_t loss_tokens) {
  const double magnitude = loss + std::log(static_cast<double>(std::max(2, vocab)));
  return rounding.relative * magnitude / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, loss_tokens)));
}

UpdateBound update_bound(const UpdateInput& u, double value, double first, double second, double gradient, double off) {
  const double beta1 = u.options.beta1, beta2 = u.options.beta2;
  const double g = u.coefficient * gradient;
  const double d = u.coefficient * off + std::abs(g) * u.off_coefficient;
  const double few = kFewRoundings * kUnit;
  const double bias1 = 1 - std::pow(beta1, static_cast<double>(u.t)),
               bias2 = 1 - std::pow(beta2, static_cast<double>(u.t));
  // The gradient is between |g| - d and |g| + d.
  const double least = std::max(0.0, std::abs(g) - d), most = std::abs(g) + d;
  const auto root = [&](double with) { return std::sqrt((beta2 * second + (1 - beta2) * with * with) / bias2); };
  const double m = (beta1 * first + (1 - beta1) * g) / bias1, off_m = (1 - beta1) * d / bias1;
  const double low = root(least) + u.options.epsilon, high = root(most) + u.options.epsilon;
  // |m' / s' - m / s| <= |m' - m| / s' + |m| |1 / s' - 1 / s|, and at most the sum of both quotients. A quotient
  // is bounded by the contributions of the old moments and of the gradient, because s' is at least that of each.
  const double by_itself = (1 - beta1) / bias1 * std::sqrt(bias2 / (1 - beta2));
  const double from_before = beta1 * std::abs(first) / bias1 / (std::sqrt(beta2 * second / bias2) + u.options.epsilon);
  const double largest = std::min((std::abs(m) + off_m) / low, from_before + by_itself);
  const double quotient = std::min(off_m / low + std::abs(m) * (1 / low - 1 / high), 2 * largest);
  UpdateBound b;
  b.value = u.rate * (quotient + few * largest) + few * std::abs(value);
  b.first = (1 - beta1) * d + few * (std::abs(first) + std::abs(g));
  b.second = (1 - beta2) * (most * most - least * least) + few * (second + most * most);
  return b;
}

}  // namespace mw::train
