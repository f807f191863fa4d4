// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/pack.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/base/rng.h"

namespace mw::data {
namespace {

constexpr std::uint64_t kOrderStream = 0x6f72646572, kRowStream = 0x726f7773;

template <class T>
void shuffle(std::span<T> items, Rng rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

// First-fit decreasing. A tree of maxima over the free space of the rows finds the first row with room in O(log n).
std::vector<std::vector<int>> pack_window(std::span<const int> window, const ExampleSizes& examples, int max_len) {
  struct Item {
    int example, length;
  };
  std::vector<Item> order;
  order.reserve(window.size());
  for (const int e : window) order.push_back({e, examples.of(static_cast<size_t>(e)).tokens});
  std::stable_sort(order.begin(), order.end(), [](const Item& a, const Item& b) { return a.length > b.length; });
  size_t leaves = 1;
  while (leaves < order.size()) leaves *= 2;
  std::vector<int> room(2 * leaves, max_len);
  std::vector<std::vector<int>> rows;
  for (const auto [example, length] : order) {
    size_t node = 1;
    while (node < leaves) node = room[2 * node] >= length ? 2 * node : 2 * node + 1;
    const size_t row = node - leaves;
    if (row >= rows.size()) rows.resize(row + 1);
    rows[row].push_back(example);
    room[node] -= length;
    while (node /= 2) room[node] = std::max(room[2 * node], room[2 * node + 1]);
  }
  return rows;
}

}  // namespace

EpochRows::EpochRows(const ExampleSizes& examples, const BatchOptions& options, std::int64_t epoch)
    : examples_(&examples), options_(options), epoch_(static_cast<std::uint64_t>(epoch)), order_(examples.count) {
  std::iota(order_.begin(), order_.end(), 0);
  if (options.order == Order::shuffled) shuffle(std::span(order_), Rng{kOrderStream, options.seed, epoch_});
}

std::vector<std::vector<int>> EpochRows::rows(size_t window) const {
  const size_t begin = window * kWindow;
  const auto indices = std::span(order_).subspan(begin, std::min(kWindow, order_.size() - begin));
  if (options_.packing == Packing::none) {
    std::vector<std::vector<int>> rows;
    rows.reserve(indices.size());
    for (const int i : indices) rows.push_back({i});
    return rows;
  }
  auto packed = pack_window(indices, *examples_, options_.max_len);
  // Packing sorted the rows by length; shuffle them again.
  if (options_.order == Order::shuffled) shuffle(std::span(packed), Rng{kRowStream, options_.seed, epoch_, begin});
  return packed;
}

std::vector<std::vector<int>> epoch_rows(const ExampleSizes& examples, const BatchOptions& options,
                                         std::int64_t epoch) {
  const EpochRows all(examples, options, epoch);
  std::vector<std::vector<int>> rows;
  for (size_t window = 0; window < all.windows(); ++window) {
    auto some = all.rows(window);
    std::move(some.begin(), some.end(), std::back_inserter(rows));
  }
  return rows;
}

std::int64_t rows_of_epoch(const ExampleSizes& examples, const BatchOptions& options) {
  if (options.packing == Packing::none) return static_cast<std::int64_t>(examples.count);
  const EpochRows all(examples, options, 0);
  std::int64_t rows = 0;
  for (size_t window = 0; window < all.windows(); ++window) rows += std::ssize(all.rows(window));
  return rows;
}

Batch make_batch(const ExampleList& examples, std::span<const std::vector<int>> rows, int pad_id) {
  Batch batch;
  batch.rows = static_cast<int>(rows.size());
  for (const auto& row : rows) {
    int n = 0;
    for (const int i : row) n += examples.size_of(static_cast<size_t>(i)).tokens;
    batch.len = std::max(batch.len, n);
  }
  const size_t size = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  batch.ids.assign(size, pad_id);
  batch.targets.assign(size, -1);
  batch.positions.assign(size, 0);
  batch.segments.assign(size, -1);
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  for (size_t r = 0; r < rows.size(); ++r) {
    size_t at = r * static_cast<size_t>(batch.len);
    for (size_t s = 0; s < rows[r].size(); ++s) {
      examples.read(static_cast<size_t>(rows[r][s]), ids, loss);
      for (size_t i = 0; i < ids.size(); ++i, ++at) {
        batch.ids[at] = ids[i];
        batch.positions[at] = static_cast<int>(i);
        batch.segments[at] = static_cast<int>(s);
        if (i + 1 < ids.size() && loss[i + 1]) {
          batch.targets[at] = ids[i + 1];
          ++batch.loss_tokens;
        }
      }
      batch.real_tokens += static_cast<std::int64_t>(ids.size());
    }
  }
  return batch;
}

}  // namespace mw::data
