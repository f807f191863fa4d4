// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/engine/transformer/norms.h"

namespace mw::engine {
namespace {

double head_flops(std::int64_t rows, const model::Config& c) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(c.dim) * static_cast<double>(c.vocab);
}

// Gathers rows of x into scratch.h and their final norm into scratch.norm.
void gather_for_head(Transformer& net, const float* x, std::span<const int> rows) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{net.config.dim};
  Scratch& scratch = net.buffers.step.scratch;
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(scratch.h + i * d, x + rows[static_cast<size_t>(i)] * d, static_cast<size_t>(d) * sizeof(float));
  norm(net, {n, d, scratch.h, net.weights.final_norm, scratch.inv}, scratch.norm);
}

void cap_logits(Transformer& net, std::int64_t rows, float* logits) {
  if (net.config.final_softcap == 0) return;
  net.device.pool.parallel_for(rows * net.config.vocab, 4096, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.softcap(end - begin, net.config.final_softcap, logits + begin);
  });
}

struct LossChunk {
  const Tokens& tokens;
  std::span<const int> rows;  // of x, each with a target
  std::int64_t max_rows;      // of any chunk of the step
  float gradient_scale;       // 0: no gradients
  float smoothing;            // share of the target that is spread over the vocabulary
  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
  int target(std::int64_t i) const { return tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])]; }
};

// The loss of a row is the logarithm of its sum of exponentials less its expected logit: that of the target, or with
// label smoothing also a share of the mean over the vocabulary. Of the logits on this device.
float expected_logit(const Transformer& net, float smoothing, float target_logit, double sum_of_logits) {
  if (smoothing == 0.0f) return target_logit;
  return static_cast<float>((1.0 - static_cast<double>(smoothing)) * static_cast<double>(target_logit) +
                            static_cast<double>(smoothing) * sum_of_logits / net.vocab());
}

double sum_of(std::span<const float> logits) {
  double sum = 0;
  for (const float x : logits) sum += static_cast<double>(x);
  return sum;
}

// The gradient of a row's logits: of its softmax, less 1 at the target, or what label smoothing leaves there.
SoftmaxGradient row_gradient(const Transformer& net, const LossChunk& chunk, std::int64_t target) {
  return {.cap = net.config.final_softcap,
          .target = target,
          .scale = chunk.gradient_scale * (1.0f - chunk.smoothing),
          .uniform = chunk.gradient_scale * chunk.smoothing / static_cast<float>(net.vocab())};
}

// Cross-entropy of rows from the device's part of the logits; if the vocabulary is split over devices, with one
// collective for the maxima and one for the sums of exponentials and the expected logits. With a gradient
// scale the gradients overwrite the logits, with zeros for the padding.
void losses_of_part(Transformer& net, const LossChunk& chunk, float* logits, std::span<double> losses) {
  const std::int64_t v = net.config.vocab;
  const mesh::IndexInterval own = net.vocab_rows();
  const std::int64_t columns = own.end - own.begin, n = chunk.size();
  std::vector<float> maxima(chunk.rows.size(), -std::numeric_limits<float>::infinity());
  std::vector<float> sums(2 * chunk.rows.size());  // of exponentials, and the expected logit
  const auto own_target = [&](std::int64_t i) {    // -1: on another device
    const std::int64_t id = chunk.target(i);
    return id >= own.begin && id < own.end ? id - own.begin : -1;
  };
  for (std::int64_t i = 0; i < n && columns > 0; ++i)
    maxima[static_cast<size_t>(i)] = net.kernels.max(columns, logits + i * v);
  if (net.splits_vocab()) net.hooks->max_over_vocab(maxima);
  net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      sums[2 * at] = static_cast<float>(net.kernels.exp_sum(columns, maxima[at], logits + i * v));
      const std::int64_t target = own_target(i);
      const float* const row = logits + i * v;
      sums[2 * at + 1] = expected_logit(net, chunk.smoothing, target >= 0 ? row[target] : 0.0f,
                                        chunk.smoothing > 0 ? sum_of({row, static_cast<size_t>(columns)}) : 0.0);
    }
  });
  if (net.splits_vocab()) net.hooks->sum_over_vocab(sums);
  net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double total = static_cast<double>(sums[2 * at]);
      losses[at] = std::log(total) + static_cast<double>(maxima[at]) - static_cast<double>(sums[2 * at + 1]);
      if (chunk.gradient_scale == 0.0f) continue;
      SoftmaxGradient gradient = row_gradient(net, chunk, own_target(i));
      gradient.max = maxima[at];
      gradient.factor = static_cast<float>(static_cast<double>(chunk.gradient_scale) / total);
      net.kernels.softmax_gradient(columns, gradient, logits + i * v);
      std::fill(logits + i * v + columns, logits + (i + 1) * v, 0.0f);
    }
  });
}

// Returns the sum of losses, from scratch.norm [rows, D]. With a gradient scale also writes the gradient of
// scratch.norm to scratch.t. All logits of the chunk exist at once.
double chunk_loss(Transformer& net, const LossChunk& chunk) {
  const std::int64_t n = chunk.size(), d = net.config.dim, v = net.config.vocab;
  const Weight& head = *net.weights.embedding;
  Scratch& scratch = net.buffers.step.scratch;
  float* logits = net.buffers.logit_rows(chunk.max_rows);
  std::vector<double> losses(chunk.rows.size());
  {
    const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
    net.gemm.nt({n, v, d}, scratch.norm, head.at, logits);
    cap_logits(net, n, logits);
  }
  if (net.splits_vocab() || chunk.smoothing > 0) {
    const auto timer = net.profile.time(Kernel::cross_entropy);
    losses_of_part(net, chunk, logits, losses);
  } else {
    const auto timer = net.profile.time(Kernel::cross_entropy);
    net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        losses[static_cast<size_t>(i)] = net.kernels.cross_entropy(v, logits + i * v, chunk.target(i),
                                                                   net.config.final_softcap, chunk.gradient_scale);
    });
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  if (chunk.gradient_scale == 0.0f) return sum;
  const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config) * (head.gradient ? 2 : 1));
  net.gemm.nn({n, d, v}, logits, head.at, scratch.t);
  if (head.gradient) net.gemm.tn({v, d, n}, logits, scratch.norm, head.gradient, {.beta = 1});
  return sum;
}

// Turns the statistics of rows (maxima, sums of exponentials, expected logits) of the device's part of the
// vocabulary into those of the whole vocabulary.
void combine_over_vocab(Transformer& net, std::span<float> maxima, std::span<double> sums, std::span<float> expected) {
  const std::vector<float> own(maxima.begin(), maxima.end());
  net.hooks->max_over_vocab(maxima);
  std::vector<float> values(2 * own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (sums[i] > 0)
      values[2 * i] =
          static_cast<float>(sums[i] * std::exp(static_cast<double>(own[i]) - static_cast<double>(maxima[i])));
    values[2 * i + 1] = expected[i];
  }
  net.hooks->sum_over_vocab(values);
  for (size_t i = 0; i < own.size(); ++i) sums[i] = static_cast<double>(values[2 * i]), expected[i] = values[2 * i + 1];
}

// Computes chunk_loss() with packed kernels. Each tile of logits is reduced while it is in the cache and kept as f16
// exponentials of (logit - running maximum of the row). The backward product turns these into bf16 gradients stripe by
// stripe. f32 logits exist for one tile per thread. Partial sums are added in the order of threads. With label
// smoothing bf16 differences (logit - running maximum) are kept instead: its gradient needs the logits where there is a
// softcap.
double streamed_chunk_loss(Transformer& net, const LossChunk& chunk) {
  const std::int64_t n = chunk.size(), d = net.config.dim, v = net.config.vocab;
  const std::uint16_t* const head = net.weights.embedding->at.packed;
  const GemmKernels& kernels = net.gemm.packed().products().gemm;
  const float cap = net.config.final_softcap, scale = chunk.gradient_scale;
  Scratch& scratch = net.buffers.step.scratch;
  std::uint16_t* const exponentials = net.buffers.f16_logit_rows(chunk.max_rows);
  float* const stripe_maxima = net.buffers.logit_maxima.data();  // [stripes, n], as of each stripe
  struct Partial {
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    double logits = 0;  // their sum, for label smoothing
  };
  std::vector<Partial> partial(static_cast<size_t>(n * net.device.pool.threads()));
  std::vector<float> target_logits(chunk.rows.size()), expected(chunk.rows.size()), lse(chunk.rows.size());
  const mesh::IndexInterval own = net.vocab_rows();
  const auto stripe = [&](std::int64_t column) { return exponentials + column * n; };  // [n, columns of the stripe]
  const auto target = [&](std::int64_t i) { return chunk.target(i) - own.begin; };
  const auto unpadded = [&](std::int64_t column, std::int64_t columns) {  // columns of a tile that are tokens
    return std::clamp<std::int64_t>(own.end - own.begin - column, 0, columns);
  };
  {
    const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
    net.gemm.packed().stream_tiles({n, v, d}, scratch.norm, head, [&](const PackedGemm::Tile& tile) {
      const std::int64_t columns = unpadded(tile.column, tile.columns);
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        const std::int64_t row = tile.row + r, column = target(row) - tile.column;
        Partial& p = partial[static_cast<size_t>(tile.thread * n + row)];
        float* x = tile.at + r * tile.stride;
        std::uint16_t* const out = stripe(tile.column) + row * tile.columns;
        if (columns > 0) kernels.logit_tile(columns, cap, x, out, &p.max, &p.sum);
        if (column >= 0 && column < columns) target_logits[static_cast<size_t>(row)] = x[column];
        if (chunk.smoothing > 0) {
          p.logits += sum_of({x, static_cast<size_t>(columns)});
          for (std::int64_t c = 0; c < columns; ++c) x[c] -= p.max;
          net.kernels.narrow(columns, x, out);
        }
        std::fill(out + columns, out + tile.columns, std::uint16_t{0});
        stripe_maxima[tile.column / PackedGemm::kStripe * n + row] = p.max;
      }
    });
  }
  std::vector<float> maxima(chunk.rows.size());
  std::vector<double> sums(chunk.rows.size());
  for (std::int64_t i = 0; i < n; ++i) {
    float max = -std::numeric_limits<float>::infinity();
    double sum = 0;
    for (int t = 0; t < net.device.pool.threads(); ++t)
      max = std::max(max, partial[static_cast<size_t>(t * n + i)].max);
    for (int t = 0; t < net.device.pool.threads(); ++t) {
      const Partial& p = partial[static_cast<size_t>(t * n + i)];
      if (p.sum > 0)
        sum += static_cast<double>(p.sum) * std::exp(static_cast<double>(p.max) - static_cast<double>(max));
    }
    maxima[static_cast<size_t>(i)] = max;
    sums[static_cast<size_t>(i)] = sum;
    double logits = 0;
    for (int t = 0; t < net.device.pool.threads(); ++t) logits += partial[static_cast<size_t>(t * n + i)].logits;
    expected[static_cast<size_t>(i)] =
        expected_logit(net, chunk.smoothing, target_logits[static_cast<size_t>(i)], logits);
  }
  if (net.splits_vocab()) combine_over_vocab(net, maxima, sums, expected);
  double loss = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double exact = static_cast<double>(maxima[static_cast<size_t>(i)]) + std::log(sums[static_cast<size_t>(i)]);
    lse[static_cast<size_t>(i)] = static_cast<float>(exact);
    loss += exact - static_cast<double>(expected[static_cast<size_t>(i)]);
  }
  if (scale == 0.0f) return loss;
  const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
  const auto write_gradients = [&](const PackedGemm::Stripe& at, std::uint16_t* out) {
    // The maxima of the stripe become the factors of its rows.
    float* const factors = stripe_maxima + at.column / PackedGemm::kStripe * n + at.row;
    for (std::int64_t r = 0; r < at.rows; ++r)
      factors[r] = scale * std::exp(factors[r] - lse[static_cast<size_t>(at.row + r)]);
    kernels.scaled_groups(at.rows, at.columns, factors, stripe(at.column) + at.row * at.columns, at.columns, out);
    for (std::int64_t r = 0; r < at.rows; ++r) {
      const auto row = static_cast<size_t>(at.row + r);
      const std::int64_t column = target(at.row + r) - at.column;
      if (column < 0 || column >= unpadded(at.column, at.columns)) continue;
      const float capped = cap > 0 ? target_logits[row] / cap : 0.0f;
      const float g = scale * (std::exp(target_logits[row] - lse[row]) - 1) * (1 - capped * capped);
      net.kernels.narrow(1, &g, out + group_index(kernels.group_rows, at.columns, r, column));
    }
  };
  const auto write_smoothed = [&](const PackedGemm::Stripe& at, std::uint16_t* out) {
    std::array<float, PackedGemm::kStripe> row{};
    std::array<std::uint16_t, PackedGemm::kStripe> narrowed{};
    const std::int64_t columns = unpadded(at.column, at.columns);
    for (std::int64_t r = 0; r < at.rows; ++r) {
      const std::int64_t i = at.row + r, column = target(i) - at.column;
      const float max = stripe_maxima[at.column / PackedGemm::kStripe * n + i];
      net.kernels.widen(columns, stripe(at.column) + i * at.columns, row.data());
      for (std::int64_t c = 0; c < columns; ++c) row[static_cast<size_t>(c)] += max;
      SoftmaxGradient gradient = row_gradient(net, chunk, column >= 0 && column < columns ? column : -1);
      gradient.max = lse[static_cast<size_t>(i)];
      gradient.factor = scale;
      net.kernels.softmax_gradient(columns, gradient, row.data());
      std::fill(row.begin() + columns, row.end(), 0.0f);
      net.kernels.narrow(at.columns, row.data(), narrowed.data());
      for (std::int64_t c = 0; c < at.columns; ++c)
        out[group_index(kernels.group_rows, at.columns, r, c)] = narrowed[static_cast<size_t>(c)];
    }
  };
  if (chunk.smoothing > 0)
    net.gemm.packed().multiply_stripes({n, d, v}, chunk.max_rows, head, write_smoothed, scratch.t);
  else
    net.gemm.packed().multiply_stripes({n, d, v}, chunk.max_rows, head, write_gradients, scratch.t);
  return loss;
}

}  // namespace

void head_logits(Transformer& net, const float* x, std::span<const int> rows, float* logits) {
  const auto n = static_cast<std::int64_t>(rows.size());
  gather_for_head(net, x, rows);
  const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
  net.gemm.nt({n, net.config.vocab, net.config.dim}, net.buffers.step.scratch.norm, net.weights.embedding->at, logits);
  cap_logits(net, n, logits);
}

LossSum compute_loss(Transformer& net, const Tokens& tokens, const float* x, const StepOptions& options,
                     StepGoal goal) {
  const auto total = static_cast<std::int64_t>(tokens.loss_tokens.size()), d = std::int64_t{net.config.dim};
  const bool train = goal == StepGoal::gradients;
  Scratch& scratch = net.buffers.step.scratch;
  if (train) std::memset(scratch.dx, 0, static_cast<size_t>(tokens.count * d) * sizeof(float));
  LossSum sum{0, total};
  if (total == 0) return sum;
  gather_weights(net, ShardedStorage::kHead, mesh::Phase::forward);
  const std::int64_t max_rows = loss_rows(net.weights, total, options.loss_chunk);
  for (std::int64_t first = 0; first < total; first += max_rows) {
    const std::span<const int> rows =
        std::span(tokens.loss_tokens)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(max_rows, total - first)));
    const LossChunk chunk{tokens, rows, max_rows, train ? options.gradient_scale : 0.0f, options.label_smoothing};
    gather_for_head(net, x, rows);
    sum.sum += net.weights.streams_loss() ? streamed_chunk_loss(net, chunk) : chunk_loss(net, chunk);
    if (!train) continue;
    const std::int64_t n = chunk.size();
    if (net.hooks) net.hooks->sum_head_gradient({scratch.t, static_cast<size_t>(n * d)});
    norm_backward(net, {n, d, scratch.h, net.weights.final_norm, scratch.inv}, scratch.t, scratch.t, StoreMode::write);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(scratch.dx + rows[static_cast<size_t>(i)] * d, scratch.t + i * d,
                  static_cast<size_t>(d) * sizeof(float));
  }
  if (train) reduce_gradients(net, ShardedStorage::kHead);
  return sum;
}

}  // namespace mw::engine
