// SPDX-License-Identifier: Apache-2.0
// Which examples share a row, in which order: the plan of one epoch. Pure functions, any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset/batches.h"

namespace mw::data {

// Rows of example indices; every example exactly once.
std::vector<std::vector<int>> epoch_rows(std::span<const ExampleSize> examples, const BatchOptions& options,
                                         std::int64_t epoch);
// Rows of the first epoch. Packed, later epochs are shuffled otherwise and may have a few more or fewer.
std::int64_t rows_of_epoch(std::span<const ExampleSize> examples, const BatchOptions& options);
// The rows side by side, padded to the longest.
Batch make_batch(std::span<const Example> examples, std::span<const std::vector<int>> rows, int pad_id);

}  // namespace mw::data
