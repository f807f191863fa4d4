// SPDX-License-Identifier: Apache-2.0
// The tied head and the loss, only for rows that have a target, `chunk` of them at a time: [rows, vocab] as a whole
// exists only if asked for. d logits take the place of the logits.
#include <algorithm>
#include <cstring>

#include "core/engine/core.h"

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

// Gathers rows of x into scratch.h, their final norm into scratch.norm, and multiplies by the embedding.
void Core::head_logits(const float* x, std::span<const int> rows, float* logits) {
  const auto n = static_cast<std::int64_t>(rows.size()), d = std::int64_t{config.dim};
  Scratch& c = memory.scratch;
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(c.h + i * d, x + rows[static_cast<size_t>(i)] * d, static_cast<size_t>(d) * sizeof(float));
  norm(n, d, c.h, *final_norm, c.norm, c.inv);
  const auto timer = profile.time(Kernel::head, head_flops(n, config));
  gemm.nt(n, config.vocab, d, 1.0f, c.norm, embedding->at, 0.0f, logits);
}

LossSum Core::loss(const Tokens& tokens, const float* x, int chunk, float gradient_scale, Want want) {
  const auto total = static_cast<std::int64_t>(tokens.with_loss.size()), d = std::int64_t{config.dim},
             v = std::int64_t{config.vocab};
  const bool train = want == Want::gradients;
  Scratch& c = memory.scratch;
  if (train) std::memset(c.dx, 0, static_cast<size_t>(tokens.count * d) * sizeof(float));
  LossSum sum{0, total};
  if (total == 0) return sum;
  const std::int64_t step = chunk > 0 ? std::min<std::int64_t>(chunk, total) : total;
  float* logits = logit_rows(step);
  std::vector<double> losses(static_cast<size_t>(step));
  for (std::int64_t first = 0; first < total; first += step) {
    const std::span<const int> rows =
        std::span(tokens.with_loss)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(step, total - first)));
    const auto n = static_cast<std::int64_t>(rows.size());
    head_logits(x, rows, logits);
    {
      const auto timer = profile.time(Kernel::cross_entropy);
      device.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          losses[static_cast<size_t>(i)] = kernels.cross_entropy(
              v, logits + i * v, tokens.targets[static_cast<size_t>(rows[static_cast<size_t>(i)])],
              train ? gradient_scale : 0.0f);
      });
    }
    for (std::int64_t i = 0; i < n; ++i) sum.sum += losses[static_cast<size_t>(i)];
    if (!train) continue;
    {
      const auto timer = profile.time(Kernel::head, head_flops(n, config) * (embedding->gradient ? 2 : 1));
      gemm.nn(n, d, v, 1.0f, logits, embedding->at, 0.0f, c.t);
      if (embedding->gradient) gemm.tn(v, d, n, 1.0f, logits, c.norm, 1.0f, embedding->gradient);
    }
    norm_backward(n, d, c.h, *final_norm, c.inv, c.t, 0.0f, c.t);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(c.dx + rows[static_cast<size_t>(i)] * d, c.t + i * d, static_cast<size_t>(d) * sizeof(float));
  }
  return sum;
}

LossSum Core::run(const TokenBatch& batch, const StepOptions& options, Want want) {
  const Tokens tokens = compact(batch, config.vocab, config.max_positions);
  const bool train = want == Want::gradients;
  if (tokens.with_loss.empty()) return {};
  Pass pass{.tokens = &tokens,
            .dropout = train ? lora_dropout : 0.0f,
            .dropout_seed = options.dropout_seed,
            .step = options.step,
            .micro_batch = options.micro_batch};
  prepare({.tokens = batch.rows * batch.len,
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

void Core::logits(const TokenBatch& batch, std::span<float> out) {
  const Tokens tokens = compact(batch, config.vocab, config.max_positions);
  std::fill(out.begin(), out.end(), 0.0f);
  if (tokens.count == 0) return;
  prepare({.tokens = batch.rows * batch.len, .lowest = static_cast<int>(layers.size())});
  const Pass pass{.tokens = &tokens};
  const float* x = forward(pass);
  constexpr int kChunk = 256;
  for (int first = 0; first < tokens.count; first += kChunk) {
    std::vector<int> rows;
    for (int i = first; i < std::min(tokens.count, first + kChunk); ++i) rows.push_back(i);
    float* at = logit_rows(static_cast<std::int64_t>(rows.size()));
    head_logits(x, rows, at);
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(out.data() + std::int64_t{tokens.origin[static_cast<size_t>(rows[i])]} * config.vocab,
                  at + static_cast<std::int64_t>(i) * config.vocab, static_cast<size_t>(config.vocab) * sizeof(float));
  }
}

}  // namespace mw::engine
