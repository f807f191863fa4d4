// SPDX-License-Identifier: Apache-2.0
// Merges an adapter into the weights of its base model and writes a Hugging Face folder with the same files. Values are
// rounded once, from f32. Needs memory for the adapter and a few rows of one tensor.
#pragma once
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
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
// `out` must be missing or empty and is written atomically. Throws MERGE, CHECKPOINT, ADAPTER, or cancelled() after a
// stop.
MergeResult merge(const std::filesystem::path& base, const formats::Adapter& adapter, const std::filesystem::path& out,
                  int threads, const Progress& progress = {}, std::stop_token stop = {});

// Comparison of the merged folder with base model and adapter: f32 logits at every position of a fixed text.
struct Parity {
  enum class Verdict { passed, failed, not_run } verdict = Verdict::not_run;
  long positions = 0;
  double largest = 0;     // of |merged - unmerged| over all logits
  double rms = 0;         // of merged - unmerged
  double effect = 0;      // rms of the change by the adapter
  double same_first = 0;  // fraction of positions with the same most likely token
  std::string reason{};   // if failed or not_run
};
std::string_view to_string(Parity::Verdict verdict);
// Passes if the largest difference is at most 1e-3 (f32 files), or, for other types, if the rms is at most 5 % of the
// adapter's effect or 2^-6, whichever is larger, but not above half of the effect: rounding would then have erased the
// adapter. Runs layer by layer (SlicedModel) except for E2B and E4B; not_run if memory does not suffice. Exceptions of
// `progress` abort the check.
Parity check_parity(const std::filesystem::path& base, const formats::Adapter& adapter,
                    const std::filesystem::path& merged, const ModelSettings& settings, const Progress& progress = {});
Json to_json(const Parity& parity);

}  // namespace mw::train
