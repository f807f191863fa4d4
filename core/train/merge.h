// SPDX-License-Identifier: Apache-2.0
// An adapter added into its base model's weights: a Hugging Face folder like the base's, file by file. Each value is
// rounded once, from f32. Memory: the adapter and a few rows of one tensor at a time.
#pragma once
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/model.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::train {

struct Merged {
  long tensors = 0, merged = 0;  // in the files; those that an adapter changed
  Bytes written;
  std::vector<std::string> files;  // names in the folder
};
// `out` must not be there, or be empty; it appears whole or not at all. Nothing else is touched. Throws Error MERGE,
// CHECKPOINT, ADAPTER; cancelled at a stop.
Merged merge(const std::filesystem::path& base, const formats::Adapter& adapter, const std::filesystem::path& out,
             int threads, const Progress& progress = {}, std::stop_token stop = {});

// The merged folder, reloaded, against base and adapter side by side: logits at every position of a fixed text, in f32.
struct Parity {
  enum class Verdict { passed, failed, not_run } verdict = Verdict::not_run;
  long positions = 0;
  double largest = 0;     // of |merged - unmerged| over all logits
  double rms = 0;         // of that difference
  double effect = 0;      // rms of what the adapter changes at all
  double same_first = 0;  // share of positions with the same likeliest token
  std::string reason{};   // of failed and not_run
};
std::string_view to_string(Parity::Verdict verdict);
// Passes where the difference is at most 1e-3 (f32 files), or what rounding the changed weights to their type explains:
// an rms of 5 % of the adapter's effect or 2^-6, whichever is more, and never over half of the effect: then rounding
// has swallowed the adapter. Layer by layer (SlicedModel), but for E2B and E4B; not run where that does not fit. What
// `progress` throws ends it.
Parity check_parity(const std::filesystem::path& base, const formats::Adapter& adapter,
                    const std::filesystem::path& merged, const ModelSettings& settings, const Progress& progress = {});
Json to_json(const Parity& parity);

}  // namespace mw::train
