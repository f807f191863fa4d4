// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/pack.h"

#include <algorithm>
#include <numeric>

#include "core/base/rng.h"

namespace mw::data {
namespace {

constexpr size_t kWindow =
    1024;  // examples packed together: enough to fill rows, few enough to keep the shuffled order
constexpr std::uint64_t kOrderStream = 0x6f72646572, kRowStream = 0x726f7773;

template <class T>
void shuffle(std::span<T> items, Rng rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

// First-fit decreasing. A tree of maxima over the free space of the rows finds the first row with room in O(log n).
std::vector<std::vector<int>> pack_window(std::span<const int> window, std::span<const ExampleSize> examples,
                                          int max_len) {
  std::vector<int> order(window.begin(), window.end());
  const auto length = [&](int e) { return examples[static_cast<size_t>(e)].tokens; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
  size_t leaves = 1;
  while (leaves < order.size()) leaves *= 2;
  std::vector<int> room(2 * leaves, max_len);
  std::vector<std::vector<int>> rows;
  for (const int e : order) {
    size_t node = 1;
    while (node < leaves) node = room[2 * node] >= length(e) ? 2 * node : 2 * node + 1;
    const size_t row = node - leaves;
    if (row >= rows.size()) rows.resize(row + 1);
    rows[row].push_back(e);
    room[node] -= length(e);
    while (node /= 2) room[node] = std::max(room[2 * node], room[2 * node + 1]);
  }
  return rows;
}

}  // namespace

std::vector<std::vector<int>> epoch_rows(std::span<const ExampleSize> examples, const BatchOptions& options,
                                         std::int64_t epoch) {
  std::vector<int> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  const auto e = static_cast<std::uint64_t>(epoch);
  const bool shuffled = options.order == Order::shuffled;
  if (shuffled) shuffle(std::span(order), Rng{kOrderStream, options.seed, e});
  std::vector<std::vector<int>> rows;
  if (options.packing == Packing::none) {
    for (const int i : order) rows.push_back({i});
    return rows;
  }
  for (size_t begin = 0; begin < order.size(); begin += kWindow) {
    const auto window = std::span(order).subspan(begin, std::min(kWindow, order.size() - begin));
    auto packed = pack_window(window, examples, options.max_len);
    // Packing sorted the rows by length; shuffle them again.
    if (shuffled) shuffle(std::span(packed), Rng{kRowStream, options.seed, e, begin});
    std::move(packed.begin(), packed.end(), std::back_inserter(rows));
  }
  return rows;
}

std::int64_t rows_of_epoch(std::span<const ExampleSize> examples, const BatchOptions& options) {
  return options.packing == Packing::none ? std::ssize(examples) : std::ssize(epoch_rows(examples, options, 0));
}

Batch make_batch(std::span<const Example> examples, std::span<const std::vector<int>> rows, int pad_id) {
  Batch batch;
  batch.rows = static_cast<int>(rows.size());
  const auto example = [&](int i) -> const Example& { return examples[static_cast<size_t>(i)]; };
  for (const auto& row : rows) {
    size_t n = 0;
    for (const int i : row) n += example(i).ids.size();
    batch.len = std::max(batch.len, static_cast<int>(n));
  }
  const size_t size = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  batch.ids.assign(size, pad_id);
  batch.targets.assign(size, -1);
  batch.positions.assign(size, 0);
  batch.segments.assign(size, -1);
  for (size_t r = 0; r < rows.size(); ++r) {
    size_t at = r * static_cast<size_t>(batch.len);
    for (size_t s = 0; s < rows[r].size(); ++s) {
      const Example& e = example(rows[r][s]);
      for (size_t i = 0; i < e.ids.size(); ++i, ++at) {
        batch.ids[at] = e.ids[i];
        batch.positions[at] = static_cast<int>(i);
        batch.segments[at] = static_cast<int>(s);
        if (i + 1 < e.ids.size() && e.loss[i + 1]) {
          batch.targets[at] = e.ids[i + 1];
          ++batch.loss_tokens;
        }
      }
      batch.real_tokens += static_cast<std::int64_t>(e.ids.size());
    }
  }
  return batch;
}

}  // namespace mw::data
