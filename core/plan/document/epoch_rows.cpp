// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/epoch_rows.h"

#include <deque>
#include <mutex>

#include "core/base/optimizer_steps.h"
#include "core/data/dataset/pack.h"
#include "core/plan/request/lengths.h"
#include "core/train/data_index.h"

namespace mw::plan {
namespace {

// Caches row counts: plans are recomputed at every edit, and most edits do not change the data.
class CountedRows {
 public:
  std::optional<double> find(const train::DataIndexRequest& request) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, rows] : answers_)
      if (known == request) return rows;
    return std::nullopt;
  }
  void keep(const train::DataIndexRequest& request, double rows) {
    constexpr size_t kMost = 8;
    const std::lock_guard lock(mutex_);
    answers_.emplace_front(request, rows);
    if (answers_.size() > kMost) answers_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<train::DataIndexRequest, double>> answers_;
};

CountedRows& counted_rows() {
  static CountedRows rows;
  return rows;
}

// A histogram has no row numbers; the number of held-out rows is that of a file with the same number of rows.
std::vector<data::ExampleSize> without_held_out(std::vector<data::ExampleSize> sizes,
                                                const data::DatasetOptions& options) {
  std::int64_t row = 0;
  std::erase_if(sizes, [&](const data::ExampleSize&) { return split_of(options, row++) == data::Split::held_out; });
  return sizes;
}

std::optional<double> count_rows(train::DataIndexRequest request, std::stop_token stop) {
  request.batches.rows = 1;  // the row count does not depend on the batch
  if (const auto known = counted_rows().find(request)) return known;
  const bool from_file = request.source == train::DataSource::rows;
  const auto tokenizer = from_file ? data::load_tokenizer(request.tokenizer) : nullptr;
  train::DataIndex index = train::index_data(request, tokenizer.get(), std::move(stop));
  if (index.ended) return std::nullopt;  // too large to count, or not readable
  if (!from_file) index.train = without_held_out(std::move(index.train), request.options);
  const auto rows = static_cast<double>(data::rows_of_epoch(index.train, request.batches));
  counted_rows().keep(request, rows);
  return rows;
}

// Returns empty if the dataset, tokenizer or model cannot be read; starting a run reports the error.
std::optional<double> rows_of(const experiment::ExperimentConfig& config, std::stop_token stop) try {
  const train::DataIndexRequest request = train::data_index_request(config);
  return request.source == train::DataSource::none ? std::nullopt : count_rows(request, std::move(stop));
} catch (const Error& error) {
  if (error.kind() == Error::Kind::cancelled) throw;
  return std::nullopt;
}

constexpr std::int64_t kMostDrawn = 4'000'000;  // rows whose split is drawn one by one

std::int64_t not_held_out(std::int64_t rows, const data::DatasetOptions& options) {
  if (rows > kMostDrawn)
    return static_cast<std::int64_t>(static_cast<double>(rows) * (1 - options.random_share_held_out()));
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    if (split_of(options, row) == data::Split::train) ++kept;
  return kept;
}

// Estimates from data.rows and data.mean_len, or from a histogram with too many rows to count one by one.
std::optional<double> estimated_rows(const experiment::ExperimentConfig& config) {
  data::DatasetOptions options{config.data};
  options.seed = config.train.seed;
  plan::Lengths lengths{.max_len = config.data.max_len,
                        .mean = config.data.mean_len,
                        .count = not_held_out(config.data.rows, options),
                        .rows = config.data.packing ? plan::RowLayout::packed : plan::RowLayout::padded};
  double share = 1;
  if (!config.data.lengths.empty()) {
    for (const auto& [tokens, rows] : data::read_lengths(config.data.lengths))
      lengths.histogram.emplace_back(tokens, rows);
    share = 1 - options.random_share_held_out();
  }
  const double rows = plan::row_statistics(lengths, 1).batches_rows * share;
  return rows > 0 ? std::optional(rows) : std::nullopt;
}

}  // namespace

std::optional<double> epoch_rows(const experiment::ExperimentConfig& config, std::stop_token stop) {
  if (!config.data.path.empty())
    if (const auto rows = rows_of(config, stop)) return rows;
  if (!config.data.lengths.empty()) {
    experiment::ExperimentConfig lengths = config;
    lengths.data.path.clear();
    if (const auto rows = rows_of(lengths, std::move(stop))) return rows;
  }
  return estimated_rows(config);
}

std::optional<long long> training_steps(const experiment::ExperimentConfig& config, std::stop_token stop) {
  const options::Training& train = config.train;
  if (train.epochs <= 0) return train.rate.steps;
  const auto rows = epoch_rows(config, std::move(stop));
  if (!rows) return std::nullopt;
  return steps_of_epochs(*rows, train.epochs, {.batch = train.batch, .accumulation = train.accumulation});
}

}  // namespace mw::plan
