// SPDX-License-Identifier: Apache-2.0
// Compares a merged model with its base model and adapter: logits at every position, hidden states behind every layer,
// and greedy text, for the merged weights before they are rounded, the folder that was written, and the folder served.
// Use on one thread.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/json.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/model.h"

namespace mw::train {

enum class ParityVerdict { passed, failed, not_run };
enum class ParityForm {
  folded,  // base weights plus the adapter's product, in f32: shows mistakes of names, shapes and scale
  reread,  // the folder read again: shows rounding to the type of its files, too
  served   // the folder in the serving engine, with its own weight type and KV cache
};
enum class ParityMeasure { largest, rms };

struct ParityPrompt {
  std::string text;  // empty: fixed tokens that cover the vocabulary
  std::vector<int> ids;
};
struct PositionDivergence {  // of the logits at one position of a prompt; absolute
  int prompt = 0, position = 0;
  double largest = 0, mean = 0;
  bool same_likeliest = true;
};
struct LayerDivergence {  // of the hidden states behind a layer, over all positions
  int layer = 0;
  double rms = 0, relative = 0;  // relative to the rms of the hidden states with the adapter
};
struct GreedyText {  // of one prompt; ids of generated tokens
  int prompt = 0;
  std::vector<int> with_adapter, merged;
  std::optional<int> first_difference{};  // index of a token; empty: equal
  // There, with the adapter: the logit of its token minus that of the merged model's token.
  double margin = 0;
  bool is_explained = true;  // equal, or the margin is below twice the largest difference of logits
};
struct FormParity {
  ParityForm form = ParityForm::reread;
  ParityVerdict verdict = ParityVerdict::not_run;
  std::string reason{};  // if failed or not_run
  double largest = 0, mean = 0, rms = 0;
  double same_first = 0;  // fraction of positions with the same most likely token
  ParityMeasure measure = ParityMeasure::rms;
  double allowed = 0;              // of the measure
  std::string tolerance_reason{};  // why this much
  std::vector<PositionDivergence> positions{};
  std::vector<LayerDivergence> layers{};  // empty if the model is not run layer by layer, and where it is served
  std::vector<GreedyText> texts{};        // where it is served
};

// `verdict` is failed if a form fails, and not_run if the folder could not be read again in f32. The other figures are
// those of ParityForm::reread.
struct Parity {
  using Verdict = ParityVerdict;
  Verdict verdict = Verdict::not_run;
  long positions = 0;
  double largest = 0, mean = 0;  // of |merged - unmerged| over all logits
  double rms = 0;                // of merged - unmerged
  double effect = 0;             // rms of the change by the adapter
  double same_first = 0;
  std::string reason{};   // if failed or not_run
  std::string weights{};  // type of the merged files: "f32", "bf16"
  std::vector<ParityPrompt> prompts{};
  std::vector<FormParity> forms{};
};

// The results of the serving engine.
struct ServedRun {
  std::vector<float> logits;  // of all positions of all prompts in order, [positions, vocab]
  std::vector<GreedyText> texts;
  std::string not_run;  // why there is nothing
};
struct ParityOptions {
  std::vector<ParityPrompt> prompts{};  // besides the fixed ones; at most kMostPrompts of kMostPromptTokens are used
  // Empty: ParityForm::served is left out. `weights`: type of the merged files.
  std::function<ServedRun(const std::vector<ParityPrompt>& prompts, model::WeightType weights,
                          const CountProgress& progress)>
      serve{};
};
inline constexpr size_t kMostPrompts = 6, kMostPromptTokens = 32;

// Tolerances. f32 files: the largest difference is at most 1e-3. Other types: the rms is at most 5 % of the adapter's
// effect or 2^-6, whichever is larger, but not above half of the effect, because rounding would then have erased the
// adapter; served, twice that without the last condition. Runs layer by layer (SlicedModel) except for E2B and E4B;
// not_run if memory does not suffice. Exceptions of `progress` abort the check.
Parity check_parity(const std::filesystem::path& base, const formats::PeftAdapter& adapter,
                    const std::filesystem::path& merged, const ModelSettings& settings,
                    const CountProgress& progress = {}, const ParityOptions& options = {});
Json to_json(const Parity& parity);
std::string parity_text(const Parity& parity);  // a table with one line per form, and the differences of greedy text

}  // namespace mw::train

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::train::ParityVerdict>{"passed", "failed", "not run"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::train::ParityForm>{"folded", "reread", "served"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::train::ParityMeasure>{"largest", "rms"};
