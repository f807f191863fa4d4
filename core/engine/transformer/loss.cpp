// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/loss.h"

#include <algorithm>
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

// Losses of rows whose logits other devices have parts of: the maximum, then sums and the target's logit come together.
// With a gradient scale the device's logits become their gradients; those of padding are zero.
void split_vocab_losses(Transformer& net, const Tokens& tokens, std::span<const int> rows, float* logits,
                        float gradient_scale, std::span<double> losses) {
  const std::int64_t v = net.config.vocab;
  const mesh::Range own = net.vocab_rows();
  const std::int64_t columns = own.end - own.begin;
  const auto n = static_cast<std::int64_t>(rows.size());
  std::vector<float> highest(rows.size(), -std::numeric_limits<float>::infinity());
  std::vector<float> sums(2 * rows.size());  // of exponentials, and the target's logit
  const auto target_of = [&](std::int64_t i) {
    const std::int64_t id = tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])];
    return id >= own.begin && id < own.end ? id - own.begin : -1;
  };
  for (std::int64_t i = 0; i < n && columns > 0; ++i)
    highest[static_cast<size_t>(i)] = net.kernels.highest(columns, logits + i * v);
  net.hooks->max_over_vocab(highest);
  net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      sums[2 * at] = static_cast<float>(net.kernels.exp_sum(columns, highest[at], logits + i * v));
      if (const std::int64_t target = target_of(i); target >= 0) sums[2 * at + 1] = logits[i * v + target];
    }
  });
  net.hooks->sum_over_vocab(sums);
  net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double total = static_cast<double>(sums[2 * at]);
      losses[at] = std::log(total) + static_cast<double>(highest[at]) - static_cast<double>(sums[2 * at + 1]);
      if (gradient_scale == 0.0f) continue;
      net.kernels.softmax_gradient(columns,
                                   {.max = highest[at],
                                    .cap = net.config.final_softcap,
                                    .factor = static_cast<float>(static_cast<double>(gradient_scale) / total),
                                    .target = target_of(i),
                                    .scale = gradient_scale},
                                   logits + i * v);
      std::fill(logits + i * v + columns, logits + (i + 1) * v, 0.0f);
    }
  });
}

// From scratch.norm [rows, D] to the sum of losses; with a gradient scale also d norm in scratch.t.
double plain_loss(Transformer& net, const Tokens& tokens, std::span<const int> rows, std::int64_t most,
                  float gradient_scale) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{net.config.dim},
             v = std::int64_t{net.config.vocab};
  Scratch& scratch = net.buffers.step.scratch;
  float* logits = net.buffers.logit_rows(most);
  std::vector<double> losses(rows.size());
  {
    const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
    net.gemm.nt({n, v, d}, scratch.norm, net.weights.embedding->at, logits);
    cap_logits(net, n, logits);
  }
  if (net.splits_vocab()) {
    const auto timer = net.profile.time(Kernel::cross_entropy);
    split_vocab_losses(net, tokens, rows, logits, gradient_scale, losses);
  } else {
    const auto timer = net.profile.time(Kernel::cross_entropy);
    net.device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        losses[static_cast<size_t>(i)] = net.kernels.cross_entropy(
            v, logits + i * v, tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])],
            net.config.final_softcap, gradient_scale);
    });
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  if (gradient_scale == 0.0f) return sum;
  const auto timer =
      net.profile.time(Kernel::head, head_flops(n, net.config) * (net.weights.embedding->gradient ? 2 : 1));
  net.gemm.nn({n, d, v}, logits, net.weights.embedding->at, scratch.t);
  if (net.weights.embedding->gradient)
    net.gemm.tn({v, d, n}, logits, scratch.norm, net.weights.embedding->gradient, {.beta = 1});
  return sum;
}

// Statistics of rows of logits to those of the whole vocabulary.
void combine_vocab_parts(Transformer& net, std::span<float> highest, std::span<double> totals,
                         std::span<float> of_target) {
  const std::vector<float> own(highest.begin(), highest.end());
  net.hooks->max_over_vocab(highest);
  std::vector<float> sums(2 * own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (totals[i] > 0)
      sums[2 * i] =
          static_cast<float>(totals[i] * std::exp(static_cast<double>(own[i]) - static_cast<double>(highest[i])));
    sums[2 * i + 1] = of_target[i];
  }
  net.hooks->sum_over_vocab(sums);
  for (size_t i = 0; i < own.size(); ++i) totals[i] = static_cast<double>(sums[2 * i]), of_target[i] = sums[2 * i + 1];
}

// The same on packed weights: tiles of logits are summed up while they are in cache and kept as f16 exponentials of
// their distance to the highest so far (tops), which become bf16 gradients stripe by stripe on their way into the
// backward product; f32 logits exist for one tile a thread. Partial sums are added in order of threads.
double streamed_loss(Transformer& net, const Tokens& tokens, std::span<const int> rows, std::int64_t most,
                     float gradient_scale) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{net.config.dim},
             v = std::int64_t{net.config.vocab};
  const GemmKernels& wide = *gemm_kernels();
  const float cap = net.config.final_softcap;
  Scratch& scratch = net.buffers.step.scratch;
  std::uint16_t* half = net.buffers.f16_logit_rows(most);
  float* const tops = net.buffers.logit_maxima.data();  // [stripes, n]
  struct Partial {
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
  };
  std::vector<Partial> partial(static_cast<size_t>(n * net.device.pool.threads()));
  std::vector<float> of_target(rows.size()), lse(rows.size());
  const mesh::Range own = net.vocab_rows();
  const auto stripe = [&](std::int64_t column) { return half + column * n; };  // [n, columns of the stripe]
  const auto target = [&](std::int64_t i) {
    return tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])] - own.begin;
  };
  // Columns of a tile that are tokens, not padding.
  const auto tokens_of = [&](std::int64_t column, std::int64_t columns) {
    return std::clamp<std::int64_t>(own.end - own.begin - column, 0, columns);
  };
  {
    const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
    net.gemm.packed().stream({n, v, d}, scratch.norm, net.weights.embedding->at.packed,
                             [&](const PackedGemm::Tile& tile) {
                               const std::int64_t columns = tokens_of(tile.column, tile.columns);
                               for (std::int64_t r = 0; r < tile.rows; ++r) {
                                 const std::int64_t row = tile.row + r, column = target(row) - tile.column;
                                 Partial& p = partial[static_cast<size_t>(tile.thread * n + row)];
                                 float* x = tile.at + r * tile.stride;
                                 std::uint16_t* const out = stripe(tile.column) + row * tile.columns;
                                 if (columns > 0) wide.logit_tile(columns, cap, x, out, &p.max, &p.sum);
                                 std::fill(out + columns, out + tile.columns, std::uint16_t{0});
                                 tops[tile.column / PackedGemm::kStripe * n + row] = p.max;
                                 if (column >= 0 && column < columns) of_target[static_cast<size_t>(row)] = x[column];
                               }
                             });
  }
  std::vector<float> highest(rows.size());
  std::vector<double> totals(rows.size());
  for (std::int64_t i = 0; i < n; ++i) {
    float max = -std::numeric_limits<float>::infinity();
    double total = 0;
    for (int t = 0; t < net.device.pool.threads(); ++t)
      max = std::max(max, partial[static_cast<size_t>(t * n + i)].max);
    for (int t = 0; t < net.device.pool.threads(); ++t) {
      const Partial& p = partial[static_cast<size_t>(t * n + i)];
      if (p.sum > 0)
        total += static_cast<double>(p.sum) * std::exp(static_cast<double>(p.max) - static_cast<double>(max));
    }
    highest[static_cast<size_t>(i)] = max;
    totals[static_cast<size_t>(i)] = total;
  }
  if (net.splits_vocab()) combine_vocab_parts(net, highest, totals, of_target);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double exact =
        static_cast<double>(highest[static_cast<size_t>(i)]) + std::log(totals[static_cast<size_t>(i)]);
    lse[static_cast<size_t>(i)] = static_cast<float>(exact);
    sum += exact - static_cast<double>(of_target[static_cast<size_t>(i)]);
  }
  if (gradient_scale == 0.0f) return sum;
  const auto timer = net.profile.time(Kernel::head, head_flops(n, net.config));
  net.gemm.packed().gather(
      {n, d, v}, most, net.weights.embedding->at.packed,
      [&](const PackedGemm::Stripe& at, std::uint16_t* out) {
        float* const factor = tops + at.column / PackedGemm::kStripe * n + at.row;
        for (std::int64_t r = 0; r < at.rows; ++r)
          factor[r] = gradient_scale * std::exp(factor[r] - lse[static_cast<size_t>(at.row + r)]);
        wide.scaled_groups(at.rows, at.columns, factor, stripe(at.column) + at.row * at.columns, at.columns, out);
        for (std::int64_t r = 0; r < at.rows; ++r) {
          const auto row = static_cast<size_t>(at.row + r);
          const std::int64_t column = target(at.row + r) - at.column;
          if (column < 0 || column >= tokens_of(at.column, at.columns)) continue;
          const float share = cap > 0 ? of_target[row] / cap : 0.0f;
          const float g = gradient_scale * (std::exp(of_target[row] - lse[row]) - 1) * (1 - share * share);
          net.kernels.narrow(1, &g, out + group_index(at.columns, r, column));
        }
      },
      scratch.t);
  return sum;
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
  const std::int64_t step = loss_rows(net.weights, total, options.loss_chunk);
  for (std::int64_t first = 0; first < total; first += step) {
    const std::span<const int> rows =
        std::span(tokens.loss_tokens)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(step, total - first)));
    gather_for_head(net, x, rows);
    sum.sum += net.weights.streams_loss()
                   ? streamed_loss(net, tokens, rows, step, train ? options.gradient_scale : 0.0f)
                   : plain_loss(net, tokens, rows, step, train ? options.gradient_scale : 0.0f);
    if (!train) continue;
    const auto n = static_cast<std::int64_t>(rows.size());
    if (net.hooks) net.hooks->sum_head_gradient({scratch.t, static_cast<size_t>(n * d)});
    norm_backward(net, {n, d, scratch.h, net.weights.final_norm, scratch.inv}, scratch.t, scratch.t, Store::write);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(scratch.dx + rows[static_cast<size_t>(i)] * d, scratch.t + i * d,
                  static_cast<size_t>(d) * sizeof(float));
  }
  if (train) reduce_gradients(net, ShardedStorage::kHead);
  return sum;
}

}  // namespace mw::engine
