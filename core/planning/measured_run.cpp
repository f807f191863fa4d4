// SPDX-License-Identifier: Apache-2.0
#include "core/planning/measured_run.h"

#include <algorithm>
#include <cmath>

#include "core/planning/plan_request.h"

namespace mw::planning {
namespace {

std::vector<double> rates(const store::Store& store, const store::RunId& run) {
  std::vector<double> out;
  for (const store::StoredEvent& e : store.events(run))
    if (const auto* m = std::get_if<event::Metric>(&e.event.body))
      if (m->name == "train/tokens_per_second" && m->step > 1 && std::isfinite(m->value) && m->value > 0)
        out.push_back(m->value);
  return out;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

plan::Measurement measured_run(const store::Store& store, const store::RunId& run, const hardware::Catalogue& catalogue,
                               plan::MeasurementUse purpose) {
  const auto row = store.find(run);
  if (!row)
    throw Error(
        {.id = "RUN-UNKNOWN", .message = "the run does not exist", .place = run, .expected = "an id of the run store"});
  const std::vector<double> steps = rates(store, run);
  if (steps.size() < 2)
    throw Error({.id = "CALIBRATION",
                 .message = "the run has too few measured training steps; calibration needs at least three",
                 .place = run,
                 .found = std::to_string(row->steps_done) + " steps",
                 .fix = "train for more steps, or choose another run"});
  plan::Measurement m;
  m.id = run;
  m.purpose = purpose;
  m.what = plan::MeasuredQuantity::real_tokens_per_second;
  m.unit = "real tokens/s";
  m.value = median(steps);
  m.request = plan_request(store.experiment(run), catalogue);
  if (m.request.target.chip.vendor != hardware::Vendor::cpu || m.request.work != plan::Work::train)
    throw Error({.id = "CALIBRATION",
                 .message = "calibration accepts only training runs of this machine",
                 .place = run,
                 .found = "an experiment for " + m.request.target.id,
                 .expected = "kind train on cpu"});
  // Fitting starts from the default efficiencies, not from an earlier calibration.
  m.request.efficiencies = plan::default_efficiencies(m.request.target, m.request.stack);
  m.request.calibrated.clear();
  m.source = run + ", " + row->created;
  const auto rows = static_cast<double>(row->steps_done * m.request.train.batch * m.request.train.accumulation);
  if (row->tokens > 0 && rows > 0) {
    plan::Lengths& l = m.request.lengths;
    const double mean = std::min<double>(l.max_len, static_cast<double>(row->tokens) / rows);
    l = {
        .histogram = {}, .max_len = std::max(1, static_cast<int>(std::lround(mean))), .count = l.count, .rows = l.rows};
    m.assumed = {"every row as long as the mean, " + std::to_string(l.max_len) + " tokens"};
  }
  return m;
}

}  // namespace mw::planning
