// SPDX-License-Identifier: Apache-2.0
// Examples to batches: shuffled per epoch, optionally packed, prefetched on one worker thread. The stream's position
// is one number (the index of the next batch), and batch n depends only on (examples, options, n): resumable exactly.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset/dataset.h"

namespace mw::data {

enum class Packing { none, pack };
enum class Order { shuffled, as_given };

// Row-major [rows, len]; padded positions have id pad, loss 0 and segment -1.
struct Batch {
  int rows = 0, len = 0;
  std::vector<int> ids;        // [rows*len]
  std::vector<int> targets;    // next token where it carries loss, else -1
  std::vector<int> positions;  // restart at 0 for each packed example
  std::vector<int> segments;   // example number within the row; tokens attend only within their segment
  std::int64_t real_tokens = 0, loss_tokens = 0;
};

// What of an example decides which batch it is in and how large that is.
struct ExampleSize {
  int tokens = 0, loss_tokens = 0;
};
std::vector<ExampleSize> example_sizes(std::span<const Example> examples);

struct BatchOptions {
  int rows = 1;
  int max_len = 1024;
  Packing packing = Packing::none;  // pack: first-fit decreasing within a shuffled window, rows of exactly <= max_len
  Order order = Order::shuffled;
  std::uint64_t seed = 0;
  bool operator==(const BatchOptions&) const = default;
};

// Not packed: len is the longest row of the batch. The last, short batch of an epoch is filled from the next epoch.
class BatchStream {
 public:
  BatchStream(std::span<const Example> examples, BatchOptions options, int pad_id, std::int64_t first_batch = 0);
  ~BatchStream();
  Batch next();                   // waits for the prefetcher
  std::int64_t position() const;  // index of the batch next() will return
  std::int64_t batches_per_epoch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The most of each kind in any one of the batches [first, first + count) of the stream, without building them.
struct BatchSize {
  std::int64_t tokens = 0, loss_tokens = 0;  // real tokens; the maxima may come from different batches
  std::int64_t padded = 0;                   // rows * length of the longest row
  int longest = 0;                           // tokens of the longest example
  std::int64_t step_tokens = 0;              // tokens that the engine makes room for (sizes::step_tokens)
};
BatchSize largest_batch(std::span<const Example> examples, const BatchOptions& options, std::int64_t first,
                        std::int64_t count);

// The same of each of `ways` (at least 1) devices that take equal runs of every batch's rows, rounded up: the last may
// have fewer rows or none. All are padded to the batch's longest row.
std::vector<BatchSize> largest_batch_per_device(std::span<const Example> examples, const BatchOptions& options,
                                                std::int64_t first, std::int64_t count, int ways);

// The same of the batches that eval_batches() makes; zeros where there are none.
std::vector<BatchSize> largest_eval_batch_per_device(std::span<const Example> examples, const BatchOptions& options,
                                                     int ways);

// All batches of the stream's first epoch together, without building them.
struct EpochSize {
  std::int64_t batches = 0, rows = 0;        // the last batch is filled from the next epoch
  std::int64_t tokens = 0, loss_tokens = 0;  // real tokens
  std::int64_t padded = 0;                   // every row as long as the longest of its batch
  std::int64_t fixed = 0;                    // every row max_len long, as programs of one shape have it
};
EpochSize first_epoch_size(std::span<const ExampleSize> examples, const BatchOptions& options);

// Every example once, in order, without shuffling: for evaluation. The last batch may have fewer rows.
std::vector<Batch> eval_batches(std::span<const Example> examples, BatchOptions options, int pad_id);

}  // namespace mw::data
