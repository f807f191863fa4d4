// SPDX-License-Identifier: Apache-2.0
// Total cost of an experiment: training, then serving its cost.* for months, for three price classes. Thread-safe.
#pragma once
#include <array>
#include <optional>

#include "core/experiment/bound_experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/total_cost.h"
#include "core/plan/request/request.h"
#include "core/store/store.h"

namespace mw::plan {

enum class CostClass { on_demand, spot, committed };

struct TrainedFor {  // hours of training; taken from the plan, the document's measurement or a run
  double hours = 0;
  std::string source;  // "predicted", "measured: arXiv ...", "run-3"
};
struct CostOfClass {
  CostClass price_class{};
  hardware::Price train, serve;  // usd_per_chip_hour 0: the list has none
  CostInputs inputs;
  std::optional<TotalCost> cost;  // empty without prices, or if no load meets the service level
};
struct CostPlan {
  std::string target{}, serve_target{};  // target: of training; empty: nothing is trained
  TrainedFor training{};
  ServiceLevel level{};
  bool fits = false;                // the model on one server; its capacity is 0 otherwise
  std::vector<Diagnostic> found{};  // about the server and its requests
  ServerCapacity capacity{};
  int input_len = 0, output_len = 0;
  std::array<CostOfClass, 3> classes{};
  double variation = 0;
  std::vector<Swing> swings{};  // on demand
  const CostOfClass& of(CostClass c) const { return classes[static_cast<size_t>(c)]; }
};
// Empty without cost.requests_per_day or a target to serve on (serve.target of a training, target.id of serving).
// `measured`: replaces the predicted hours of training. `training`: the plan of a training that is there already;
// without it a training on this machine reads its data, as `plan` does. Throws the errors of a plan.
std::optional<CostPlan> cost_plan(const experiment::Experiment& experiment, const PlanContext& context,
                                  const std::optional<TrainedFor>& measured = {}, const Plan* training = nullptr,
                                  const std::stop_token& stop = {});

// Two costs of the same work, by price class. Empty: one is always cheaper, or its cost is not known.
struct CostBreakEven {
  std::optional<double> requests_per_day, hours;
};
std::array<CostBreakEven, 3> break_even(const CostPlan& a, const CostPlan& b);

// {"amount", "currency", "per", "source", "date", "age_days", "stale"}; null without a price. "date" and "age_days" are
// null for a price that is not dated.
Json price_json(const Request& request);
Json to_json(const CostPlan& cost);
Json to_json(const std::array<CostBreakEven, 3>& break_even);
std::string to_text(const CostPlan& cost);
std::string load_text(const CostPlan& cost);  // the first lines: what is trained, served, and what a server takes
std::string break_even_text(const CostPlan& a, const CostPlan& b);  // a sentence for each class

struct RunCost {
  double usd = 0;             // so far, of a run in progress
  bool is_predicted = false;  // the time was simulated
  bool operator==(const RunCost&) const = default;
};
// Training: the time of the run. Sweeps: the durations of their points. The price is that of the experiment, else the
// list price of its target. Empty without a price, as on this machine, or without time. Throws errors of the store.
std::optional<RunCost> run_cost(const store::Store& store, const store::RunRow& run, const PlanContext& context);

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::plan::CostClass>{"on demand", "spot", "committed"};
