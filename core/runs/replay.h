// SPDX-License-Identifier: Apache-2.0
// Points that were not played, from the cost model: one load point of an experiment, and requests that were recorded
// somewhere, served by another server (chips, mesh, KV type, caches). One thread; everything it gives is predicted.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/formats/bench_result.h"
#include "core/hardware/catalogue.h"
#include "core/runs/experiment.h"
#include "core/serve/load.h"

namespace mw::runs {

struct LoadPoint {
  double request_rate = 1;  // infinity: all at once
  int input_len = 512;
};
enum class Queueing { as_offered, none };  // none: one request at a time
// The experiment's sweep up to this point, so that caches are as warm as they were there. `output_len` 0: the sweep's.
formats::BenchPoint simulated_point(const Experiment& experiment, const LoadPoint& point,
                                    const hardware::Catalogue& catalogue, Queueing queueing = Queueing::as_offered);

// The document with keys changed; target.id takes its mesh and stack along where they no longer fit.
Experiment counterfactual(Experiment experiment, const std::vector<std::pair<std::string, std::string>>& changes,
                          const hardware::Catalogue& catalogue);

struct Replayed {
  formats::BenchPoint recorded, predicted;
  std::vector<std::string> notes;  // what of the recording could not be repeated
};
// The recorded requests at their intended times, with their lengths. Throws Error REPLAY for a point without requests.
Replayed replay(const formats::BenchPoint& recorded, const Experiment& server, const hardware::Catalogue& catalogue);
// The same of a workload file's requests (serve::read_workload); its recorded point has lengths and times only.
Replayed replay(const std::vector<serve::Recorded>& workload, const Experiment& server,
                const hardware::Catalogue& catalogue);

}  // namespace mw::runs
