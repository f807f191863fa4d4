// SPDX-License-Identifier: Apache-2.0
// Plans an experiment: batch sizes that fit, cost including serving, comparison with a measurement and with another
// plan. Used by the command line and the window. Thread-safe.
#pragma once
#include <optional>

#include "core/plan/document/diagnostics.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/experiment/budget.h"
#include "core/plan/experiment/carried_assumptions.h"
#include "core/plan/experiment/costing.h"
#include "core/plan/experiment/total_cost.h"
#include "core/train/settings.h"

namespace mw::plan {

struct SizePoint {
  SizeCase size;
  Plan plan;
  std::optional<std::int64_t> rows_in_budget{};
};

// A candidate sequence length of the measured run and its predicted step time.
struct LengthGuess {
  int max_len = 0;
  double seconds = 0, off = 0;  // predicted; relative error against the measurement
};

struct ExperimentPlan {
  Request request;
  Plan plan;  // for a size experiment: the first workload at the largest batch
  std::vector<SizePoint> points;
  std::vector<LengthGuess> guesses;              // nearest first
  double measured_step = 0, measured_hours = 0;  // 0: not given
  double measured_usd() const { return measured_hours * plan.run.usd_per_hour; }
  std::string measured_source;
  std::optional<Tco> tco, measured_tco;  // for predicted and measured hours, if serve.target is set
  std::vector<double> serve_hours;
  std::optional<CostPlan> cost{};               // with cost.requests_per_day
  std::optional<train::Trainable> trainable{};  // of a training
  std::optional<BudgetPlan> budget{};           // of a training with a budget.*
  std::vector<Problem> problems;                // of the diagnosis, then of the comparison with the measurement
  Diagnosis diagnosis;
  std::optional<CarriedAssumptions> carried{};  // set by a caller that moved the document to another target
};
enum class ReadData { no, yes };  // no: on this machine every row is taken as long as it may be
// Plans an experiment with model.path or model.id; on this machine by the layout of the engine's buffers and the
// lengths of its rows. Throws Error if no plan is possible.
ExperimentPlan plan_experiment(const experiment::Experiment& experiment, const PlanContext& context,
                               ReadData read_data = ReadData::yes, const std::stop_token& stop = {});
// Plans it, if it can be planned, and returns the diagnosis with that plan.
Diagnosis diagnostics(const experiment::Experiment& experiment, const PlanContext& context,
                      const std::stop_token& stop = {});

// Compares two plans of the same work. Ratios above 1: the other plan is slower or more expensive.
struct PlanComparison {
  std::string name, other;
  double step_ratio = 0, run_ratio = 0, cost_ratio = 0;  // predicted
  struct Measured {                                      // of the two measured runs; 0: unknown
    double step_ratio = 0, run_ratio = 0, cost_ratio = 0;
    double usd = 0, other_usd = 0;  // measured hours at the prices of the plans
    std::string source{}, other_source{};
  };
  std::optional<Measured> measured{};
  struct Row {
    double serve_hours = 0, usd = 0, other_usd = 0;
    bool measured = false;  // whether training hours are measured rather than predicted
    double ratio() const { return usd > 0 ? other_usd / usd : 0; }
  };
  std::vector<Row> rows;
  std::optional<double> break_even_hours;  // of serving; empty: never
};
PlanComparison against(const ExperimentPlan& plan, const ExperimentPlan& other);

Json planned_json(const ExperimentPlan& planned);  // printed by `plan --json`
// {category: bytes, ..., "total", "devices": [{category: bytes, "total"}]} of the fullest device, with the categories
// that are 0; `devices` only for several devices of the engine.
Json memory_json(const DeviceMemory& memory);
// One line for each of several devices of the engine: "device 3 (fsdp 1, tp 1)", total and largest categories.
std::vector<std::string> device_lines(const mesh::Mesh& mesh, const DeviceMemory& memory);
Json step_json(const StepTime& step);
Json against_json(const PlanComparison& comparison);
std::string planned_text(const ExperimentPlan& planned);  // text tables
std::string against_text(const PlanComparison& comparison);

}  // namespace mw::plan
