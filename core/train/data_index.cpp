// SPDX-License-Identifier: Apache-2.0
#include "core/train/data_index.h"

#include <algorithm>

#include "core/data/dataset/overlap.h"
#include "core/data/dataset/row_cache.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "core/train/settings.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

Error missing(const std::string& what, const std::string& key, const std::string& fix) {
  return Error("MISSING", "the experiment has no " + what, {.place = key, .expected = "a path", .fix = fix});
}

model::Family family_of(const experiment::BoundExperiment& config) {
  const options::Model& model = config.model;
  if (!model.path.empty()) return formats::read_config(model.path).family;
  if (config.data.requested_chat) return {};
  if (!model.id.empty()) return model::catalogue_config(model.id).family;
  throw missing("model", "model.path", "set model.path to the model's folder, or choose data.chat");
}

DataSource source_of(const options::Data& data) {
  return !data.path.empty() ? DataSource::rows : !data.lengths.empty() ? DataSource::lengths : DataSource::none;
}

void add(DataIndex& index, const data::DataRow& row, const Problem* problem) {
  add_to_report(row, index.report);
  if (row.state == data::RowState::bad) {
    if (!index.first_bad && problem) index.first_bad = *problem;
    return;
  }
  if (data::is_duplicate(row.state)) return;
  ++index.lengths[row.tokens];
  if (row.used == 0) return;
  if (row.split == data::Split::held_out)
    ++index.held_out;
  else
    index.train.push_back({row.used, row.loss_tokens});
}

DataIndex index_lengths(const DataIndexRequest& request) {
  DataIndex index;
  index.lengths = data::read_lengths(request.lengths);
  index.report.rows = data::length_stats(index.lengths).rows;
  index.train = data::example_sizes(index.lengths, request.options.max_len, request.options.overlong, kMostDataRows);
  index.report.kept = std::ssize(index.train);
  for (const auto& size : index.train) index.report.tokens += size.tokens;
  for (const auto& [tokens, rows] : index.lengths)
    if (tokens > request.options.max_len)
      (request.options.overlong == options::Overlong::drop ? index.report.dropped_long : index.report.truncated) +=
          rows;
  return index;
}

}  // namespace

// A missing file has a default stamp; reading it reports the error.
FileStamp stamp_of(const fs::path& file) {
  FileStamp stamp;
  std::error_code ec;
  stamp.size = fs::file_size(file, ec);
  if (ec) stamp.size = 0;
  stamp.changed = fs::last_write_time(file, ec);
  if (ec) stamp.changed = {};
  return stamp;
}

FileStamp stamp_of(const data::DatasetOptions& options) {
  FileStamp all;
  for (const data::NumberedFile& file : data::data_files(options)) {
    const FileStamp one = stamp_of(file.path);
    all = {.size = all.size + one.size, .changed = std::max(all.changed, one.changed)};
  }
  return all;
}

bool same_data(const experiment::Experiment& a, const experiment::Experiment& b) {
  const auto same = [&](const char* key) {
    const Json *x = a.find(key), *y = b.find(key);
    return x && y ? *x == *y : x == y;
  };
  return a.folder() == b.folder() && same("data") && same("model") && same("train.batch") && same("train.seed");
}

bool DataIndexRequest::same_rows(const DataIndexRequest& other) const {
  DataIndexRequest mine = *this;
  mine.batches = other.batches;
  return mine == other;
}

DataIndexRequest data_index_request(const experiment::BoundExperiment& config) {
  DataIndexRequest q;
  q.source = source_of(config.data);
  if (q.source == DataSource::none) return q;
  const bool rows = q.source == DataSource::rows;
  const train::Settings settings = train::data_only_settings(config, rows ? family_of(config) : model::Family{});
  q.options = settings.data;
  q.batches = train::batch_options(settings);
  q.stamp = rows ? stamp_of(q.options) : stamp_of(config.data.lengths);
  if (rows)
    q.tokenizer = config.model.tokenizer_path();
  else
    q.lengths = config.data.lengths;
  if (rows && q.tokenizer.empty())
    throw missing("tokenizer", "model.tokenizer", "set model.path to the model's folder, or model.tokenizer");
  return q;
}

DataIndexRequest data_index_request(const experiment::Experiment& e) {
  const bool has_data = source_of(e.valid_values().data) != DataSource::none;
  return has_data ? data_index_request(e.data_config()) : DataIndexRequest();
}

DataIndex index_data(const DataIndexRequest& request, const data::Tokenizer* tokenizer, std::stop_token stop,
                     const CountProgress& progress, const IndexedRowSink& sink, std::int64_t most_rows) {
  DataIndex index;
  try {
    if (request.source == DataSource::lengths) return index_lengths(request);
    if (request.source == DataSource::none || !tokenizer) return index;
    std::int64_t seen = 0;
    const data::DataRowSink take = [&](const data::DataRow& row, const Problem* problem) {
      if (seen++ == most_rows)
        throw Error({.id = "DATA-MANY",
                     .severity = Severity::warning,
                     .message = "only the first " + std::to_string(most_rows) + " rows are read",
                     .file = request.options.path.string()});
      add(index, row, problem);
      if (sink) sink(row);
    };
    const bool unique = request.options.drops_duplicates;
    const auto rows =
        data::row_cache()->open(request.options, *tokenizer, stop, progress, unique ? data::DataRowSink() : take);
    if (unique) data::give_unique_rows(*rows, request.options, stop, progress, take);
    if (const auto problems = rows->problems(request.options); !problems.empty()) index.first_bad = problems.front();
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) throw;
    index.ended = error.problem();
  }
  return index;
}

data::OverlapReport overlap_of(const DataIndexRequest& request, const data::Tokenizer& tokenizer,
                               const std::stop_token& stop) {
  return data::overlap_of(*data::row_cache()->open(request.options, tokenizer, stop), request.options, stop);
}

}  // namespace mw::train
