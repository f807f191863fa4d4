// SPDX-License-Identifier: Apache-2.0
// Merges an adapter of any format into its base model and checks every weight of the result; on request it also
// compares logits and text with base and adapter. The folder appears under its name only if what was asked for passes.
// Thread-safe.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/formats/peft/peft_adapter.h"
#include "core/train/merge.h"
#include "core/train/parity.h"

namespace mw::jobs {

enum class UncheckedMerge { kept_aside, released };  // if the comparison of logits could not run
enum class CompareLogits { no, yes };                // as check_parity(); a prompt asks for it, too

struct MergeRequest {
  std::filesystem::path base, adapter, out;
  std::optional<float> alpha;  // for an Orbax checkpoint, which does not contain it
  std::vector<std::string> prompts{};
  UncheckedMerge unchecked = UncheckedMerge::kept_aside;
  CompareLogits logits = CompareLogits::no;
};
struct MergeResult {
  train::MergedFiles merged;
  train::MergeCheck check;
  train::Parity parity;
  std::filesystem::path folder;  // where the merged model is: `out`, or OUT.rejected or OUT.unchecked
  bool is_released = false;      // under its name
  Json answer;                   // content of merge.json
};

// Reads a PEFT folder or an Orbax checkpoint of Tunix; appends remarks to `notes`.
formats::PeftAdapter read_any_adapter(const std::filesystem::path& adapter, const model::TensorInventory& inventory,
                                      std::optional<float> alpha, std::vector<std::string>& notes);

// `progress` reports the merge and the check of its weights, `checking` the comparison of logits. A model that fails is
// moved to OUT.rejected; one whose check or comparison was stopped or impossible to OUT.unchecked. merge.json in the
// folder has the figures. Throws the Errors of merge_into() and of the readers.
MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const CountProgress& progress, const CountProgress& checking, std::stop_token stop);

struct ParityRequest {
  std::filesystem::path base, adapter, merged;
  std::optional<float> alpha;
  std::vector<std::string> prompts{};  // need a tokenizer in the folder of the base model
};
// Compares a folder that was merged before. Throws cancelled(), and the Errors of the readers.
train::Parity check_merged(const ParityRequest& request, const std::function<void(const std::string&)>& noted,
                           const CountProgress& checking, std::stop_token stop);

// One sentence: where the merged model is and why.
std::string released_text(const MergeResult& result);

// Runs a merged folder in the serving engine, for the parity check: logits at every position of the prompts and greedy
// text, against the base model with the adapter beside it. Use on one thread.
inline constexpr int kGreedyTokens = 16;  // of each prompt

struct ServedParityRequest {
  std::filesystem::path base, merged;
  const formats::PeftAdapter* adapter = nullptr;
  model::WeightType weights = model::WeightType::f32;  // in which the engine holds both models
};
// Loads one model after the other. ServedRun::not_run is set if a model does not fit into memory. Throws cancelled().
train::ServedRun run_served(const ServedParityRequest& request, const std::vector<train::ParityPrompt>& prompts,
                            std::stop_token stop);

}  // namespace mw::jobs
