// SPDX-License-Identifier: Apache-2.0
// The steps or rows that fit into a budget of hours, dollars or tokens, by the plan. Thread-safe.
#pragma once
#include <optional>
#include <string>

#include "core/base/json.h"
#include "core/experiment/bound_experiment.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

struct BudgetPlan {
  std::string bound;  // key of the limit that is reached first: "budget.hours"
  std::int64_t steps = 0;
  double epochs = 0;          // 0: the rows of an epoch are not known
  double hours = 0, usd = 0;  // of these steps, with compilation; usd 0: no price
  double tokens = 0;          // of these steps, without padding
  double fraction = 0;        // of the experiment's steps; above 1: the whole run fits
  bool holds_the_run() const { return fraction >= 1; }
};
// The steps of a training that fit. Empty without a limit that can be applied: dollars need a price.
std::optional<BudgetPlan> budget_plan(const options::Budget& budget, const Request& request, const Plan& plan);
// The rows of whole batches of a rollout or forward that fit; empty without a limit that can be applied.
std::optional<std::int64_t> rows_in_budget(const options::Budget& budget, const Plan& plan, std::int64_t batch);

std::string to_text(const BudgetPlan& budget);  // "380 steps in 0.998 h, $16.77"
Json to_json(const BudgetPlan& budget);         // {bound, steps, epochs, hours, usd, tokens, fraction}

}  // namespace mw::plan
