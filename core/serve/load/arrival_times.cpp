// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/arrival_times.h"

#include <cmath>

namespace mw::serve {

double GammaIntervals::uniform() {
  const std::uint32_t high = static_cast<std::uint32_t>(bits_()) >> 5, low = static_cast<std::uint32_t>(bits_()) >> 6;
  return (high * 67108864.0 + low) * 0x1p-53;
}

double GammaIntervals::exponential() {
  return -std::log(1 - uniform());
}

// Marsaglia's polar method.
double GammaIntervals::normal() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  double first = 0, second = 0, square = 0;
  do {
    first = 2 * uniform() - 1, second = 2 * uniform() - 1;
    square = first * first + second * second;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  kept_ = factor * first, has_kept_ = true;
  return factor * second;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
double GammaIntervals::gamma_above_one(double shape) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, v = 0;
    do {
      x = normal();
      v = 1 + c * x;
    } while (v <= 0);
    v = v * v * v;
    const double u = uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return d * v;
  }
}

// Ahrens and Dieter, "Computer methods for sampling from gamma, beta, poisson and binomial distributions" (1974), with
// an exponential in the place of the second uniform number.
double GammaIntervals::gamma_below_one(double shape) {
  for (;;) {
    const double u = uniform(), limit = exponential();
    if (u <= 1 - shape) {
      if (const double x = std::pow(u, 1 / shape); x <= limit) return x;
    } else {
      const double y = -std::log((1 - u) / shape);
      if (const double x = std::pow(1 - shape + shape * y, 1 / shape); x <= limit + y) return x;
    }
  }
}

double GammaIntervals::next(double shape) {
  if (shape == 1) return exponential();
  return shape < 1 ? gamma_below_one(shape) : gamma_above_one(shape);
}

RandomArrivals::RandomArrivals(std::uint64_t seed, double burstiness, std::int64_t requests)
    : burstiness_(burstiness), intervals_(seed) {
  GammaIntervals all(seed);
  double total = 0;
  for (std::int64_t i = 0; i < requests; ++i) total += all.next(burstiness);
  if (total > 0) scale_ = static_cast<double>(requests) / total;
}

double RandomArrivals::next() {
  return scale_ * (time_ += intervals_.next(burstiness_));
}

}  // namespace mw::serve
