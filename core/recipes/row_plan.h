// SPDX-License-Identifier: Apache-2.0
// The batches of a training run as a file: every other software that reads it trains on the very tokens, masks, rows
// and order of the engine. Plain values; any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/data/dataset/batches.h"

namespace mw::recipes {

struct RowPlan {
  std::vector<data::Example> examples;  // those that train, then those held out
  std::vector<std::vector<int>> rows;   // of all steps in order: examples by index
  std::vector<int> held_out;            // by index
  int pad_id = 0;
};

// `micro_batches` batches of options.rows rows each. Throws Error RECIPE where they are more rows than 50 million.
RowPlan plan_rows(data::Dataset dataset, const data::BatchOptions& options, std::int64_t micro_batches, int pad_id);

// ids i32, loss u8, example_starts i64 [examples + 1]; row_examples i32, row_starts i64 [rows + 1]; held_out i32.
void write_rows(const std::filesystem::path& file, const RowPlan& plan);

}  // namespace mw::recipes
