// SPDX-License-Identifier: Apache-2.0
// Assigns the examples of an epoch to rows. Thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset/batches.h"

namespace mw::data {

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
