// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/tokens.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace mw::engine {
namespace {

Error bad_batch(const std::string& message, const std::string& found, const std::string& expected) {
  return Error("BATCH", message, {.found = found, .expected = expected});
}

}  // namespace

void check_batch(const TokenBatch& batch, int vocab, int max_positions) {
  if (batch.rows < 0 || batch.len < 0)
    throw bad_batch("a batch has a negative size", std::to_string(batch.rows), "at least 0");
  const size_t n = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  for (const auto& span : {batch.ids, batch.targets, batch.positions, batch.segments})
    if (span.size() != n)
      throw bad_batch("a batch array has the wrong length", std::to_string(span.size()),
                      std::to_string(n) + " = rows * len");
  for (size_t i = 0; i < n; ++i) {
    if (batch.segments[i] < 0) continue;
    if (batch.ids[i] < 0 || batch.ids[i] >= vocab)
      throw bad_batch("a token id is outside the vocabulary", std::to_string(batch.ids[i]),
                      "0.." + std::to_string(vocab - 1));
    if (batch.targets[i] >= vocab)
      throw bad_batch("a target is outside the vocabulary", std::to_string(batch.targets[i]),
                      "-1.." + std::to_string(vocab - 1));
    if (batch.positions[i] < 0 || batch.positions[i] >= max_positions)
      throw bad_batch("a position is outside the model's context", std::to_string(batch.positions[i]),
                      "0.." + std::to_string(max_positions - 1));
  }
}

Tokens remove_padding(const TokenBatch& batch, int vocab, int max_positions) {
  check_batch(batch, vocab, max_positions);
  Tokens t;
  std::vector<std::pair<int, int>> row;  // (segment, column): a stable sort makes every segment one run
  for (int r = 0; r < batch.rows; ++r) {
    row.clear();
    const auto first = static_cast<size_t>(r) * static_cast<size_t>(batch.len);
    for (int c = 0; c < batch.len; ++c)
      if (const int s = batch.segments[first + static_cast<size_t>(c)]; s >= 0) row.push_back({s, c});
    if (!std::is_sorted(row.begin(), row.end())) std::sort(row.begin(), row.end());
    for (size_t i = 0; i < row.size(); ++i) {
      const int from = r * batch.len + row[i].second;
      const auto at = static_cast<size_t>(from);
      if (i == 0 || row[i].first != row[i - 1].first) t.runs.push_back({t.count, t.count});
      t.ids.push_back(batch.ids[at]);
      t.positions.push_back(batch.positions[at]);
      t.targets.push_back(batch.targets[at]);
      t.origin.push_back(from);
      if (batch.targets[at] >= 0) t.loss_tokens.push_back(t.count);
      t.last_position = std::max(t.last_position, batch.positions[at]);
      t.runs.back().end = ++t.count;
      t.longest_run = std::max(t.longest_run, t.runs.back().end - t.runs.back().begin);
    }
  }
  return t;
}

}  // namespace mw::engine
