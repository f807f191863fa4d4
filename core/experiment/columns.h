// SPDX-License-Identifier: Apache-2.0
// Columns of the parameter table beside key, value and text: the kinds of experiments that read a setting, its effect
// in exported recipes, its names in other programs, its part in comparisons. Plain values.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/types.h"
#include "core/options/stack_options.h"

namespace mw::experiment {

// Kinds of experiments that read a setting, on this machine and on another target: bits of KindBit.
enum KindBit : unsigned { kNoKind = 0, kTraining = 1, kSizing = 2, kServing = 4, kEveryKind = 7 };
struct Readers {
  unsigned here = kEveryKind, planned = kEveryKind;
};

enum class RecipeEffect {
  applied,
  not_supported,  // an export that sets it is rejected, or says that it has no effect
  only_planned    // plans read it; the software has a setting of its own
};
// The effect of a setting in exported training recipes. Every row of LoRA, Data and Training has one.
struct RecipeColumn {
  RecipeEffect tunix, torchax, trl_fsdp;
  std::string_view reason;  // why a recipe does not apply it
  RecipeEffect of(model::Stack stack) const {
    return stack == model::Stack::tunix ? tunix : stack == model::Stack::torchax ? torchax : trl_fsdp;
  }
};

// The setting's names in other programs; empty: one has none of this meaning and unit, or several that make it up.
struct PeerNames {
  std::string_view trl{};            // argument of SFTConfig or, in lora.*, of peft.LoraConfig; Unsloth's are the same
  std::string_view axolotl{};        // key of its YAML
  std::string_view llama_factory{};  // key of its YAML
  std::string_view torchtune{};      // key of its YAML
  std::string_view vllm{};           // option of `vllm serve`, in sweep.* of `vllm bench serve`
  std::vector<std::string_view> all() const;  // those that are not empty, each once
};

// The values that a search tries beside the document's own.
struct SearchColumn {
  std::vector<std::string_view> values{};    // names of the choice, or numbers
  std::vector<std::string_view> settings{};  // further ones that searches for meshes and fixes leave out
  std::string_view rule{};                   // instead of a list
};

struct Columns {
  std::optional<Readers> readers{};  // none: those of the group
  RecipeColumn recipes{RecipeEffect::applied, RecipeEffect::applied, RecipeEffect::applied, {}};
  PeerNames names{};
  SearchColumn search{};                                    // empty: a search keeps the setting
  bool (*offered)(const options::StackOptions&) = nullptr;  // by the software of the plan; null: by all
  unsigned carried = kNoKind;  // kinds whose plan on another target reports the value as an assumption that comes along
  int telling = 0;             // 1: tells runs apart best; 0: not named in the names of runs
  std::string_view short_name{};  // before the value in the name of a run: "lr "
  std::string_view factor{};      // of a comparison of servings: settings that only make sense together
  // The finding of a comparison whose runs differ in it: a clause if their losses cannot be compared; the name of the
  // property in serve.* and sweep.*; empty: no finding.
  std::string_view confounder{};
};

}  // namespace mw::experiment
