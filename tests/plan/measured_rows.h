// SPDX-License-Identifier: GPL-3.0-or-later
// Rows to calibrate with whose truth is known: steps as if an efficiency were so many times its default.
#pragma once
#include "core/model/catalogue.h"
#include "core/plan/calibration/calibration_file.h"
#include "tests/shipped.h"

namespace mw::test {

inline plan::Request small(int batch, int len, const std::string& target = "v5e-1") {
  plan::Request r;
  r.model = model::catalogue_config("gemma3-1b");
  r.target = context().catalogue.target(target);
  r.mesh.axes = {{"fsdp", 1}};
  plan::set_stack(r, model::Stack::maxtext);
  r.method = model::TrainMethod::full;
  r.train.batch = batch;
  r.train.epochs = 1;
  r.lengths.max_len = len;
  r.lengths.count = 1000;
  return r;
}

// Steps as if large products reached `matmul` times their default.
inline std::vector<plan::Measurement> measured(double matmul, plan::MeasurementUse purpose, int count = 5,
                                               const std::string& target = "v5e-1") {
  std::vector<plan::Measurement> rows;
  for (int i = 0; i < count; ++i) {
    plan::Measurement m;
    m.id = (target == "v5e-1" ? "row " : target + " row ") + std::to_string(i);
    m.purpose = purpose;
    m.unit = "s/step";
    m.request = small(1 + i, 512 << (i % 3), target);
    plan::Request slower = m.request;
    slower.efficiencies.matmul.value *= matmul;
    m.value = plan::predict(slower).step.seconds.value;
    rows.push_back(std::move(m));
  }
  return rows;
}

}  // namespace mw::test
