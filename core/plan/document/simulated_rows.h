// SPDX-License-Identifier: Apache-2.0
// Predicts measurements of servers by simulation, with the efficiencies of their requests.
#pragma once
#include <memory>

#include "core/formats/results/bench_result.h"
#include "core/plan/calibration/calibrate.h"

namespace mw::plan {

// On a server with an empty prefix cache. Throws the errors of ServeStepModel. Thread-safe.
formats::BenchPoint simulated_row(const Measurement& row);
double figure_of(const formats::BenchPoint& point, MeasuredQuantity what);  // in the unit of files

// Simulates each run once for the rows that measure different figures of it. Of one thread.
class RowSimulator {
 public:
  RowSimulator();
  ~RowSimulator();
  const formats::BenchPoint& point(const Measurement& row);
  double figure(const Measurement& row) { return figure_of(point(row), row.what); }

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

// shipped_fit_options() with the simulator.
FitOptions simulated_fit_options();

}  // namespace mw::plan
