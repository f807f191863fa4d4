// SPDX-License-Identifier: Apache-2.0
// The requests of one load point: when they arrive and how long they are. Determined by settings and seed alone, so all
// backends (engine, simulation, HTTP) get the same load. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/options/load.h"

namespace mw::serve {

// Reads recorded workloads. The files are untrusted. Any thread.

struct RecordedRequest {
  double at_s = 0;  // seconds since the first request
  int prompt_len = 0, output_len = 0;
};

// Reads CSV or JSONL with arrivals (s) and the numbers of prompt and output tokens, or a result of Meshwright or vLLM
// that was saved with its requests. Returns at least one request, in order of arrival. Throws Error WORKLOAD.
std::vector<RecordedRequest> read_workload(const std::filesystem::path& file);

// The random arrivals of `vllm bench serve --seed S` (vllm/benchmarks/serve.py, get_request): gamma intervals, scaled
// so that the last request arrives at requests / rate. The intervals are those of NumPy's legacy generator, because
// vLLM seeds that one (numpy/random/src/legacy/legacy-distributions.c).

// np.random.seed(seed) followed by calls of np.random.gamma(shape). NumPy accepts seeds below 2^32 only; larger ones
// are folded.
class GammaIntervals {
 public:
  explicit GammaIntervals(std::uint64_t seed) : bits_(static_cast<std::uint32_t>(seed ^ (seed >> 32))) {}
  double next(double shape);  // mean: shape

 private:
  double uniform();  // [0, 1)
  double exponential();
  double normal();
  double gamma_above_one(double shape);  // shape > 1
  double gamma_below_one(double shape);  // shape < 1

  std::mt19937 bits_;
  double kept_ = 0;  // the second normal of a pair
  bool has_kept_ = false;
};

// Arrival times one after the other, in mean intervals: the last of `requests` is at `requests`.
class RandomArrivals {
 public:
  RandomArrivals(std::uint64_t seed, double burstiness, std::int64_t requests);
  double next();

 private:
  double burstiness_, scale_ = 1, time_ = 0;
  GammaIntervals intervals_;
};

// A prompt is a function of its seeds: the first `shared` of `prompt_len` tokens come from shared_seed, the others from
// prompt_seed.
struct TimedRequest {
  std::int64_t id = 0;
  double at_s = 0;  // intended arrival, seconds; 0 in a closed loop
  int prompt_len = 0, output_len = 0;
  std::uint64_t prompt_seed = 0, shared_seed = 0;
  int shared = 0;
};
struct Load {
  options::LoadSettings settings;
  std::vector<TimedRequest> warmups, requests;  // in order of arrival
};
// Throws Error LOAD for settings without requests, with lengths below 1 or without a rate that they need.
Load make_load(const options::LoadSettings& settings);

// The requests of make_load() one after the other, without keeping them. Not thread-safe.
class LoadStream {
 public:
  enum class Part { warmups, requests };
  LoadStream(const options::LoadSettings& settings, Part part);  // throws what make_load() throws
  ~LoadStream();
  const options::LoadSettings& settings() const;  // as in Load: with the rate of a recorded workload
  std::int64_t size() const;
  TimedRequest next();  // at most size() times
  // A request that next() returned, from its index, its arrival and its lengths.
  TimedRequest restore(std::int64_t index, double at_s, int prompt_len, int output_len) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the index, from 0, of the shared prefix that a request draws.
std::uint64_t drawn_prefix(std::uint64_t seed, std::int64_t request, int shared_prefixes);

// The token ids of a prompt, all in [first_id, vocab), the same for every backend.
std::vector<int> prompt_ids(const TimedRequest& request, int first_id, int vocab);

// Interface of what serves a load: the engine, a simulation or a server over HTTP.

struct LoadResult {
  std::vector<formats::RequestResult> requests;  // including failed ones, without warm-ups
  std::vector<formats::TimedStep> steps{};       // empty if the backend does not time its steps
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
  virtual std::optional<formats::BenchPoint> measure(const options::LoadSettings&, const options::Slo&,
                                                     const OnProgress&, std::stop_token) {
    return std::nullopt;
  }
};

}  // namespace mw::serve
