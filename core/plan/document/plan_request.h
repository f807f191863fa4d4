// SPDX-License-Identifier: Apache-2.0
// Converts an experiment to a request of the planner. Thread-safe.
#pragma once
#include <optional>
#include <stop_token>

#include "core/experiment/bound_experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/prediction/predict.h"

namespace mw::plan {

// Moves the experiment to another target. Keeps the mesh if the device count is the same, else uses the default mesh of
// the stack; stack and sharding follow the new target. A batch that the new mesh does not divide becomes one row per
// device, with as many rows per step. Throws Error for an unknown id.
void retarget(experiment::Experiment& experiment, const std::string& target, const PlanContext& context);
// After a change of target.id from `before`: removes keys_of_target() and sets the nearest legal mesh with the target's
// number of devices, unless the mesh is a default. Does nothing if the target is unknown or the document has errors.
void follow_target(const experiment::Experiment& before, experiment::Experiment& experiment,
                   const PlanContext& context);

// Returns the keys that do not apply after a change of target: measurements; with another chip prices, and with another
// vendor the settings of its stacks.
std::vector<std::string> keys_of_target(const hardware::Target& before, const hardware::Target& after);
// Returns the mesh to plan for: the document's mesh, else the legal mesh of all devices that is nearest to the default
// axis of the stack. Throws Error for an unknown target or stack.
mesh::Mesh planned_mesh(const experiment::Experiment& experiment, const PlanContext& context);
// Whether the engine does the work on this machine, so that times follow from its rates.
bool runs_here(const Request& request);
// Whether its times are those of this processor's class, so that measuring the machine would narrow them.
bool has_shipped_rates(const Request& request);
// The entry of a run for machine.json, without factor, date and id; none if its times do not follow from rates of the
// machine. `context`: without corrections by earlier runs.
std::optional<MeasuredRun> measured_run(const experiment::BoundExperiment& config, const PlanContext& context,
                                        const Request& request);
// Reads no data: on this machine every row is as long as it may be (read_rows()). Throws the first error of validate(),
// or Error with the key of an unknown target, model, stack or spec.
Request plan_request(const experiment::Experiment& experiment, const PlanContext& context);

// One point of a size experiment: a workload at one batch size.
struct SizeCase {
  options::Workload workload{};
  std::int64_t batch = 1;
};
std::vector<SizeCase> size_cases(const options::Sizing& size);  // throws RANGE for an invalid batch
Request with_case(Request request, const options::Sizing& size, const SizeCase& point);

// Counts the rows of one epoch of an experiment, and converts train.epochs to steps. Thread-safe.

// Returns the rows of one epoch after drops, held-out rows and packing. Counts the rows of data.path as the engine does
// if file and tokenizer are available (cached until the file or its keys change), else uses data.lengths, else
// data.rows. Empty if none of them is known.
std::optional<double> epoch_rows(const experiment::BoundExperiment& config, std::stop_token stop = {});

// Returns train.steps, or the steps of train.epochs. Empty if epoch_rows() is not known.
std::optional<long long> training_steps(const experiment::BoundExperiment& config, std::stop_token stop = {});

}  // namespace mw::plan
