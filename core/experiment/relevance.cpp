// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/relevance.h"

#include <algorithm>
#include <array>

namespace mw::experiment {
namespace {

enum : unsigned { none = 0, training = 1, sizing = 2, serving = 4 };

struct Use {
  std::string_view group;
  unsigned here, planned;  // kinds of experiment that use the group, on this machine and on another target
};

// Groups that are not listed concern every experiment.
constexpr std::array kUses{
    Use{"LoRA", training | sizing, training | sizing},
    Use{"Data", training, training},
    Use{"Training", training, training},
    Use{"Budget", training, training | sizing},
    Use{"Sampling", training, training},
    Use{"Sizing", sizing, sizing},
    Use{"Serving", serving, training | serving},  // training: cost of training and serving together
    Use{"Sweep", serving, serving},
    Use{"Measured", none, training},
    Use{"Total cost", none, training | serving},
    Use{"Recipe", none, training},
    Use{"Export", none, training | serving},
};

// Parameters that other kinds than those of their group use, too.
constexpr std::array<std::string_view, 3> kShared{"train.dtype", "train.seed", "train.stack"};

// Parameters that only a plan for another target reads.
constexpr std::array<std::string_view, 8> kPlanned{"train.products",     "train.saved",       "train.offload",
                                                   "train.compile",      "train.logit_bytes", "train.other_models",
                                                   "serve.weight_dtype", "serve.products"};

bool equals(const Experiment& experiment, std::string_view key, std::string_view value) {
  const Json* set = experiment.find(key);
  return set && *set == Json(value);
}

}  // namespace

bool Relevance::concerns(const Parameter& parameter) const {
  if (std::find(kShared.begin(), kShared.end(), parameter.key) != kShared.end()) return true;
  if (!planned && std::find(kPlanned.begin(), kPlanned.end(), parameter.key) != kPlanned.end()) return false;
  if (!adapters && kind == Kind::train && parameter.group == "LoRA") return false;
  // The total cost of training and serving holds a service level.
  if (planned && kind == Kind::train && parameter.key.starts_with("sweep.slo_")) return true;
  const auto* const use =
      std::find_if(kUses.begin(), kUses.end(), [&](const Use& u) { return u.group == parameter.group; });
  return use == kUses.end() || ((planned ? use->planned : use->here) >> static_cast<unsigned>(kind) & 1U) != 0;
}

Relevance relevance(const Experiment& experiment, Kind kind) {
  const Json* target = experiment.find("target.id");
  return {.kind = kind,
          .planned = target && target->is_string() && *target != Json("cpu"),
          .adapters = !equals(experiment, "train.method", "full")};
}

}  // namespace mw::experiment
