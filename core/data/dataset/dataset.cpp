// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/dataset.h"

#include <algorithm>

#include "core/data/dataset/overlap.h"
#include "core/data/dataset/scan.h"

namespace mw::data {
namespace {

constexpr size_t kMaxProblems = 100;

// Counts the rows of a scan. Throws the first bad row with options::OnError::stop.
class RowCounts {
 public:
  explicit RowCounts(const DatasetOptions& options) : options_(options) {}

  void take(const ScannedRow& row) {
    if (row.state == RowState::bad && options_.on_error == options::OnError::stop) throw Error(row.problem);
    add_to_report(data_row(row), report);
    if (row.state == RowState::bad && report.problems.size() < kMaxProblems) report.problems.push_back(row.problem);
    held_out_ += row.used > 0 && row.split == Split::held_out;
  }
  void finish() const { refuse_empty(options_, report, held_out_); }

  DatasetReport report;

 private:
  const DatasetOptions& options_;
  std::int64_t held_out_ = 0;
};

void drop(const std::vector<DuplicateRow>& duplicates, std::vector<Example>& train, DatasetReport& report) {
  std::vector<Example> kept;
  auto next = duplicates.begin();
  for (Example& example : train) {
    if (next == duplicates.end() || example.row != next->index) {
      kept.push_back(std::move(example));
      continue;
    }
    ++(next++->state == RowState::repeated ? report.dropped_repeated : report.dropped_held_out);
    --report.kept;
    report.tokens -= std::ssize(example.ids);
    report.loss_tokens -= std::count(example.loss.begin(), example.loss.end(), 1);
  }
  train = std::move(kept);
}

}  // namespace

Dataset load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
                     const CountProgress& progress) {
  RowCounts counts(options);
  Dataset data;
  DuplicateRows duplicates;  // by the number of the row
  scan_rows(options, tokenizer, std::move(stop), progress, [&](ScannedRow row) {
    counts.take(row);
    if (row.used == 0) return;
    Example& example = row.example;
    example.ids.resize(row.used);
    example.loss.resize(row.used);
    if (options.drops_duplicates) duplicates.add(example.row, row.split, example.ids, example.loss);
    (row.split == Split::held_out ? data.eval : data.train).push_back(std::move(example));
  });
  drop(duplicates.find(), data.train, counts.report);
  counts.finish();
  data.report = std::move(counts.report);
  return data;
}

DatasetSummary summarize_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
                                 const CountProgress& progress) {
  RowCounts counts(options);
  DatasetSummary summary;
  RowOverlap overlap(options.drops_duplicates);
  bool first = true;
  scan_rows(options, tokenizer, std::move(stop), progress, [&](ScannedRow row) {
    counts.take(row);
    overlap.add(data_row(row), row.example.ids, row.example.loss);
    if (!first || row.used == 0 || row.split == Split::held_out) return;
    first = false;
    summary.prompt = std::move(row.example.prompt);
    summary.answer = std::move(row.example.answer);
  });
  counts.finish();
  summary.report = std::move(counts.report);
  summary.overlap = overlap.report();
  return summary;
}

}  // namespace mw::data
