// SPDX-License-Identifier: Apache-2.0
// Groups examples into batches: shuffled per epoch, optionally packed, prefetched on a worker thread. Batch n depends
// only on (examples, options, n), so a stream resumes exactly at any index.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset/example_list.h"
#include "core/data/dataset/examples.h"

namespace mw::data {

enum class Packing { none, pack };
enum class Order { shuffled, as_given };

// Arrays are row-major [rows, len]. Padding has id pad_id, target -1 and segment -1.
struct Batch {
  int rows = 0, len = 0;
  std::vector<int> ids;        // [rows*len]
  std::vector<int> targets;    // next token if it carries loss, else -1
  std::vector<int> positions;  // restart at 0 for each packed example
  std::vector<int> segments;   // index of the example within the row; attention stays within a segment
  std::int64_t real_tokens = 0, loss_tokens = 0;
};

struct BatchOptions {
  int rows = 1;
  int max_len = 1024;
  Packing packing = Packing::none;  // pack: first-fit decreasing within a shuffled window, rows of at most max_len
  Order order = Order::shuffled;
  std::uint64_t seed = 0;
  bool operator==(const BatchOptions&) const = default;
};

// `len` is the length of the longest row. The last batch of an epoch is filled up from the next epoch. Use on one
// thread.
class BatchStream {
 public:
  BatchStream(ExampleList examples, BatchOptions options, int pad_id, std::int64_t first_batch = 0);
  ~BatchStream();
  Batch next();                            // waits for the worker thread
  std::int64_t position() const;           // index of the batch that next() returns
  std::int64_t batches_per_epoch() const;  // of the first epoch

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Maxima over a range of batches; each may come from a different batch.
struct BatchSize {
  std::int64_t tokens = 0, loss_tokens = 0;  // without padding
  std::int64_t padded = 0;                   // rows * length of the longest row
  int longest = 0;                           // tokens of the longest example
  std::int64_t step_tokens = 0;              // tokens that the engine allocates (sizes::step_tokens)
};
// Maxima over the batches [first, first + count) of the stream, without building them.
BatchSize largest_batch(const ExampleList& examples, const BatchOptions& options, std::int64_t first,
                        std::int64_t count);

// Maxima per device, if `ways` (at least 1) devices take ceil(rows / ways) consecutive rows of every batch each. All
// are padded to the longest row of the batch.
std::vector<BatchSize> largest_batch_per_device(const ExampleList& examples, const BatchOptions& options,
                                                std::int64_t first, std::int64_t count, int ways);

// Maxima per device over the batches of eval_batches(); zeros if there are none.
std::vector<BatchSize> largest_eval_batch_per_device(const ExampleList& examples, const BatchOptions& options,
                                                     int ways);

// Sums over all batches of one epoch.
struct EpochSize {
  std::int64_t batches = 0, rows = 0;        // the last batch is filled from the next epoch
  std::int64_t tokens = 0, loss_tokens = 0;  // without padding
  std::int64_t padded = 0;                   // tokens if rows are padded to the longest of their batch
  std::int64_t fixed = 0;                    // tokens if rows are padded to max_len, as in programs of fixed shape
};
// The first epoch of the stream, without building its batches.
EpochSize first_epoch_size(const ExampleSizes& examples, const BatchOptions& options);

// Every example once in the given order, for evaluation. The last batch may have fewer rows.
std::vector<Batch> eval_batches(const ExampleList& examples, BatchOptions options, int pad_id);

// The rows of one epoch as lists of example indices, window by window; every example occurs once. Holds 4 bytes per
// example. `examples` must outlive it.
class EpochRows {
 public:
  EpochRows(const ExampleSizes& examples, const BatchOptions& options, std::int64_t epoch);
  static constexpr size_t kWindow =
      1024;  // examples packed together: enough to fill rows, few enough to keep the shuffled order
  std::size_t windows() const { return (order_.size() + kWindow - 1) / kWindow; }
  std::vector<std::vector<int>> rows(size_t window) const;

 private:
  const ExampleSizes* examples_;
  BatchOptions options_;
  std::uint64_t epoch_;
  std::vector<int> order_;
};

std::vector<std::vector<int>> epoch_rows(const ExampleSizes& examples, const BatchOptions& options, std::int64_t epoch);
// Number of rows of the first epoch. With packing, later epochs may have a few more or fewer.
std::int64_t rows_of_epoch(const ExampleSizes& examples, const BatchOptions& options);
// Pads all rows to the longest one.
Batch make_batch(const ExampleList& examples, std::span<const std::vector<int>> rows, int pad_id);

}  // namespace mw::data
