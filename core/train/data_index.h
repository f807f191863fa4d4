// SPDX-License-Identifier: Apache-2.0
// Indexes the training data of an experiment in one pass: state and length of every row. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "core/data/dataset/lengths.h"
#include "core/data/dataset/scan.h"
#include "core/experiment/bound_experiment.h"

namespace mw::train {

// Rows read at most, at 8 bytes each; DataIndex::ended reports a larger file.
inline constexpr std::int64_t kMostDataRows = 100'000'000;

// Identifies a version of a file by size and modification time.
struct FileStamp {
  std::uintmax_t size = 0;
  std::filesystem::file_time_type changed{};
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::filesystem::path& file);  // default value if the file does not exist
// The sum of the sizes and the latest change of all files. Throws as data_files().
FileStamp stamp_of(const data::DatasetOptions& options);

enum class DataSource { none, rows, lengths };  // rows: data.path; lengths: data.lengths

// All inputs that the index depends on.
struct DataIndexRequest {
  DataSource source = DataSource::none;
  data::DatasetOptions options;
  data::BatchOptions batches;
  std::filesystem::path tokenizer, lengths;
  FileStamp stamp{};  // of the input file
  bool operator==(const DataIndexRequest&) const = default;
  bool same_rows(const DataIndexRequest& other) const;  // equal except for `batches`
};
// Returns false if the edit from `a` to `b` may change the request.
bool same_data(const experiment::Experiment& a, const experiment::Experiment& b);
// Reads the model's config (for the chat template) but no data. Throws MISSING or the config reader's Error; for a
// document, also the first error of Experiment::data_config().
DataIndexRequest data_index_request(const experiment::BoundExperiment& config);
DataIndexRequest data_index_request(const experiment::Experiment& experiment);

using IndexedRowSink = std::function<void(const data::DataRow&)>;

struct DataIndex {
  data::DatasetReport report;            // counts of a load that skips bad rows; has no problems
  std::int64_t held_out = 0;             // held-out rows among the kept rows
  data::LengthCounts lengths;            // of every readable row but duplicates that are dropped, before truncation
  std::vector<data::ExampleSize> train;  // training rows, in file order
  std::optional<Problem> first_bad;      // first bad row, where training stops with data.on_error = stop
  std::optional<Problem> ended;          // why reading stopped before the end of the file
};
// Reads the data file, or the histogram (then without rows and loss). Throws cancelled() if stopped; other errors end
// the pass and are returned in DataIndex::ended.
DataIndex index_data(const DataIndexRequest& request, const data::Tokenizer* tokenizer, std::stop_token stop = {},
                     const CountProgress& progress = {}, const IndexedRowSink& sink = {},
                     std::int64_t most_rows = kMostDataRows);

// Compares the rows of the request's files. Throws as RowCache::open().
data::OverlapReport overlap_of(const DataIndexRequest& request, const data::Tokenizer& tokenizer,
                               const std::stop_token& stop = {});

}  // namespace mw::train
