// SPDX-License-Identifier: Apache-2.0
// Seconds of a step from rooflines: products against the matrix units, everything else against memory, collectives
// against links. Any thread.
#pragma once
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

StepTime train_time(const LocalModel& model);
StepTime forward_time(const LocalModel& model);
// `rows` sequences that read `context` tokens each and write one; `fixed` seconds per step come on top.
StepTime decode_time(const LocalModel& model, double rows, double context);
// `rows` prompts of `len` tokens at once.
StepTime prefill_time(const LocalModel& model, double rows, double len);

// The collectives behind those times. The request's own step; element sizes filled in; as its stack makes them.
mesh::StepShape step_shape(const LocalModel& model);
mesh::StepShape complete_step_shape(mesh::StepShape shape, const Request& request);
std::vector<mesh::Collective> step_collectives(const Request& request, const model::Config& config,
                                               const mesh::Placement& placement, const mesh::StepShape& shape);

}  // namespace mw::plan
