// SPDX-License-Identifier: Apache-2.0
// Predicts recorded requests on another server (chips, mesh, KV type, caches) with the cost model. Not thread-safe. All
// functions throw Error, of kind cancelled after a stop.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/recording.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/simulation/simulated_server.h"

namespace mw::compare {

using serve::simulated_point;

// Applies changes to the document. A change of target.id also replaces a mesh and stack that do not fit the new target,
// so a change of the mesh must follow it.
experiment::Experiment counterfactual(experiment::Experiment experiment,
                                      const std::vector<std::pair<std::string, std::string>>& changes,
                                      const plan::PlanContext& context);
// Describes the changed settings: "v6e-8, KV fp8"; empty if nothing changed.
std::string difference(const experiment::Experiment& recorded, const experiment::Experiment& server);

using OnReplayed = std::function<void(long requests, long total)>;
// Simulates every point of the recording with its requests at their intended times (closed loops: with the same number
// of users). The notes of the set list what could not be reproduced.
formats::BenchSet replay(const Recording& recording, const experiment::Experiment& server,
                         const plan::PlanContext& context, const OnReplayed& progress = {},
                         const std::stop_token& stop = {});
// Stores the result as a finished run of that server with source "predicted". `explained`: to_json() of its
// explanation, or null.
store::RunId record_replay(store::Store& store, const experiment::Experiment& server, formats::BenchSet predicted,
                           const Json& explained = {});

}  // namespace mw::compare
