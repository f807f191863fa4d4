// SPDX-License-Identifier: Apache-2.0
// The tied head and the loss, only for rows that have a target, some of them at a time: [rows, vocab] as a whole exists
// only if asked for. d logits take the place of the logits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

double head_flops(std::int64_t rows, const model::Config& c) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(c.dim) * static_cast<double>(c.vocab);
}

}  // namespace

float* Core::logit_rows(std::int64_t rows) {
  const auto floats = static_cast<size_t>(rows * config.vocab);
  if (logit_chunk.size() >= floats && logit_chunk.size() <= 4 * floats) return logit_chunk.data();
  logit_chunk = {};
  logit_chunk = Buffer<float>(device.arena, MemoryCategory::logits, floats, "logits");
  return logit_chunk.data();
}

std::uint16_t* Core::half_logit_rows(std::int64_t rows) {
  const auto count = static_cast<size_t>(rows * config.vocab);
  if (half_logits.size() >= count && half_logits.size() <= 4 * count) return half_logits.data();
  half_logits = {}, logit_tops = {};
  half_logits = Buffer<std::uint16_t>(device.arena, MemoryCategory::logits, count, "logits");
  logit_tops = Buffer<float>(device.arena, MemoryCategory::logits,
                             static_cast<size_t>(rows * sizes::logit_stripes(config.vocab)), "logits");
  return half_logits.data();
}

// Gathers rows of x into scratch.h and their final norm into scratch.norm.
void Core::gather_for_head(const float* x, std::span<const int> rows) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{config.dim};
  Scratch& c = memory.scratch;
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(c.h + i * d, x + rows[static_cast<size_t>(i)] * d, static_cast<size_t>(d) * sizeof(float));
  norm(n, d, c.h, *final_norm, c.norm, c.inv);
}

void Core::head_logits(const float* x, std::span<const int> rows, float* logits) {
  const auto n = static_cast<std::int64_t>(rows.size());
  gather_for_head(x, rows);
  const auto timer = profile.time(Kernel::head, head_flops(n, config));
  gemm.nt(n, config.vocab, config.dim, 1.0f, memory.scratch.norm, embedding->at, 0.0f, logits);
  cap_logits(n, logits);
}

void Core::cap_logits(std::int64_t rows, float* logits) {
  if (config.final_softcap == 0) return;
  device.pool.parallel_for(rows * config.vocab, 4096, [&](std::int64_t begin, std::int64_t end) {
    kernels.softcap(end - begin, config.final_softcap, logits + begin);
  });
}

std::int64_t Core::loss_rows(std::int64_t total, int chunk) const {
  const size_t bytes = streams_loss() ? sizeof(std::uint16_t) : sizeof(float);
  return sizes::loss_rows(total, chunk, config.vocab * static_cast<std::int64_t>(bytes));
}

bool Core::streams_loss() const {
  return embedding->at.packed && !embedding->gradient;
}

LossSum Core::loss(const Tokens& tokens, const float* x, int chunk, float gradient_scale, Want want) {
  const auto total = static_cast<std::int64_t>(tokens.with_loss.size()), d = std::int64_t{config.dim};
  const bool train = want == Want::gradients;
  Scratch& c = memory.scratch;
  if (train) std::memset(c.dx, 0, static_cast<size_t>(tokens.count * d) * sizeof(float));
  LossSum sum{0, total};
  if (total == 0) return sum;
  enter_storage(ShardedStorage::kHead, mesh::Phase::forward);
  const std::int64_t step = loss_rows(total, chunk);
  for (std::int64_t first = 0; first < total; first += step) {
    const std::span<const int> rows =
        std::span(tokens.with_loss)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(step, total - first)));
    gather_for_head(x, rows);
    sum.sum += streams_loss() ? streamed_loss(tokens, rows, step, train ? gradient_scale : 0.0f)
                              : plain_loss(tokens, rows, step, train ? gradient_scale : 0.0f);
    if (!train) continue;
    const auto n = static_cast<std::int64_t>(rows.size());
    if (part) part->sum_head_gradient({c.t, static_cast<size_t>(n * d)});
    norm_backward(n, d, c.h, *final_norm, c.inv, c.t, 0.0f, c.t);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(c.dx + rows[static_cast<size_t>(i)] * d, c.t + i * d, static_cast<size_t>(d) * sizeof(float));
  }
  if (train) leave_storage(ShardedStorage::kHead);
  return sum;
}

// Losses of rows whose logits other devices have parts of: the maximum, then sums and the target's logit come together.
// With a gradient scale the device's logits become their gradients; those of padding are zero.
void Core::losses_of_parts(const Tokens& tokens, std::span<const int> rows, float* logits, float gradient_scale,
                           std::span<double> losses) {
  const std::int64_t v = config.vocab;
  const mesh::Range own = vocab_rows();
  const std::int64_t columns = own.end - own.begin;
  const auto n = static_cast<std::int64_t>(rows.size());
  std::vector<float> highest(rows.size(), -std::numeric_limits<float>::infinity());
  std::vector<float> sums(2 * rows.size());  // of exponentials, and the target's logit
  const auto target_of = [&](std::int64_t i) {
    const std::int64_t id = tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])];
    return id >= own.begin && id < own.end ? id - own.begin : -1;
  };
  for (std::int64_t i = 0; i < n && columns > 0; ++i)
    highest[static_cast<size_t>(i)] = kernels.highest(columns, logits + i * v);
  part->max_over_vocab(highest);
  device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      sums[2 * at] = static_cast<float>(kernels.exp_sum(columns, highest[at], logits + i * v));
      if (const std::int64_t target = target_of(i); target >= 0) sums[2 * at + 1] = logits[i * v + target];
    }
  });
  part->sum_over_vocab(sums);
  device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double total = static_cast<double>(sums[2 * at]);
      losses[at] = std::log(total) + static_cast<double>(highest[at]) - static_cast<double>(sums[2 * at + 1]);
      if (gradient_scale == 0.0f) continue;
      kernels.softmax_gradient(columns, highest[at], config.final_softcap,
                               static_cast<float>(static_cast<double>(gradient_scale) / total), target_of(i),
                               gradient_scale, logits + i * v);
      std::fill(logits + i * v + columns, logits + (i + 1) * v, 0.0f);
    }
  });
}

// From scratch.norm [rows, D] to the sum of losses; with a gradient scale also d norm in scratch.t.
double Core::plain_loss(const Tokens& tokens, std::span<const int> rows, std::int64_t most, float gradient_scale) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{config.dim}, v = std::int64_t{config.vocab};
  Scratch& c = memory.scratch;
  float* logits = logit_rows(most);
  std::vector<double> losses(rows.size());
  {
    const auto timer = profile.time(Kernel::head, head_flops(n, config));
    gemm.nt(n, v, d, 1.0f, c.norm, embedding->at, 0.0f, logits);
    cap_logits(n, logits);
  }
  if (splits_vocab()) {
    const auto timer = profile.time(Kernel::cross_entropy);
    losses_of_parts(tokens, rows, logits, gradient_scale, losses);
  } else {
    const auto timer = profile.time(Kernel::cross_entropy);
    device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        losses[static_cast<size_t>(i)] =
            kernels.cross_entropy(v, logits + i * v, tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])],
                                  config.final_softcap, gradient_scale);
    });
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  if (gradient_scale == 0.0f) return sum;
  const auto timer = profile.time(Kernel::head, head_flops(n, config) * (embedding->gradient ? 2 : 1));
  gemm.nn(n, d, v, 1.0f, logits, embedding->at, 0.0f, c.t);
  if (embedding->gradient) gemm.tn(v, d, n, 1.0f, logits, c.norm, 1.0f, embedding->gradient);
  return sum;
}

// Statistics of rows of logits to those of the whole vocabulary.
void Core::add_other_parts(std::span<float> highest, std::span<double> totals, std::span<float> of_target) {
  const std::vector<float> own(highest.begin(), highest.end());
  part->max_over_vocab(highest);
  std::vector<float> sums(2 * own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (totals[i] > 0)
      sums[2 * i] =
          static_cast<float>(totals[i] * std::exp(static_cast<double>(own[i]) - static_cast<double>(highest[i])));
    sums[2 * i + 1] = of_target[i];
  }
  part->sum_over_vocab(sums);
  for (size_t i = 0; i < own.size(); ++i) totals[i] = static_cast<double>(sums[2 * i]), of_target[i] = sums[2 * i + 1];
}

// The same on packed weights: tiles of logits are summed up while they are in cache and kept as f16 exponentials of
// their distance to the highest so far (tops), which become bf16 gradients stripe by stripe on their way into the
// backward product; f32 logits exist for one tile a thread. Partial sums are added in order of threads.
double Core::streamed_loss(const Tokens& tokens, std::span<const int> rows, std::int64_t most, float gradient_scale) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{config.dim}, v = std::int64_t{config.vocab};
  const WideKernels& wide = *wide_kernels();
  const float cap = config.final_softcap;
  Scratch& c = memory.scratch;
  std::uint16_t* half = half_logit_rows(most);
  float* const tops = logit_tops.data();  // [stripes, n]
  struct Partial {
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
  };
  std::vector<Partial> partial(static_cast<size_t>(n * device.pool.threads()));
  std::vector<float> of_target(rows.size()), lse(rows.size());
  const mesh::Range own = vocab_rows();
  const auto stripe = [&](std::int64_t column) { return half + column * n; };  // [n, columns of the stripe]
  const auto target = [&](std::int64_t i) {
    return tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])] - own.begin;
  };
  // Columns of a tile that are tokens, not padding.
  const auto tokens_of = [&](std::int64_t column, std::int64_t columns) {
    return std::clamp<std::int64_t>(own.end - own.begin - column, 0, columns);
  };
  {
    const auto timer = profile.time(Kernel::head, head_flops(n, config));
    gemm.packed().stream(n, v, d, c.norm, embedding->at.packed, [&](const PackedGemm::Tile& tile) {
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
    for (int t = 0; t < device.pool.threads(); ++t) max = std::max(max, partial[static_cast<size_t>(t * n + i)].max);
    for (int t = 0; t < device.pool.threads(); ++t) {
      const Partial& p = partial[static_cast<size_t>(t * n + i)];
      if (p.sum > 0)
        total += static_cast<double>(p.sum) * std::exp(static_cast<double>(p.max) - static_cast<double>(max));
    }
    highest[static_cast<size_t>(i)] = max;
    totals[static_cast<size_t>(i)] = total;
  }
  if (splits_vocab()) add_other_parts(highest, totals, of_target);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double exact =
        static_cast<double>(highest[static_cast<size_t>(i)]) + std::log(totals[static_cast<size_t>(i)]);
    lse[static_cast<size_t>(i)] = static_cast<float>(exact);
    sum += exact - static_cast<double>(of_target[static_cast<size_t>(i)]);
  }
  if (gradient_scale == 0.0f) return sum;
  const auto timer = profile.time(Kernel::head, head_flops(n, config));
  gemm.packed().gather(
      n, most, d, v, embedding->at.packed,
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
          kernels.narrow(1, &g, out + group_index(at.columns, r, column));
        }
      },
      c.t);
  return sum;
}

LossSum Core::run(const TokenBatch& batch, const StepOptions& options, Want want) {
  const Tokens tokens = compact(batch, vocab(), config.max_positions);
  const bool train = want == Want::gradients;
  if (tokens.with_loss.empty()) {
    pass_storage(want);
    return {};
  }
  Pass pass{.tokens = &tokens,
            .dropout = train ? lora_dropout : 0.0f,
            .dropout_seed = options.dropout_seed,
            .step = options.step,
            .micro_batch = options.micro_batch,
            .first_cell = static_cast<std::uint64_t>(options.first_row) * static_cast<std::uint64_t>(batch.len)};
  prepare({.tokens = static_cast<int>(sizes::step_tokens(std::int64_t{batch.rows} * batch.len, tokens.count)),
           .lowest = train ? lowest_trained_layer() : static_cast<int>(layers.size()),
           .backward = train,
           .full = train && full,
           .dropout = pass.dropout > 0,
           .remat = options.remat});
  const float* x = forward(pass);
  const LossSum sum = loss(tokens, x, options.loss_chunk, options.gradient_scale, want);
  if (train) backward(pass);
  return sum;
}

// Without padding tokens stand as in the batch.
void Core::hidden(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const Tokens tokens = compact(batch, vocab(), config.max_positions);
  if (tokens.count != batch.rows * batch.len)
    throw Error({.id = "BATCH", .message = "hidden states are of batches without padding"});
  prepare({.tokens = tokens.count, .lowest = static_cast<int>(layers.size())});
  const float* x = forward({.tokens = &tokens, .from = from.empty() ? nullptr : from.data()});
  std::copy_n(x, out.size(), out.begin());
}

void Core::logits(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const Tokens tokens = compact(batch, vocab(), config.max_positions);
  if (!from.empty() && tokens.count != batch.rows * batch.len)
    throw Error({.id = "BATCH", .message = "hidden states are of batches without padding"});
  std::fill(out.begin(), out.end(), 0.0f);
  if (tokens.count == 0) return;
  prepare({.tokens = batch.rows * batch.len, .lowest = static_cast<int>(layers.size())});
  const Pass pass{.tokens = &tokens, .from = from.empty() ? nullptr : from.data()};
  const float* x = forward(pass);
  enter_storage(ShardedStorage::kHead, mesh::Phase::forward);
  std::vector<float> whole(splits_vocab() ? static_cast<size_t>(part->gathered_logits_size()) : 0);
  constexpr int kChunk = 256;
  for (int first = 0; first < tokens.count; first += kChunk) {
    std::vector<int> rows;
    for (int i = first; i < std::min(tokens.count, first + kChunk); ++i) rows.push_back(i);
    float* at = logit_rows(static_cast<std::int64_t>(rows.size()));
    head_logits(x, rows, at);
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = at + static_cast<std::int64_t>(i) * config.vocab;
      if (splits_vocab()) part->gather_logits({row, static_cast<size_t>(config.vocab)}, whole), row = whole.data();
      std::copy_n(row, vocab(), out.data() + std::int64_t{tokens.origin[static_cast<size_t>(rows[i])]} * vocab());
    }
  }
}

}  // namespace mw::engine
