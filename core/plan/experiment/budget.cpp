// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/budget.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/plan/request/lengths.h"

namespace mw::plan {
namespace {

struct Limit {
  const char* key;
  double seconds;
};

// The limit that is reached first, as time. Empty if there is none.
std::optional<Limit> tightest(const options::Budget& budget, const RunTotals& run) {
  std::optional<Limit> out;
  const auto limit = [&](const char* key, double given, double per_second) {
    if (given > 0 && per_second > 0 && (!out || given / per_second < out->seconds)) out = {key, given / per_second};
  };
  limit("budget.hours", budget.hours, 1.0 / 3600);
  limit("budget.usd", budget.usd, run.usd_per_hour / 3600);
  limit("budget.tokens", budget.tokens, run.tokens_per_second);
  return out;
}

}  // namespace

std::optional<BudgetPlan> budget_plan(const options::Budget& budget, const Request& r, const Plan& plan) {
  const auto limit = tightest(budget, plan.run);
  const double step = plan.step.seconds.value;
  if (!limit || step <= 0) return std::nullopt;
  const bool tokens = limit->key == std::string_view("budget.tokens");  // compilation takes none
  const double compile = plan.compile.value;
  BudgetPlan out{.bound = limit->key};
  out.steps = static_cast<std::int64_t>(std::max(0.0, std::floor((limit->seconds - (tokens ? 0 : compile)) / step)));
  const auto steps = static_cast<double>(out.steps);
  out.hours = (steps * step + compile) / 3600;
  out.usd = out.hours * plan.run.usd_per_hour;
  out.tokens = steps * step * plan.run.tokens_per_second;
  out.fraction = plan.run.steps > 0 ? steps / static_cast<double>(plan.run.steps) : 0;
  const double epoch_rows = r.train.epoch_rows > 0
                                ? r.train.epoch_rows
                                : row_statistics(r.lengths, static_cast<double>(r.train.batch)).batches_rows;
  if (epoch_rows > 0)
    out.epochs = steps * static_cast<double>(r.train.batch) * std::max(1, r.train.accumulation) / epoch_rows;
  return out;
}

std::optional<std::int64_t> rows_in_budget(const options::Budget& budget, const Plan& plan, std::int64_t batch) {
  const auto limit = tightest(budget, plan.run);
  const double seconds = plan.step.seconds.value;
  if (!limit || seconds <= 0) return std::nullopt;
  return static_cast<std::int64_t>(std::floor(limit->seconds / seconds)) * batch;
}

std::string to_text(const BudgetPlan& b) {
  return counted(count_text(static_cast<double>(b.steps)), "step") + " in " + to_text(Seconds(b.hours * 3600)) +
         (b.usd > 0 ? ", " + to_text(Usd(b.usd)) : std::string());
}

Json to_json(const BudgetPlan& b) {
  const auto known = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
  return {{"bound", b.bound},    {"steps", b.steps},   {"epochs", known(b.epochs)},    {"hours", b.hours},
          {"usd", known(b.usd)}, {"tokens", b.tokens}, {"fraction", known(b.fraction)}};
}

}  // namespace mw::plan
