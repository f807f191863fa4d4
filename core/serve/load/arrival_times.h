// SPDX-License-Identifier: Apache-2.0
// The random arrivals of `vllm bench serve --seed S` (vllm/benchmarks/serve.py, get_request): gamma intervals, scaled
// so that the last request arrives at requests / rate. The intervals are those of NumPy's legacy generator, because
// vLLM seeds that one (numpy/random/src/legacy/legacy-distributions.c).
#pragma once
#include <cstdint>
#include <random>

namespace mw::serve {

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

}  // namespace mw::serve
