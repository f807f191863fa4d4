// SPDX-License-Identifier: Apache-2.0
// Predicted minus measured, term by term: seconds of a training step, memory at the peak by category, and the stages of
// served requests. Thread-safe.
#pragma once
#include <stop_token>

#include "core/compare/replay.h"
#include "core/plan/request/estimate.h"

namespace mw::compare {

enum class ResidualGroup { step, memory, serving };

struct Residual {
  ResidualGroup group = ResidualGroup::step;
  std::string key{};    // "step.compute", "memory.activations", "1024/64@4.queue_ms"
  std::string label{};  // "compute (matrix products)"
  std::string unit{};   // "s", "bytes", "ms", "tokens/s"
  std::optional<plan::Estimate> predicted{};
  std::optional<double> measured{};
  // Predicted minus measured; empty if either is missing.
  std::optional<double> difference() const;
  std::optional<double> relative() const;  // to the measured value; empty if that is 0
  bool is_outside() const;                 // the measured value lies outside the interval of the prediction
};

struct Residuals {
  std::vector<Residual> rows{};
  std::vector<std::string> notes{};  // how it was predicted, and what was not measured
};

// Predicts with the calibration and the rates in force, but without what the run itself has measured of this machine;
// memory as it was recorded at the start of the run, if it was. A step is the median one, as in plans and reports.
// Throws Error RESIDUALS for a run without a document of its own or without measurements and for a failed training, the
// errors of plan_request(), and cancelled().
Residuals residuals(const ComparedRun& run, const plan::PlanContext& context, const std::stop_token& stop = {});

Json to_json(const Residuals& residuals);
std::string to_text(const Residuals& residuals);  // a table and the notes
// A value in its unit: "1.24 GiB", "9.8 s".
std::string value_text(const Residual& row, double value);

}  // namespace mw::compare

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::compare::ResidualGroup>{"step", "memory", "serving"};
