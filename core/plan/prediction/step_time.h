// SPDX-License-Identifier: Apache-2.0
// Seconds of a step from rooflines: matrix products against the peak of the chip, other operations against memory
// bandwidth, collectives against links. Any thread.
#pragma once
#include <memory>

#include "core/plan/request/lengths.h"
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

// The rows of a micro-batch on each device.
RowStatistics train_rows(const LocalModel& model);
StepTime train_time(const LocalModel& model);
StepTime forward_time(const LocalModel& model);
// One decode step of `rows` sequences that read `context` cached tokens each.
StepTime decode_time(const LocalModel& model, double rows, double context);
// `rows` prompts of `len` tokens in one pass.
StepTime prefill_time(const LocalModel& model, double rows, double len);

// seconds.value of the above for `model` as its request is changed, without text: collectives are listed once for all
// plans that have the same. Not thread-safe.
class StepSeconds {
 public:
  explicit StepSeconds(const LocalModel& model);  // which must outlive this object
  ~StepSeconds();
  double train(const RowStatistics& rows);  // train_rows()
  double forward();
  double decode(double rows, double context);
  double prefill(double rows, double len);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The collectives of those times: the shape of the request's step, a shape with the request's element sizes, and the
// list of collectives as the request's stack issues them.
mesh::StepShape step_shape(const LocalModel& model);
mesh::StepShape complete_step_shape(mesh::StepShape shape, const Request& request);
std::vector<mesh::Collective> step_collectives(const Request& request, const model::Config& config,
                                               const mesh::Placement& placement, const mesh::StepShape& shape);

double round_up(double n, double to);  // to a multiple of `to`, such as the width of the matrix unit

}  // namespace mw::plan
