// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/row_plan.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::recipes {
namespace {

constexpr std::int64_t kMostRows = 50'000'000;

// Passes values to a sink in pieces of 256 KiB or more.
template <class T>
class ValueStream {
 public:
  explicit ValueStream(const formats::ByteSink& sink) : sink_(sink) {}
  void add(T value) { add(std::span(&value, 1)); }
  template <class Value>
  void add(std::span<Value> values) {
    values_.insert(values_.end(), values.begin(), values.end());
    if (values_.size() * sizeof(T) >= kBuffer) flush();
  }
  void flush() {
    sink_(std::as_bytes(std::span(values_)));
    values_.clear();
  }

 private:
  static constexpr size_t kBuffer = 256 << 10;
  const formats::ByteSink& sink_;
  std::vector<T> values_;
};

template <class Visit>
void for_each_size(const RowPlan& plan, const Visit& visit) {
  for (const data::ExampleList* list : {&plan.train, &plan.held_out})
    for (size_t i = 0; i < list->size(); ++i) visit(list->size_of(i));
}

// Calls visit(ids, loss) for all examples.
template <class Visit>
void for_each_example(const RowPlan& plan, const Visit& visit) {
  std::vector<int> ids;
  std::vector<std::uint8_t> loss;
  for (const data::ExampleList* list : {&plan.train, &plan.held_out})
    for (size_t i = 0; i < list->size(); ++i) {
      list->read(i, ids, loss);
      visit(ids, loss);
    }
}

struct StreamedTensor {
  formats::TensorSpec spec;
  std::function<void(const formats::ByteSink&)> write;
};

// A tensor of one dimension; fill(stream) adds its values.
template <class T, class Fill>
StreamedTensor tensor(const char* name, formats::TensorDType type, std::int64_t values, Fill fill) {
  return {{name, type, {values}}, [fill](const formats::ByteSink& sink) {
            ValueStream<T> stream(sink);
            fill(stream);
            stream.flush();
          }};
}

}  // namespace

RowPlan plan_rows(const data::TokenizedDataset& dataset, const data::BatchOptions& options, std::int64_t micro_batches,
                  int pad_id) {
  if (micro_batches > kMostRows / std::max(1, options.rows))
    throw Error("RECIPE", "the training run has too many rows to export",
                {.place = "train.steps",
                 .found = counted(micro_batches, "batch") + " of " + counted(options.rows, "row"),
                 .expected = "at most " + std::to_string(kMostRows) + " rows"});
  if (dataset.train.empty()) throw Error("DATA-EMPTY", "there are no examples", {.expected = "at least one"});
  return {.train = dataset.train,
          .held_out = dataset.eval,
          .options = options,
          .rows = micro_batches * options.rows,
          .prompts = {},
          .stop_ids = {},
          .pad_id = pad_id};
}

void for_each_row(const RowPlan& plan, const std::function<void(std::span<const int> examples)>& visit) {
  const data::ExampleSizes sizes = plan.train.sizes();
  std::int64_t visited = 0;
  for (std::int64_t epoch = 0; visited < plan.rows; ++epoch) {
    const data::EpochRows rows(sizes, plan.options, epoch);
    for (size_t window = 0; window < rows.windows() && visited < plan.rows; ++window)
      for (const std::vector<int>& row : rows.rows(window)) {
        if (visited++ == plan.rows) return;
        visit(row);
      }
  }
}

Json answers_json(const RowPlan& plan) {
  Json prompts = Json::array();
  for (const Prompt& p : plan.prompts)
    prompts.push_back({{"prompt", p.text}, {"expected", p.expected}, {"ids", p.ids}, {"max_new", p.max_new}});
  return {{"prompts", std::move(prompts)}, {"stop_ids", plan.stop_ids}};
}

void write_rows(const std::filesystem::path& file, const RowPlan& plan) {
  const auto train = static_cast<std::int64_t>(plan.train.size()),
             held_out = static_cast<std::int64_t>(plan.held_out.size());
  std::int64_t tokens = 0, row_examples = 0;
  for_each_size(plan, [&](const data::ExampleSize& size) { tokens += size.tokens; });
  for_each_row(plan, [&](std::span<const int> row) { row_examples += std::ssize(row); });
  using formats::TensorDType;
  const std::vector<StreamedTensor> tensors{
      tensor<std::int32_t>(
          "ids", TensorDType::i32, tokens,
          [&](auto& out) { for_each_example(plan, [&](const auto& ids, const auto&) { out.add(std::span(ids)); }); }),
      tensor<std::int32_t>("row_examples", TensorDType::i32, row_examples,
                           [&](auto& out) { for_each_row(plan, [&](std::span<const int> row) { out.add(row); }); }),
      tensor<std::uint8_t>(
          "loss", TensorDType::u8, tokens,
          [&](auto& out) { for_each_example(plan, [&](const auto&, const auto& loss) { out.add(std::span(loss)); }); }),
      tensor<std::int32_t>("held_out", TensorDType::i32, held_out,
                           [&](auto& out) {
                             for (std::int64_t i = 0; i < held_out; ++i) out.add(static_cast<std::int32_t>(train + i));
                           }),
      tensor<std::int64_t>("row_starts", TensorDType::i64, plan.rows + 1,
                           [&](auto& out) {
                             std::int64_t at = 0;
                             out.add(at);
                             for_each_row(plan, [&](std::span<const int> row) { out.add(at += std::ssize(row)); });
                           }),
      tensor<std::int64_t>("example_starts", TensorDType::i64, train + held_out + 1, [&](auto& out) {
        std::int64_t at = 0;
        out.add(at);
        for_each_size(plan, [&](const data::ExampleSize& size) { out.add(at += size.tokens); });
      })};
  std::vector<formats::TensorSpec> specs;
  for (const StreamedTensor& t : tensors) specs.push_back(t.spec);
  make_folders(file.parent_path());
  formats::write_safetensors(file, specs, [&](size_t i, const formats::ByteSink& sink) { tensors[i].write(sink); });
}

}  // namespace mw::recipes
