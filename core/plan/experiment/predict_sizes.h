// SPDX-License-Identifier: Apache-2.0
// Predicts the points of a size experiment. Thread-safe.
#pragma once
#include <functional>
#include <stop_token>

#include "core/plan/document/plan_request.h"
#include "core/serve/load/sizing.h"

namespace mw::plan {

struct PredictedSizes {
  options::Sizing size;
  std::vector<SizeCase> cases;  // by workload, then by batch, ascending and without repetitions
  Request plain, adapted;       // without and with LoRA adapters
  Bytes capacity() const { return Bytes(std::llround(plain.target.chip.memory.value)); }
};

// Throws Error for everything that predict_sizes() would refuse: an unknown target, a mesh that does not cover it, an
// invalid batch, rows beyond the context of the model.
PredictedSizes predicted_sizes(const experiment::Experiment& experiment, const PlanContext& context);

// The time of a batch: `request` is one of the above, with_case().
serve::MeasuredSize::PredictedTime predicted_time(const Request& request, const Plan& plan);

// Calls `point` for every case, first without and then with adapters: time with its interval if the batch fits, memory,
// and the largest batch that fits if it does not. Returns false if it was stopped.
bool predict_sizes(const PredictedSizes& sizes, const std::function<void(const serve::MeasuredSize&)>& point,
                   const std::stop_token& stop = {});

}  // namespace mw::plan
