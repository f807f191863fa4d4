// SPDX-License-Identifier: Apache-2.0
// The six changes of code that bring a GPU recipe of TRL and PEFT to JAX with Tunix and Qwix: mesh, names of LoRA
// modules, sharding, rematerialization, data pipeline, merging. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/plan/experiment/experiment_plan.h"
#include "core/port/recipe.h"

namespace mw::port {

// The planner's figures of a variant of the experiment; all are predictions.
struct VariantFigures {
  std::optional<std::string> error{};  // why there are none
  bool fits = false;
  Bytes peak, capacity;           // of a device
  double seconds = 0;             // of an optimizer step; of a rollout where the effect is on inference
  double usd_per_1000_steps = 0;  // 0: the target has no price
  std::int64_t trained = 0;       // parameters
  bool operator==(const VariantFigures&) const = default;
};
struct AdaptationEffect {
  std::string target;                     // id
  std::string before_label, after_label;  // what the two plans differ in
  VariantFigures before, after;
};

enum class RuleOutcome { passed, found, unchecked };
struct GuardRule {
  std::string id, title;
  RuleOutcome outcome = RuleOutcome::passed;  // on the ported experiment
  std::string message{};                      // of a finding; what an unchecked rule needs
};

struct Adaptation {
  std::string id, title;
  std::string before, after;  // code
  std::string reason;
  std::string effect_note;  // what the figures do not say; may be empty
  std::vector<AdaptationEffect> effects;
  std::vector<GuardRule> rules;
};

struct PortedToTpu {
  experiment::Experiment experiment;  // on the TPU target with Tunix
  std::string mesh_note;              // how the mesh was chosen
};

// The experiment of the recipe on a TPU target: mesh and micro-batch with the shortest predicted step among those that
// fit, rows per step unchanged. `tpu`: empty chooses the smallest v5p slice with as many chips as the recipe has GPUs.
// Throws TARGET, and the planner's Errors if the model is unknown.
PortedToTpu ported_to_tpu(const PortedRecipe& recipe, const std::string& tpu, const plan::PlanContext& context);

// Always six.
std::vector<Adaptation> adaptations(const PortedRecipe& recipe, const PortedToTpu& ported,
                                    const plan::PlanContext& context);

}  // namespace mw::port

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::port::RuleOutcome>{"passed", "found", "unchecked"};
