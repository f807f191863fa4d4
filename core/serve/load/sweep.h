// SPDX-License-Identifier: Apache-2.0
// A latency sweep over request rates and input lengths. Each repeat of a length is a server of its own: it starts with
// an empty prefix cache and takes the rates in the order of the settings. Every point is reported when it is complete.
// Not thread-safe.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/bound_experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/hardware/catalogue.h"
#include "core/serve/load/load.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

// The request rate that a server can sustain within an SLO. Pure functions; any thread.

struct Capacity {                          // requests/s; kUnknown: none
  double at_slo = formats::kUnknown;       // highest rate that meets the SLO, interpolated to the next measured rate
  double knee = formats::kUnknown;         // of the latency curve: farthest below its chord
  bool beyond_last = false;                // the highest measured rate meets the SLO: at_slo is a lower bound
  std::vector<double> failing_below = {};  // measured rates below at_slo that miss the SLO, ascending
  std::vector<double> too_short = {};      // rates above it that seem to meet the SLO, but is_too_short(), ascending
};
// `same_length`: points of one input length in any order. An overloaded point never meets the SLO, and one that is too
// short shows neither a capacity nor a knee.
Capacity find_capacity(const std::vector<formats::BenchPoint>& same_length, const options::Slo& slo);
// "meets the SLO to 6.5 requests/s, but not at 1 and 2 requests/s".
std::string slo_text(const Capacity& capacity);

// A point with more requests has no results of single requests where the backend can measure without keeping them.
inline constexpr int kMostKeptRequests = 100'000;

struct SweepSettings {
  std::vector<double> request_rates{1, 2, 4, 8};  // requests/s; infinity: a burst
  std::vector<int> input_lens{512};
  options::LoadSettings load;                         // of every point, except rate, input length, seed and salt
  std::vector<std::pair<int, int>> num_prompts_at{};  // input length, requests: instead of load.num_prompts
  int repeats = 1;                                    // of every point, with different seeds
  options::Slo slo;
  int num_prompts(int input_len) const;                                               // of each point of this length
  int fewest_prompts() const;                                                         // of any point
  bool keeps_cache() const { return load.prompts == options::PromptMode::replayed; }  // between the rates
  std::vector<double> rates() const;  // as points have them: kUnknown in a closed loop, infinity for a burst
  long points() const { return static_cast<long>(rates().size() * input_lens.size()) * repeats; }
  long requests() const;  // of all points
};

struct SweepCallbacks {
  std::function<void(const formats::BenchPoint&)> point;
  std::function<void(const std::string& phase, long done, long total)> progress = {};  // requests of the whole sweep
  std::function<void()> before_point = {};                                             // may block, e.g. to pause
};
// Runs all points that are not in `done` (same rate and length). A server that keeps its cache takes the finished
// rates before an unfinished one again, without reporting them, so that a resumed sweep has the points of an
// uninterrupted one. Returns false if it was stopped; the interrupted point is dropped. Throws Error LOAD
// before the first point if any point is invalid.
bool run_sweep(const SweepSettings& settings, LoadBackend& backend, const std::vector<formats::BenchPoint>& done,
               const SweepCallbacks& callbacks, std::stop_token stop);

// The settings of a sweep from an experiment: load, scheduler, backend and the conditions that a result records.
// sweep.backend; auto: engine on cpu, else model
options::SweepBackend sweep_backend(const experiment::BoundExperiment& config);

// Throws SWEEP for an invalid or missing value.
SweepSettings sweep_settings(const experiment::BoundExperiment& config);
// Sets only the block size of the KV cache; the serving backend sets its layout.
SchedulerSettings scheduler_settings(const options::Serving& serve);
// Returns a result set without points: name, model, target, chips, price and conditions.
formats::BenchSet sweep_facts(const experiment::BoundExperiment& config, const hardware::Catalogue& catalogue);

}  // namespace mw::serve
