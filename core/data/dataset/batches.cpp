// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/batches.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/base/buffer_sizes.h"
#include "core/base/counted.h"
#include "core/base/error.h"
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

namespace {

constexpr size_t kQueue = 2;  // prefetched batches

Error length_error(std::int64_t row, size_t tokens, int max_len) {
  return Error("DATA-LEN", "the example does not fit into a row",
               {.place = "row " + std::to_string(row),
                .found = counted(tokens, "token"),
                .expected = "1 to " + std::to_string(max_len)});
}

void check(size_t examples, const BatchOptions& options) {
  if (examples == 0) throw Error("DATA-EMPTY", "there are no examples", {.expected = "at least one"});
  if (options.rows < 1)
    throw Error("DATA-BATCH", "the batch size is not positive",
                {.place = "train.batch", .found = std::to_string(options.rows), .expected = "at least 1"});
}

void check(const ExampleSizes& examples, const BatchOptions& options) {
  check(examples.count, options);
  for (size_t i = 0; i < examples.count; ++i)
    if (const int tokens = examples.of(i).tokens; tokens < 1 || tokens > options.max_len)
      throw length_error(static_cast<std::int64_t>(i), static_cast<size_t>(std::max(0, tokens)), options.max_len);
}

// The endless list of the rows of all epochs. Access in ascending order plans each window once.
class RowList {
 public:
  RowList(ExampleSizes examples, const BatchOptions& options)
      : examples_(std::move(examples)), options_(options), plan_(examples_, options, 0) {
    rows_ = plan_.rows(0);
  }
  RowList(const RowList&) = delete;
  RowList& operator=(const RowList&) = delete;

  const std::vector<int>& at(std::int64_t index) {  // must not decrease between calls
    if (options_.packing == Packing::none) {        // all epochs have the same number of rows
      const auto per_epoch = static_cast<std::int64_t>(examples_.count);
      start_epoch(index / per_epoch);
      const auto window = static_cast<size_t>(index % per_epoch) / EpochRows::kWindow;
      first_ = epoch_ * per_epoch + static_cast<std::int64_t>(window * EpochRows::kWindow);
      if (window != window_) rows_ = plan_.rows(window_ = window);
    }
    while (index - first_ >= std::ssize(rows_)) {
      first_ += std::ssize(rows_);
      if (window_ + 1 < plan_.windows())
        rows_ = plan_.rows(++window_);
      else
        start_epoch(epoch_ + 1);
    }
    return rows_[static_cast<size_t>(index - first_)];
  }
  const ExampleSizes& examples() const { return examples_; }
  ExampleSize size(int example) const { return examples_.of(static_cast<size_t>(example)); }

 private:
  void start_epoch(std::int64_t epoch) {
    if (epoch == epoch_) return;
    plan_ = EpochRows(examples_, options_, epoch_ = epoch);
    rows_ = plan_.rows(window_ = 0);
  }

  ExampleSizes examples_;
  BatchOptions options_;
  std::int64_t epoch_ = 0, first_ = 0;  // first_: index of the first row of rows_
  size_t window_ = 0;
  EpochRows plan_;
  std::vector<std::vector<int>> rows_;  // of the window
};

// Sizes of a batch per device (largest_batch_per_device).
std::vector<BatchSize> batch_shares(RowList& rows, std::int64_t first, int batch_rows, int ways) {
  std::vector<BatchSize> shares(static_cast<size_t>(ways));
  const int each = (batch_rows + ways - 1) / ways;
  std::int64_t longest_row = 0;
  for (int r = 0; r < batch_rows; ++r) {
    BatchSize& share = shares[static_cast<size_t>(r / each)];
    std::int64_t row = 0;
    for (const int e : rows.at(first + r)) {
      const ExampleSize size = rows.size(e);
      row += size.tokens;
      share.loss_tokens += size.loss_tokens;
      share.longest = std::max(share.longest, size.tokens);
    }
    share.tokens += row;
    longest_row = std::max(longest_row, row);
  }
  for (int w = 0; w < ways; ++w) {
    BatchSize& share = shares[static_cast<size_t>(w)];
    share.padded = longest_row * std::clamp(batch_rows - w * each, 0, each);
    share.step_tokens = sizes::step_tokens(share.padded, share.tokens);
  }
  return shares;
}

void update_maxima(std::vector<BatchSize>& most, const std::vector<BatchSize>& shares) {
  for (size_t w = 0; w < most.size(); ++w) {
    most[w].tokens = std::max(most[w].tokens, shares[w].tokens);
    most[w].loss_tokens = std::max(most[w].loss_tokens, shares[w].loss_tokens);
    most[w].padded = std::max(most[w].padded, shares[w].padded);
    most[w].longest = std::max(most[w].longest, shares[w].longest);
    most[w].step_tokens = std::max(most[w].step_tokens, shares[w].step_tokens);
  }
}

BatchSize batch_size(RowList& rows, std::int64_t n, int batch_rows) {
  return batch_shares(rows, n * batch_rows, batch_rows, 1).front();
}

}  // namespace

struct BatchStream::Impl {
  ExampleList examples;
  BatchOptions options;
  int pad_id;
  std::int64_t position;
  RowList rows;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Batch> ready;
  std::exception_ptr failure;
  std::jthread worker;  // last member: it uses the others

  Impl(ExampleList e, BatchOptions o, int pad, std::int64_t first)
      : examples(std::move(e)), options(o), pad_id(pad), position(first), rows(examples.sizes(), options) {
    worker = std::jthread([this, first](std::stop_token stop) { work(stop, first); });
  }

  void work(const std::stop_token& stop, std::int64_t n) {
    try {
      for (; !stop.stop_requested(); ++n) {
        std::vector<std::vector<int>> chosen;
        for (int r = 0; r < options.rows; ++r) chosen.push_back(rows.at(n * options.rows + r));
        Batch batch = make_batch(examples, chosen, pad_id);
        std::unique_lock lock(mutex);
        if (!changed.wait(lock, stop, [this] { return ready.size() < kQueue; })) return;
        ready.push_back(std::move(batch));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      changed.notify_all();
    }
  }
};

BatchStream::BatchStream(ExampleList examples, BatchOptions options, int pad_id, std::int64_t first_batch) {
  check(examples.sizes(), options);
  if (first_batch < 0) throw Error("DATA-BATCH", "the index of the first batch is negative");
  impl_ = std::make_unique<Impl>(std::move(examples), options, pad_id, first_batch);
}
BatchStream::~BatchStream() = default;

Batch BatchStream::next() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [this] { return !impl_->ready.empty() || impl_->failure; });
  if (impl_->ready.empty()) std::rethrow_exception(impl_->failure);
  Batch batch = std::move(impl_->ready.front());
  impl_->ready.pop_front();
  ++impl_->position;
  impl_->changed.notify_all();
  return batch;
}

std::int64_t BatchStream::position() const {
  return impl_->position;
}

std::int64_t BatchStream::batches_per_epoch() const {
  return (rows_of_epoch(impl_->examples.sizes(), impl_->options) + impl_->options.rows - 1) / impl_->options.rows;
}

std::vector<BatchSize> largest_batch_per_device(const ExampleList& examples, const BatchOptions& options,
                                                std::int64_t first, std::int64_t count, int ways) {
  check(examples.sizes(), options);
  std::vector<BatchSize> most(static_cast<size_t>(ways));
  RowList rows(examples.sizes(), options);
  for (std::int64_t n = first; n < first + count; ++n)
    update_maxima(most, batch_shares(rows, n * options.rows, options.rows, ways));
  return most;
}

std::vector<BatchSize> largest_eval_batch_per_device(const ExampleList& examples, const BatchOptions& options,
                                                     int ways) {
  std::vector<BatchSize> most(static_cast<size_t>(ways));
  if (examples.empty()) return most;
  check(examples.sizes(), options);
  BatchOptions as_given = options;
  as_given.order = Order::as_given;
  RowList rows(examples.sizes(), as_given);
  const std::int64_t count = rows_of_epoch(rows.examples(), as_given);
  for (std::int64_t first = 0; first < count; first += options.rows)
    update_maxima(
        most, batch_shares(rows, first, static_cast<int>(std::min<std::int64_t>(options.rows, count - first)), ways));
  return most;
}

BatchSize largest_batch(const ExampleList& examples, const BatchOptions& options, std::int64_t first,
                        std::int64_t count) {
  return largest_batch_per_device(examples, options, first, count, 1).front();
}

EpochSize first_epoch_size(const ExampleSizes& examples, const BatchOptions& options) {
  check(examples, options);
  RowList rows(examples, options);
  EpochSize epoch;
  epoch.batches = (rows_of_epoch(examples, options) + options.rows - 1) / options.rows;
  epoch.rows = epoch.batches * options.rows;
  epoch.fixed = epoch.rows * options.max_len;
  for (std::int64_t n = 0; n < epoch.batches; ++n) {
    const BatchSize batch = batch_size(rows, n, options.rows);
    epoch.tokens += batch.tokens;
    epoch.loss_tokens += batch.loss_tokens;
    epoch.padded += batch.padded;
  }
  return epoch;
}

std::vector<Batch> eval_batches(const ExampleList& examples, BatchOptions options, int pad_id) {
  if (examples.empty()) return {};
  check(examples.sizes(), options);
  options.order = Order::as_given;
  const auto rows = epoch_rows(examples.sizes(), options, 0);
  std::vector<Batch> batches;
  for (size_t begin = 0; begin < rows.size(); begin += static_cast<size_t>(options.rows)) {
    const size_t n = std::min(static_cast<size_t>(options.rows), rows.size() - begin);
    batches.push_back(make_batch(examples, std::span(rows).subspan(begin, n), pad_id));
  }
  return batches;
}

}  // namespace mw::data
