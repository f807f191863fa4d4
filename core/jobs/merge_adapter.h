// SPDX-License-Identifier: Apache-2.0
// An adapter of any source into a merged folder: read, merged, checked against base and adapter, the verdict beside it
// in merge.json. Any thread.
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
  std::optional<float> alpha;  // of an Orbax checkpoint that does not say it
};
struct MergeResult {
  train::Merged merged;
  train::Parity parity;
  Json answer;  // what merge.json says
};

// A PEFT folder or an Orbax checkpoint of Tunix; what was noticed in `notes`.
formats::Adapter read_any_adapter(const std::filesystem::path& adapter, const model::TensorInventory& inventory,
                                  std::optional<float> alpha, std::vector<std::string>& notes);

// `checking` is told from when all is written and the comparison begins; a stop then leaves the folder, whose verdict
// is that it was not run. Throws what merge() and the readers throw.
MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const train::Progress& progress, const train::Progress& checking, std::stop_token stop);

}  // namespace mw::jobs
