// SPDX-License-Identifier: Apache-2.0
// Merges an adapter into the weights of its base model and writes a Hugging Face folder with the same files. Values are
// rounded once, from f32. A thread of its own writes, while the others
// read and compute. Needs memory for the adapter and a few rows of some tensors.
#pragma once
#include <filesystem>
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
// Throws MERGE unless `out` is missing or empty and another folder than `base`.
void require_merge_target(const std::filesystem::path& base, const std::filesystem::path& out);
// Writes into `folder`, which must exist. `progress` counts bytes. Throws MERGE, CHECKPOINT, ADAPTER, or cancelled()
// after a stop.
MergeResult merge_into(const std::filesystem::path& folder, const std::filesystem::path& base,
                       const formats::Adapter& adapter, int threads, const Progress& progress = {},
                       std::stop_token stop = {});
// The same into a folder that is missing or empty and appears as a whole.
MergeResult merge(const std::filesystem::path& base, const formats::Adapter& adapter, const std::filesystem::path& out,
                  int threads, const Progress& progress = {}, std::stop_token stop = {});

}  // namespace mw::train
