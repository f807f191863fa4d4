// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/dataset.h"

#include "core/data/dataset/scan.h"

namespace mw::data {
namespace {

constexpr size_t kMaxProblems = 100;

class Collector {
 public:
  explicit Collector(const DatasetOptions& options) : options_(options) {}

  void take(ScannedRow row) {
    if (row.state == RowState::bad && options_.on_error == OnError::stop) throw Error(std::move(row.problem));
    DatasetReport& report = data_.report;
    add_to_report(row, report);
    if (row.state == RowState::bad && report.problems.size() < kMaxProblems)
      report.problems.push_back(std::move(row.problem));
    if (row.used == 0) return;
    Example& example = row.example;
    example.ids.resize(row.used);
    example.loss.resize(row.used);
    (row.split == Split::held_out ? data_.eval : data_.train).push_back(std::move(example));
  }

  Dataset result() {
    refuse_empty();
    return std::move(data_);
  }

 private:
  void refuse_empty() {
    if (!data_.train.empty()) return;
    const DatasetReport& r = data_.report;
    std::string found = std::to_string(r.rows) + " rows";
    const auto add = [&](std::int64_t n, const std::string& what) {
      if (n > 0) found += ", " + std::to_string(n) + " " + what;
    };
    add(r.dropped_long, "longer than " + std::to_string(options_.max_len) + " tokens");
    add(r.skipped_bad, "malformed");
    add(r.no_loss, "without tokens that carry loss");
    add(static_cast<std::int64_t>(data_.eval.size()), "held out for evaluation");
    if (!r.problems.empty()) found += "; first: " + r.problems.front().place + ": " + r.problems.front().message;
    throw Error({.id = "DATA-EMPTY",
                 .message = "the data has no usable row to train on",
                 .file = options_.path.string(),
                 .place = "data.path",
                 .found = found,
                 .expected = "at least one row",
                 .fix = r.dropped_long > 0 ? "raise data.max_len or set data.overlong to truncate"
                                           : "check the file and data.format"});
  }

  const DatasetOptions& options_;
  Dataset data_;
};

}  // namespace

Dataset load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
                     const Progress& progress) {
  Collector rows(options);
  scan_rows(options, tokenizer, std::move(stop), progress, [&](ScannedRow row) { rows.take(std::move(row)); });
  return rows.result();
}

}  // namespace mw::data
