// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/row_plan.h"

#include <numeric>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/dataset/pack.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::recipes {
namespace {

constexpr std::int64_t kMostRows = 50'000'000;

template <class T>
formats::TensorData tensor(const char* name, formats::DType type, const std::vector<T>& values) {
  return {name, type, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

}  // namespace

RowPlan plan_rows(data::Dataset dataset, const data::BatchOptions& options, std::int64_t micro_batches, int pad_id) {
  if (micro_batches > kMostRows / std::max(1, options.rows))
    throw Error({.id = "RECIPE",
                 .message = "the training run has too many rows to export",
                 .place = "train.steps",
                 .found = std::to_string(micro_batches) + " batches of " + std::to_string(options.rows) + " rows",
                 .expected = "at most " + std::to_string(kMostRows) + " rows"});
  RowPlan plan;
  plan.pad_id = pad_id;
  const data::ExampleSizes sizes = data::ExampleList(dataset.train).sizes();
  const auto wanted = static_cast<size_t>(micro_batches * options.rows);
  for (std::int64_t epoch = 0; plan.rows.size() < wanted; ++epoch)
    for (auto& row : data::epoch_rows(sizes, options, epoch))
      if (plan.rows.size() < wanted) plan.rows.push_back(std::move(row));
  plan.examples = std::move(dataset.train);
  plan.held_out.resize(dataset.eval.size());
  std::iota(plan.held_out.begin(), plan.held_out.end(), static_cast<int>(plan.examples.size()));
  std::move(dataset.eval.begin(), dataset.eval.end(), std::back_inserter(plan.examples));
  return plan;
}

Json answers_json(const RowPlan& plan) {
  Json prompts = Json::array();
  for (const Prompt& p : plan.prompts)
    prompts.push_back({{"prompt", p.text}, {"expected", p.expected}, {"ids", p.ids}, {"max_new", p.max_new}});
  return {{"prompts", std::move(prompts)}, {"stop_ids", plan.stop_ids}};
}

void write_rows(const std::filesystem::path& file, const RowPlan& plan) {
  std::vector<std::int32_t> ids, row_examples;
  std::vector<std::uint8_t> loss;
  std::vector<std::int64_t> starts{0}, row_starts{0};
  for (const data::Example& e : plan.examples) {
    ids.insert(ids.end(), e.ids.begin(), e.ids.end());
    loss.insert(loss.end(), e.loss.begin(), e.loss.end());
    starts.push_back(static_cast<std::int64_t>(ids.size()));
  }
  for (const auto& row : plan.rows) {
    row_examples.insert(row_examples.end(), row.begin(), row.end());
    row_starts.push_back(static_cast<std::int64_t>(row_examples.size()));
  }
  using formats::DType;
  const std::vector<formats::TensorData> tensors{tensor("ids", DType::i32, ids),
                                                 tensor("row_examples", DType::i32, row_examples),
                                                 tensor("loss", DType::u8, loss),
                                                 tensor("held_out", DType::i32, plan.held_out),
                                                 tensor("row_starts", DType::i64, row_starts),
                                                 tensor("example_starts", DType::i64, starts)};
  make_folders(file.parent_path());
  formats::write_safetensors(file, tensors);
}

}  // namespace mw::recipes
