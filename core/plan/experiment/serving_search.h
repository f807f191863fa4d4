// SPDX-License-Identifier: Apache-2.0
// Searches servers for a serving experiment: meshes, replicas and limits. A cell of the search is the sweep of the
// document with the cell's edits, to the last digit. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/plan/document/plan_request.h"
#include "core/plan/search/search.h"
#include "core/serve/load/sweep.h"

namespace mw::plan {

struct ServingCell {
  PlanChoice choice;
  std::vector<lint::Edit> edits;              // of the document
  std::string refusal{};                      // why it is not simulated; empty: it is
  std::vector<formats::BenchPoint> points{};  // of its sweep in its order, without single requests
};

// Equal replicas on equal parts of the devices that the document's server and its replicas have, as far as the
// catalogue has such targets. `own`: the request of the document. Their meshes have the axes of its mesh.
std::vector<Request> other_replicas(const experiment::Experiment& experiment, const Request& own,
                                    const PlanContext& context);

// Every legal mesh of the document's target and of other replicas, with the document's limits.
std::vector<ServingCell> serving_meshes(const experiment::Experiment& experiment, const PlanContext& context);

// Simulates the cells without a refusal on `options.threads`, with the cost model whatever sweep.backend says. A cell
// whose sweep cannot run gets its refusal. options.progress counts requests. Throws the errors of sweep_settings(), and
// cancelled() after a stop.
void simulate(std::vector<ServingCell>& cells, const experiment::Experiment& experiment, const PlanContext& context,
              const SearchOptions& options, const std::stop_token& stop);

// `candidate`: the steady state of the cell.
SweepFigures sweep_figures(const ServingCell& cell, const serve::SweepSettings& sweep, const Candidate& candidate);

}  // namespace mw::plan
