// SPDX-License-Identifier: GPL-3.0-or-later
// Rows to calibrate with whose truth is known: steps as if an efficiency were so many times its default.
#pragma once
#include "core/plan/calibrate.h"
#include "tests/shipped.h"

namespace mw::plan::test {
using mw::test::catalogue;

inline Request small(int batch, int len, const std::string& target = "v5e-1") {
  Request r;
  r.model = model::catalogue("gemma3-1b");
  r.target = catalogue().target(target);
  r.mesh.axes = {{"fsdp", 1}};
  set_stack(r, Stack::maxtext);
  r.method = Method::full;
  r.train.batch = batch;
  r.train.epochs = 1;
  r.lengths.max_len = len;
  r.lengths.count = 1000;
  return r;
}

// Steps as if large products reached `matmul` times their default.
inline std::vector<Measurement> measured(double matmul, Purpose purpose, int count = 5,
                                         const std::string& target = "v5e-1") {
  std::vector<Measurement> rows;
  for (int i = 0; i < count; ++i) {
    Measurement m;
    m.id = (target == "v5e-1" ? "row " : target + " row ") + std::to_string(i);
    m.purpose = purpose;
    m.unit = "s/step";
    m.request = small(1 + i, 512 << (i % 3), target);
    Request slower = m.request;
    slower.efficiencies.matmul.value *= matmul;
    m.value = predict(slower).step.seconds.value;
    rows.push_back(std::move(m));
  }
  return rows;
}

}  // namespace mw::plan::test
