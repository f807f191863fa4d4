// SPDX-License-Identifier: Apache-2.0
// One pass over an experiment's training data: the state and length of every row. Plain values and functions, any
// thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/lengths.h"
#include "core/data/dataset/scan.h"
#include "core/experiment/experiment.h"

namespace mw::planning {

inline constexpr std::int64_t kMostDataRows = 4'000'000;  // that are looked at; a larger file is cut off, and says so

// As far as a file can be told from an earlier state of it.
struct FileStamp {
  std::uintmax_t size = 0;
  std::filesystem::file_time_type changed{};
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::filesystem::path& file);  // of nothing where there is no such file

enum class DataSource { none, rows, lengths };  // data.path, else data.lengths

// All that the answer depends on, frozen.
struct DataIndexRequest {
  DataSource source = DataSource::none;
  data::DatasetOptions options;
  data::BatchOptions batches;
  std::filesystem::path tokenizer, lengths;
  FileStamp stamp{};  // of the file that is read
  bool operator==(const DataIndexRequest&) const = default;
  bool same_rows(const DataIndexRequest& other) const;  // batches may differ
};
// False: an edit between the two may change the request.
bool same_data(const experiment::Experiment& a, const experiment::Experiment& b);
// Reads the model's config (for the chat template), no data. Throws Error for what is missing or wrong.
DataIndexRequest data_index_request(const experiment::Experiment& experiment);

struct DataRow {
  data::RowState state = data::RowState::ok;
  data::Split split = data::Split::train;
  data::Format format = data::Format::text;
  data::RowPlace place{};
  std::int64_t row = 0;                                // 0-based; -1: a line of running text that is no row
  std::int32_t tokens = 0, used = 0, loss_tokens = 0;  // before any cut; that training takes; of those, or of all
};
DataRow data_row(const data::ScannedRow& scanned);
using DataRowSink = std::function<void(const DataRow&)>;

struct DataIndex {
  data::DatasetReport report;            // as a load of the file counts that skips bad rows; without problems
  std::int64_t held_out = 0;             // of the rows kept
  data::LengthCounts lengths;            // of every readable row, before any cut
  std::vector<data::ExampleSize> train;  // rows to train on, in the file's order
  std::optional<Problem> first_bad;      // where training stops unless bad rows are skipped
  std::optional<Problem> ended;          // why reading ended before the file did
};
// One pass over the file, or over the histogram (then no rows and no loss). A stop throws Error of kind cancelled; what
// else ends the reading stands in the answer.
DataIndex index_data(const DataIndexRequest& request, const data::Tokenizer* tokenizer, std::stop_token stop = {},
                     const data::Progress& progress = {}, const DataRowSink& sink = {},
                     std::int64_t most_rows = kMostDataRows);

}  // namespace mw::planning
