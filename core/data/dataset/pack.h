// SPDX-License-Identifier: Apache-2.0
// Assigns the examples of an epoch to rows. Thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset/batches.h"

namespace mw::data {

// Rows of example indices; every example occurs once.
std::vector<std::vector<int>> epoch_rows(std::span<const ExampleSize> examples, const BatchOptions& options,
                                         std::int64_t epoch);
// Number of rows of the first epoch. With packing, later epochs may have a few more or fewer.
std::int64_t rows_of_epoch(std::span<const ExampleSize> examples, const BatchOptions& options);
// Pads all rows to the longest one.
Batch make_batch(std::span<const Example> examples, std::span<const std::vector<int>> rows, int pad_id);

}  // namespace mw::data
