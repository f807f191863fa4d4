// SPDX-License-Identifier: Apache-2.0
// Merges an adapter into the weights of its base model and writes a Hugging Face folder with the same files. Values are
// rounded once, from f32. Every thread reads, computes and writes pieces of a file of half a megabyte, while the disk
// reads ahead and writes behind them. Needs memory for the adapter and a few pieces.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/model.h"

namespace mw::train {

struct MergeResult {
  long tensors = 0, merged = 0;  // in the files; changed by the adapter
  Bytes written;
  std::vector<std::string> files;  // names in the folder
};
// alpha / rank, or alpha / sqrt(rank) of rank-stabilised adapters.
float scaling_of(const formats::Adapter& adapter, const formats::AdapterModule& module);
// Gives rows of W + scaling B A the lengths that DoRA trained for the outputs from `first_row` on.
void scale_rows(const formats::AdapterModule& module, std::int64_t first_row, std::span<float> rows);
// Throws MERGE unless `out` is missing or empty and another folder than `base`.
void require_merge_target(const std::filesystem::path& base, const std::filesystem::path& out);
// The first `bytes` bytes of `file`, made from `base_file`, can be read; they may not be on disk yet. The file has its
// final size.
using WrittenBytes =
    std::function<void(const std::filesystem::path& base_file, const std::filesystem::path& file, std::uint64_t bytes)>;
struct MergeOptions {
  int threads = 0;         // 0: all cores
  Progress progress{};     // in bytes
  WrittenBytes written{};  // after every piece, on the calling thread
};
// Writes into `folder`, which must exist and is incomplete until the function returns: use a StagedFolder. All files
// are on disk then. Throws MERGE, CHECKPOINT, ADAPTER, or cancelled() after a stop.
MergeResult merge_into(const std::filesystem::path& folder, const std::filesystem::path& base,
                       const formats::Adapter& adapter, const MergeOptions& options, std::stop_token stop = {});
// The same into a folder that is missing or empty and appears as a whole.
MergeResult merge(const std::filesystem::path& base, const formats::Adapter& adapter, const std::filesystem::path& out,
                  int threads, const Progress& progress = {}, std::stop_token stop = {});

}  // namespace mw::train
