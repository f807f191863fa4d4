// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/example_list.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/dataset/overlap.h"
#include "core/data/dataset/row_cache.h"

namespace mw::data {

ExampleList::ExampleList(std::shared_ptr<const TokenRows> rows, std::vector<std::uint32_t> indices,
                         DatasetOptions options)
    : rows_(std::move(rows)),
      all_indices_(std::make_shared<const std::vector<std::uint32_t>>(std::move(indices))),
      indices_(*all_indices_),
      options_(std::move(options)) {}

ExampleList ExampleList::first(size_t most) const {
  ExampleList out = *this;
  out.examples_ = examples_.first(std::min(most, examples_.size()));
  out.indices_ = indices_.first(std::min(most, indices_.size()));
  return out;
}

std::int64_t ExampleList::row(size_t index) const {
  return rows_ ? rows_->record(indices_[index]).row : examples_[index].row;
}

ExampleSize ExampleList::size_of(size_t index) const {
  if (rows_) {
    const DataRow row = rows_->row(indices_[index], options_);
    return {row.used, row.loss_tokens};
  }
  const Example& e = examples_[index];
  if (e.ids.size() != e.loss.size()) return {};  // refused as an empty example
  return {static_cast<int>(e.ids.size()),
          static_cast<int>(std::count_if(e.loss.begin(), e.loss.end(), [](auto l) { return l != 0; }))};
}

ExampleSizes ExampleList::sizes() const {
  return {size(), [list = *this](size_t i) { return list.size_of(i); }};
}

void ExampleList::read(size_t index, std::vector<int>& ids, std::vector<std::uint8_t>& loss) const {
  if (rows_) return rows_->read(indices_[index], size_of(index).tokens, ids, loss);
  ids = examples_[index].ids;
  loss = examples_[index].loss;
}

bool ExampleList::has_prompt(size_t index) const {
  return rows_ ? rows_->record(indices_[index]).has_prompt != 0 : !examples_[index].prompt.empty();
}

Example ExampleList::example(size_t index, const Tokenizer& tokenizer) const {
  if (!rows_) return examples_[index];
  const DataRow row = rows_->row(indices_[index], options_);
  ScannedRow known;
  known.state = row.state;
  known.format = row.format;
  known.position = row.place;
  known.example.row = row.row;
  Example example = rescan_row(options_, tokenizer, known).example;
  Example kept;
  read(index, kept.ids, kept.loss);
  if (example.ids.size() < kept.ids.size() || !std::equal(kept.ids.begin(), kept.ids.end(), example.ids.begin()))
    throw Error("DATA-CHANGED", "the file has changed since it was read",
                {.file = data_file(options_, row.place.file).string(),
                 .place = "line " + std::to_string(row.place.line),
                 .fix = "start again, which reads the file again"});
  kept.row = row.row;
  kept.prompt = std::move(example.prompt);
  kept.answer = std::move(example.answer);
  return kept;
}

TokenizedDataset open_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, const std::stop_token& stop,
                              const CountProgress& progress) {
  TokenizedDataset data;
  std::vector<std::uint32_t> train, eval;
  std::uint32_t index = 0;
  const auto refuse_bad = [&](const DataRow& row, const Problem* problem) {
    if (row.state == RowState::bad && options.on_error == options::OnError::stop && problem) throw Error(*problem);
  };
  const DataRowSink take = [&](const DataRow& row, const Problem* problem) {
    refuse_bad(row, problem);
    add_to_report(row, data.report);
    if (row.used > 0) (row.split == Split::held_out ? eval : train).push_back(index);
    ++index;
  };
  const std::shared_ptr<RowCache> cache = row_cache();
  const auto rows =
      cache->open(options, tokenizer, stop, progress, options.drops_duplicates ? DataRowSink(refuse_bad) : take);
  if (options.drops_duplicates) give_unique_rows(*rows, options, stop, progress, take);
  data.report.problems = rows->problems(options);
  if (options.on_error == options::OnError::stop && !data.report.problems.empty())
    throw Error(data.report.problems.front());
  refuse_empty(options, data.report, std::ssize(eval));
  data.train = {rows, std::move(train), options};
  data.eval = {rows, std::move(eval), options};
  return data;
}

}  // namespace mw::data
