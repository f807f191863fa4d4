// SPDX-License-Identifier: Apache-2.0
// Points that were not played, from the cost model: one load point of an experiment, and requests that were recorded
// somewhere, served by another server (chips, mesh, KV type, caches). One thread; everything it gives is predicted.
// All throw Error, of kind cancelled where `stop` came first.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/recording.h"
#include "core/hardware/catalogue.h"

namespace mw::compare {

struct LoadPoint {
  double request_rate = 1;  // infinity: all at once
  int input_len = 512;
};
enum class Queueing { as_offered, none };  // none: one request at a time
// The experiment's sweep up to this point, so that caches are as warm as they were there. `output_len` 0: the sweep's.
formats::BenchPoint simulated_point(const experiment::Experiment& experiment, const LoadPoint& point,
                                    const hardware::Catalogue& catalogue, Queueing queueing = Queueing::as_offered,
                                    const std::stop_token& stop = {});

// The document with keys changed; target.id takes its mesh and stack along where they no longer fit, so that a mesh is
// to be given after it.
experiment::Experiment counterfactual(experiment::Experiment experiment,
                                      const std::vector<std::pair<std::string, std::string>>& changes,
                                      const hardware::Catalogue& catalogue);
// What a reader would call the difference: "v6e-8, KV fp8"; empty where there is none.
std::string difference(const experiment::Experiment& recorded, const experiment::Experiment& server);

using OnReplayed = std::function<void(long requests, long of)>;
// Every point of the recording with its requests at their intended moments (closed loops: by as many users), under the
// recording's loads. Notes say what could not be repeated.
formats::BenchSet replay(const Recording& recording, const experiment::Experiment& server,
                         const hardware::Catalogue& catalogue, const OnReplayed& progress = {},
                         const std::stop_token& stop = {});
// Into the store, as a finished run of that server whose source is "predicted".
store::RunId record_replay(store::Store& store, const experiment::Experiment& server, formats::BenchSet predicted);

}  // namespace mw::compare
