// SPDX-License-Identifier: Apache-2.0
// Tells which parameters have an effect in an experiment, so that the form can leave out the others. Thread-safe.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "core/experiment/bound_experiment.h"
#include "core/experiment/experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {

constexpr unsigned kind_bit(Kind kind) {
  return 1U << static_cast<unsigned>(kind);
}

struct Relevance {
  Kind kind = Kind::train;
  bool planned = false;                         // the target is not this machine
  bool adapters = true;                         // false: every weight is trained
  std::vector<std::string_view> not_offered{};  // unset options that the software lacks, so that a plan refuses them
  bool operator==(const Relevance&) const = default;
  bool concerns(const Parameter& parameter) const;
};

// For the experiment as if it were of this kind. Values of the wrong type count as unset. `stack`: what the experiment
// runs on if it does not name its software; empty: unknown, so that every option may be offered.
Relevance relevance(const Experiment& experiment, Kind kind, std::optional<model::Stack> stack = {});

}  // namespace mw::experiment
