// SPDX-License-Identifier: Apache-2.0
// A list of examples for batches: examples in memory, or rows of TokenRows, which need 4 bytes of memory each.
// Thread-safe for reading.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/data/dataset/examples.h"
#include "core/data/dataset/token_rows.h"

namespace mw::data {

// The properties of an example that determine its batch and the size of the batch.
struct ExampleSize {
  int tokens = 0, loss_tokens = 0;
};

// The sizes of `count` examples, computed when asked for.
struct ExampleSizes {
  ExampleSizes() = default;
  ExampleSizes(size_t examples, std::function<ExampleSize(size_t)> size) : count(examples), of(std::move(size)) {}
  ExampleSizes(std::span<const ExampleSize> sizes)  // which must outlive this object
      : count(sizes.size()), of([sizes](size_t i) { return sizes[i]; }) {}
  ExampleSizes(const std::vector<ExampleSize>& sizes) : ExampleSizes(std::span(sizes)) {}

  size_t count = 0;
  std::function<ExampleSize(size_t)> of;
};

class ExampleList {
 public:
  ExampleList() = default;
  ExampleList(std::span<const Example> examples) : examples_(examples) {}  // which must outlive the list
  ExampleList(const std::vector<Example>& examples) : examples_(examples) {}
  // `indices` into `rows`, of used rows.
  ExampleList(std::shared_ptr<const TokenRows> rows, std::vector<std::uint32_t> indices, DatasetOptions options);

  size_t size() const { return rows_ ? indices_.size() : examples_.size(); }
  bool empty() const { return size() == 0; }
  ExampleList first(size_t most) const;
  std::int64_t row(size_t index) const;  // of the file
  ExampleSize size_of(size_t index) const;
  ExampleSizes sizes() const;
  // ids and loss, without the texts.
  void read(size_t index, std::vector<int>& ids, std::vector<std::uint8_t>& loss) const;
  bool has_prompt(size_t index) const;
  // With prompt and answer, which are read from the file again. Throws DATA-CHANGED if the row has changed there.
  Example example(size_t index, const Tokenizer& tokenizer) const;

 private:
  std::span<const Example> examples_;
  std::shared_ptr<const TokenRows> rows_;
  std::shared_ptr<const std::vector<std::uint32_t>> all_indices_;
  std::span<const std::uint32_t> indices_;  // of all_indices_
  DatasetOptions options_;
};

// The data of a run, whose tokens stay in the row cache.
struct TokenizedDataset {
  ExampleList train, eval;
  DatasetReport report;
};
// The examples of load_dataset(), with the memory of 4 bytes per row. Throws as load_dataset().
TokenizedDataset open_dataset(const DatasetOptions& options, const Tokenizer& tokenizer,
                              const std::stop_token& stop = {}, const CountProgress& progress = {});

}  // namespace mw::data
