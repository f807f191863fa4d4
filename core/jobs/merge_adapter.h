// SPDX-License-Identifier: Apache-2.0
// Merges an adapter of any format into its base model, verifies the result against base and adapter, and writes the
// verdict to merge.json in the output folder. Thread-safe.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/formats/peft/peft_adapter.h"
#include "core/train/merge.h"

namespace mw::jobs {

struct MergeRequest {
  std::filesystem::path base, adapter, out;
  std::optional<float> alpha;  // for an Orbax checkpoint, which does not contain it
};
struct MergeResult {
  train::MergeResult merged;
  train::Parity parity;
  Json answer;  // content of merge.json
};

// Reads a PEFT folder or an Orbax checkpoint of Tunix; appends remarks to `notes`.
formats::Adapter read_any_adapter(const std::filesystem::path& adapter, const model::TensorInventory& inventory,
                                  std::optional<float> alpha, std::vector<std::string>& notes);

// `progress` reports the merge, `checking` the verification after all files are written. A stop during verification
// keeps the folder, with a verdict that says so. Throws the Errors of merge() and of the readers.
MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const train::Progress& progress, const train::Progress& checking, std::stop_token stop);

}  // namespace mw::jobs
