// SPDX-License-Identifier: Apache-2.0
#include "core/engine/generate/scorer.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/layout/cache_layout.h"
#include "core/engine/transformer/loss.h"

namespace mw::engine {
namespace {

size_t cells(const TokenBatch& batch) {
  return static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
}

TokenBatch rows_of(const TokenBatch& b, int first, int rows) {
  const size_t from = static_cast<size_t>(first) * static_cast<size_t>(b.len),
               count = static_cast<size_t>(rows) * static_cast<size_t>(b.len);
  return {.rows = rows,
          .len = b.len,
          .ids = b.ids.subspan(from, count),
          .targets = b.targets.subspan(from, count),
          .positions = b.positions.subspan(from, count),
          .segments = b.segments.subspan(from, count)};
}

// One call of score().
class Scoring {
 public:
  Scoring(Transformer& net, const TokenBatch& batch, const ScoreOptions& options)
      : net_(net), batch_(batch), chunk_(options.chunk) {
    out_.k = std::min(options.top_k, net.config.vocab);
    const size_t n = cells(batch);
    const auto [target, ids, log_probs] = score_results(static_cast<std::int64_t>(n), out_.k);
    out_.target = DeviceBuffer<float>(net.device.arena, target);
    out_.ids = DeviceBuffer<int>(net.device.arena, ids);
    out_.log_probs = DeviceBuffer<float>(net.device.arena, log_probs);
    std::fill(out_.ids.span().begin(), out_.ids.span().end(), -1);
    for (size_t i = 0; i < n; ++i) targets_ += batch.targets[i] >= 0 && batch.segments[i] >= 0;
  }

  // The batch's rows from `first` on; false if it was stopped.
  bool pass(int first, int rows, const std::stop_token& stop) {
    const Tokens tokens = remove_padding(rows_of(batch_, first, rows), net_.config.vocab, net_.config.max_positions);
    if (tokens.loss_tokens.empty()) return true;
    net_.buffers.prepare(forward_shape(net_.weights, std::int64_t{rows} * batch_.len));
    const float* x = forward(net_, {.tokens = &tokens});
    const auto total = static_cast<std::int64_t>(tokens.loss_tokens.size()), v = std::int64_t{net_.config.vocab};
    const std::int64_t most = chunk_ > 0 ? std::min<std::int64_t>(chunk_, targets_) : targets_;
    const std::int64_t step = chunk_ > 0 ? chunk_ : kHeadRows;
    for (std::int64_t i = 0; i < total; i += step) {
      if (stop.stop_requested()) return false;
      const auto which =
          std::span(tokens.loss_tokens).subspan(static_cast<size_t>(i), static_cast<size_t>(std::min(step, total - i)));
      float* logits = net_.buffers.logit_rows(most) + (chunk_ > 0 ? 0 : scored_ * v);
      head_logits(net_, x, which, logits);
      read(tokens, which, first, logits);
      scored_ += static_cast<std::int64_t>(which.size());
    }
    return true;
  }

  Scores take() { return std::move(out_); }

 private:
  static constexpr std::int64_t kHeadRows = 256;  // of one product where all logits are kept: when to look for a stop

  void read(const Tokens& tokens, std::span<const int> which, int first, float* logits) {
    const auto timer = net_.profile.time(Kernel::cross_entropy);
    const std::int64_t v = net_.config.vocab;
    net_.device.pool.parallel_for(static_cast<std::int64_t>(which.size()), 1,
                                  [&](std::int64_t begin, std::int64_t end) {
                                    for (std::int64_t i = begin; i < end; ++i) {
                                      const auto token = static_cast<size_t>(which[static_cast<size_t>(i)]);
                                      read_row({logits + i * v, static_cast<size_t>(v)}, tokens.targets[token],
                                               static_cast<size_t>(first) * static_cast<size_t>(batch_.len) +
                                                   static_cast<size_t>(tokens.origin[token]));
                                    }
                                  });
  }

  void read_row(std::span<float> logits, int target, size_t cell) {
    const auto v = static_cast<std::int64_t>(logits.size()), k = std::int64_t{out_.k};
    const std::vector<TokenCandidate> best = likeliest(logits, static_cast<size_t>(k));
    const double of_target = static_cast<double>(logits[static_cast<size_t>(target)]);
    const double log_p = -net_.kernels.cross_entropy(v, logits.data(), target, 0.0f, 0.0f);  // overwrites the logits
    out_.target.span()[cell] = static_cast<float>(log_p);
    for (size_t j = 0; j < best.size(); ++j) {
      out_.ids.span()[cell * best.size() + j] = best[j].id;
      out_.log_probs.span()[cell * best.size() + j] =
          static_cast<float>(static_cast<double>(best[j].value) - of_target + log_p);
    }
  }

  Transformer& net_;
  const TokenBatch& batch_;
  int chunk_;
  Scores out_;
  std::int64_t targets_ = 0, scored_ = 0;
};

void check(const TokenBatch& batch) {
  for (const auto& span : {batch.ids, batch.targets, batch.positions, batch.segments})
    if (batch.rows < 0 || batch.len < 0 || span.size() != cells(batch))
      throw Error("BATCH", "a batch array has the wrong length",
                  {.found = std::to_string(span.size()), .expected = std::to_string(cells(batch)) + " = rows * len"});
}

}  // namespace

std::optional<Scores> Scorer::score(const TokenBatch& batch, const ScoreOptions& options, std::stop_token stop,
                                    const std::function<void(long)>& progress) {
  check(batch);
  Scoring scoring(network_.transformer(), batch, options);
  const int rows = std::max(1, kPassTokens / std::max(1, batch.len));
  for (int first = 0; first < batch.rows; first += rows) {
    const int count = std::min(rows, batch.rows - first);
    if (stop.stop_requested() || !scoring.pass(first, count, stop)) return std::nullopt;
    if (progress) progress(static_cast<long>(first + count) * batch.len);
  }
  return scoring.take();
}

}  // namespace mw::engine
