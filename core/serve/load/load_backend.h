// SPDX-License-Identifier: Apache-2.0
// Interface of what serves a load: the engine, a simulation or a server over HTTP.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/load/load.h"

namespace mw::serve {

using options::Slo;

struct LoadResult {
  std::vector<formats::RequestResult> requests;  // including failed ones, without warm-ups
  std::vector<formats::StepTime> steps{};        // empty if the backend does not time its steps
  std::vector<formats::LoadSample> timeline{};   // empty if the server does not report its state
  double duration_s = 0;                         // from the first intended arrival to the last end
  double prefix_hits = formats::kUnknown;        // share of prompt tokens found in the prefix cache
  std::vector<std::string> warnings{};           // e.g. that the client sent requests late
};

class LoadBackend {
 public:
  virtual ~LoadBackend() = default;
  // The next load finds a server that has just started: with an empty prefix cache. A server over HTTP stays as it is.
  virtual void restart() {}
  using OnProgress = std::function<void(long done, long total)>;  // requests
  // Runs one load to its end, or to the stop: then the result has the requests that finished before. Throws Error if no
  // request can be served.
  virtual LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) = 0;
  // The metrics of a load without its requests, in memory that grows only with the requests in flight: percentiles
  // within QuantileSketch::kError. Empty if the backend cannot, or was stopped.
  virtual std::optional<formats::BenchPoint> measure(const LoadSettings&, const Slo&, const OnProgress&,
                                                     std::stop_token) {
    return std::nullopt;
  }
};

}  // namespace mw::serve
