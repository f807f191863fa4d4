// SPDX-License-Identifier: GPL-3.0-or-later
// Shipped examples and the errors of plans.
#pragma once
#include <string>

#include "core/plan/experiment/experiment_plan.h"
#include "tests/shipped.h"

namespace mw::test {

inline experiment::Experiment shipped_example(const std::string& name) {
  return experiment::Experiment::load(std::string(MW_RESOURCES "/examples/") + name + ".json");
}

// Why the experiment cannot be planned; without an id if it can.
inline Problem error_of_plan(const experiment::Experiment& e) {
  try {
    plan::plan_experiment(e, context());
  } catch (const Error& error) {
    return error.problem();
  }
  return {};
}

}  // namespace mw::test
