// SPDX-License-Identifier: Apache-2.0
// A latency sweep: request rates x input lengths, the same loads on the engine, the simulator or a server over HTTP.
// Points are reported as they are complete; a stop keeps them. One thread drives a sweep.
#pragma once
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/load/load.h"

namespace mw::serve {

struct Slo {  // ms; 0: none
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;
  bool any() const { return ttft_ms > 0 || tpot_ms > 0 || e2e_ms > 0; }
};

struct SweepSettings {
  std::vector<double> request_rates{1, 2, 4, 8};  // infinity: a burst
  std::vector<int> input_lens{512};
  LoadSettings load;  // the rest of every point: output length, prompts, arrival, seed
  int repeats = 1;    // of every point, with other seeds
  Slo slo;
};

// Whatever serves a load. Records every request, failed ones too.
struct LoadResult {
  std::vector<formats::RequestResult> requests;  // warm-ups left out
  std::vector<formats::StepTime> steps{};        // where it tells them
  std::vector<formats::LoadSample> timeline{};   // empty where the server does not say
  double duration_s = 0;                         // first intended arrival to last end
  double prefix_hits = formats::kUnknown;
  std::vector<std::string> warnings{};  // "the client was late: ..."
};
class LoadBackend {
 public:
  virtual ~LoadBackend() = default;
  using OnProgress = std::function<void(long done, long total)>;
  // Plays one load to its end (or the stop: what is complete by then). Throws Error where nothing can be served at all.
  virtual LoadResult play(const Load& load, const OnProgress& progress, std::stop_token stop) = 0;
};

// All numbers of a point from its requests (records.cpp): completed ones only; failed ones are counted, never timed.
formats::BenchPoint summarise(const Load& load, const LoadResult& played, const Slo& slo);
// Whether the server kept up: queue and TTFT over the run's time (slope with its interval), served against offered.
enum class Saturation { stable, backlogged, overloaded };
std::string_view to_string(Saturation saturation);
Saturation judge_saturation(const Load& load, const LoadResult& played);

// The highest rate that meets the SLO and is not overloaded, interpolated linearly up to the next measured rate; and
// the knee of the latency curve (largest distance from the chord). kUnknown where there is none.
struct Capacity {
  double at_slo = formats::kUnknown, knee = formats::kUnknown;
  bool beyond_last = false;                // the highest measured rate meets the SLO: at_slo is a lower bound
  std::vector<double> failing_below = {};  // measured rates below at_slo that do not meet the SLO, ascending
};
Capacity find_capacity(const std::vector<formats::BenchPoint>& same_length, const Slo& slo);

struct SweepCallbacks {
  std::function<void(const formats::BenchPoint&)> point;
  std::function<void(const std::string& phase, long done, long total)> progress = {};
  std::function<void()> between = {};  // before every point: may wait
};
// Points that `done` has already (same rate and length) are not played again. False if it was stopped.
bool run_sweep(const SweepSettings& settings, LoadBackend& backend, const std::vector<formats::BenchPoint>& done,
               const SweepCallbacks& callbacks, std::stop_token stop);

}  // namespace mw::serve
