// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/relevance.h"

#include <algorithm>

#include "core/options/stack_options.h"

namespace mw::experiment {
namespace {

std::optional<model::Stack> named_stack(const Experiment& experiment, std::string_view key) {
  const Json* set = experiment.find(key);
  return set && set->is_string() ? parse<model::Stack>(set->get<std::string>()) : std::nullopt;
}

std::vector<std::string_view> not_offered(const Experiment& experiment, model::Stack stack) {
  const options::StackOptions offered = options::stack_options(stack);
  std::vector<std::string_view> out;
  for (const Parameter& p : parameters())
    if (p.columns.offered && p.key.starts_with("serve.") == model::serves(stack) && !p.columns.offered(offered) &&
        !experiment.find(p.key))
      out.push_back(p.key);
  return out;
}

bool equals(const Experiment& experiment, std::string_view key, std::string_view value) {
  const Json* set = experiment.find(key);
  return set && *set == Json(value);
}

}  // namespace

bool Relevance::concerns(const Parameter& parameter) const {
  if (std::find(not_offered.begin(), not_offered.end(), parameter.key) != not_offered.end()) return false;
  if (!adapters && kind == Kind::train && parameter.group == "LoRA") return false;
  const Readers& readers = *parameter.columns.readers;
  return ((planned ? readers.planned : readers.here) & kind_bit(kind)) != 0;
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
