// SPDX-License-Identifier: Apache-2.0
// From the document to the plain values of the planner, for targets other than this machine. Any thread.
#pragma once
#include "core/experiment/bind.h"
#include "core/hardware/catalogue.h"
#include "core/plan/time/predict.h"

namespace mw::planning {

// Another machine than this one, or serving: planned by core/plan, not by the engine's own formulas. No: values of
// another type than they should be.
bool planned_elsewhere(const experiment::Experiment& experiment);

// The same work on another target: its mesh stays where it has as many devices, else the default of its stack is taken;
// stack and sharding follow the new target. Throws Error for an unknown id.
void retarget(experiment::Experiment& experiment, const std::string& target, const hardware::Catalogue& catalogue);

// Keys of a document that belong to the one target and mean nothing on the other: prices, what was measured, and what
// follows from the vendor.
std::vector<std::string> keys_of_target(const hardware::Target& before, const hardware::Target& after);
// The mesh that a plan of it is made for: the document's, else every device along the axis that its stack uses. Throws
// Error for an unknown target or stack.
mesh::Mesh planned_mesh(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue);
// By this engine on this machine, whose memory is known to the byte.
bool served_here(const plan::Request& request);

// Throws the first error of validate(), or Error naming the key at fault: an unknown target, model, stack or spec.
plan::Request plan_request(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue);

// One point of a size experiment: a workload at a batch.
struct SizeCase {
  std::string workload;  // "rollout", "forward", "chunked_forward"
  std::int64_t batch = 1;
};
std::vector<SizeCase> size_cases(const experiment::Experiment& experiment);
plan::Request with_case(plan::Request request, const experiment::Experiment& experiment, const SizeCase& size);

}  // namespace mw::planning
