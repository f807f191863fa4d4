// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/relevance.h"

#include <algorithm>
#include <array>

#include "core/options/stack_options.h"

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

// Parameters of training that sizes on another target use, too.
constexpr std::array<std::string_view, 3> kSized{"train.other_models", "train.attention", "train.compile"};

// Parameters that only a plan for another target reads.
constexpr std::array<std::string_view, 8> kPlanned{"train.products",     "train.saved",       "train.offload",
                                                   "train.compile",      "train.logit_bytes", "train.other_models",
                                                   "serve.weight_dtype", "serve.products"};

// Options that plans refuse where the software does not offer them.
struct StackOption {
  std::string_view key;
  bool (*is_offered)(const options::StackOptions&);
};
using Options = options::StackOptions;
constexpr std::array kStackOptions{
    StackOption{"train.products", [](const Options& o) { return o.fp8_products; }},
    StackOption{"train.saved", [](const Options& o) { return o.saved_by_name; }},
    StackOption{"train.offload", [](const Options& o) { return o.offload; }},
    StackOption{"train.compile", [](const Options& o) { return o.compile_choice; }},
    StackOption{"serve.products", [](const Options& o) { return o.fp8_products; }},
};

std::optional<model::Stack> named_stack(const Experiment& experiment, std::string_view key) {
  const Json* set = experiment.find(key);
  return set && set->is_string() ? parse<model::Stack>(set->get<std::string>()) : std::nullopt;
}

std::vector<std::string_view> not_offered(const Experiment& experiment, model::Stack stack) {
  const Options offered = options::stack_options(stack);
  std::vector<std::string_view> out;
  for (const StackOption& option : kStackOptions)
    if (option.key.starts_with("serve.") == model::serves(stack) && !option.is_offered(offered) &&
        !experiment.find(option.key))
      out.push_back(option.key);
  return out;
}

bool equals(const Experiment& experiment, std::string_view key, std::string_view value) {
  const Json* set = experiment.find(key);
  return set && *set == Json(value);
}

}  // namespace

bool Relevance::concerns(const Parameter& parameter) const {
  if (std::find(kShared.begin(), kShared.end(), parameter.key) != kShared.end()) return true;
  if (!planned && std::find(kPlanned.begin(), kPlanned.end(), parameter.key) != kPlanned.end()) return false;
  if (std::find(not_offered.begin(), not_offered.end(), parameter.key) != not_offered.end()) return false;
  if (planned && kind == Kind::size && std::find(kSized.begin(), kSized.end(), parameter.key) != kSized.end())
    return true;
  if (!adapters && kind == Kind::train && parameter.group == "LoRA") return false;
  // The total cost of training and serving holds a service level.
  if (planned && kind == Kind::train && parameter.key.starts_with("sweep.slo_")) return true;
  const auto* const use =
      std::find_if(kUses.begin(), kUses.end(), [&](const Use& u) { return u.group == parameter.group; });
  return use == kUses.end() || ((planned ? use->planned : use->here) >> static_cast<unsigned>(kind) & 1U) != 0;
}

Relevance relevance(const Experiment& experiment, Kind kind, std::optional<model::Stack> stack) {
  const Json* target = experiment.find("target.id");
  Relevance out{.kind = kind,
                .planned = target && target->is_string() && *target != Json("cpu"),
                .adapters = !equals(experiment, "train.method", "full")};
  if (const auto named = named_stack(experiment, kind == Kind::serve ? "serve.stack" : "train.stack")) stack = named;
  if (out.planned && stack) out.not_offered = not_offered(experiment, *stack);
  return out;
}

}  // namespace mw::experiment
