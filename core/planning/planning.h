// SPDX-License-Identifier: Apache-2.0
// A plan with everything that is said about it: batch sizes that fit, cost with serving, what a measurement says, and
// against another plan. For command line and pages alike. Any thread.
#pragma once
#include <optional>

#include "core/plan/time/tco.h"
#include "core/planning/diagnostics.h"
#include "core/planning/plan_request.h"

namespace mw::planning {

struct SizePoint {
  SizeCase size;
  plan::Plan plan;
};

// A length that the measured run may have had, and what a step of it would take.
struct LengthGuess {
  int max_len = 0;
  double seconds = 0, off = 0;  // predicted; relative to the measurement
};

struct ExperimentPlan {
  plan::Request request;
  plan::Plan plan;  // of a size experiment: its first workload at its largest batch
  std::vector<SizePoint> points;
  std::vector<LengthGuess> guesses;              // nearest first
  double measured_step = 0, measured_hours = 0;  // 0: not given
  std::string measured_source;
  std::optional<plan::Tco> tco, measured_tco;  // of predicted and of measured hours, where serve.target is given
  std::vector<double> serve_hours;
  std::vector<Problem> problems;  // of the diagnosis, then what a measurement says
  Diagnosis diagnosis;
};
ExperimentPlan plan_experiment(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue);

// Two plans of the same work: this one's advantage. Ratios above 1: the second takes or costs more.
struct PlanComparison {
  std::string name, other;
  double step_ratio = 0, cost_ratio = 0;
  struct Row {
    double serve_hours = 0, usd = 0, other_usd = 0;
    bool measured = false;  // training hours as measured, not predicted
    double ratio() const { return usd > 0 ? other_usd / usd : 0; }
  };
  std::vector<Row> rows;
  std::optional<double> break_even_hours;  // of serving; none: never
};
PlanComparison against(const ExperimentPlan& plan, const ExperimentPlan& other);

Json planned_json(const ExperimentPlan& planned);  // printed by `plan --json`
Json against_json(const PlanComparison& comparison);
std::string planned_text(const ExperimentPlan& planned);  // tables for people
std::string against_text(const PlanComparison& comparison);

}  // namespace mw::planning
