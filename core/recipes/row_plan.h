// SPDX-License-Identifier: Apache-2.0
// The batches of a training run as a file, so that other software trains on the same tokens, masks, rows and order as
// the engine. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/example_list.h"

namespace mw::recipes {

// A held-out prompt that the scripts answer and score: rendered text with its tokens (bos included), the expected
// answer, and the most tokens that the engine would generate.
struct Prompt {
  std::string text, expected;
  std::vector<int> ids;
  int max_new = 0;
};

// Tokens and rows are computed when they are needed: a plan holds 4 bytes per example, and for_each_row() another 4.
struct RowPlan {
  data::ExampleList train, held_out;  // together the examples of the file: training examples, then held-out ones
  data::BatchOptions options;
  std::int64_t rows = 0;        // of all steps
  std::vector<Prompt> prompts;  // for train.answers and train.sample_prompts
  std::vector<int> stop_ids;    // tokens that end an answer
  int pad_id = 0;
};

// Plans `micro_batches` batches of options.rows rows. Throws RECIPE for more than 50 million rows, DATA-EMPTY without
// examples.
RowPlan plan_rows(const data::TokenizedDataset& dataset, const data::BatchOptions& options, std::int64_t micro_batches,
                  int pad_id);
// The rows of all steps in order, as indices of training examples.
void for_each_row(const RowPlan& plan, const std::function<void(std::span<const int> examples)>& visit);

// {"prompts": [{"prompt", "expected", "ids", "max_new"}], "stop_ids"}, the content of data/answers.json.
Json answers_json(const RowPlan& plan);

// Writes, with the memory of for_each_row(), a safetensors file with ids i32, loss u8, example_starts i64 [examples +
// 1], row_examples i32, row_starts i64 [rows + 1], held_out i32.
void write_rows(const std::filesystem::path& file, const RowPlan& plan);

}  // namespace mw::recipes
