// SPDX-License-Identifier: Apache-2.0
// The metrics of a load from its events in order of time, without keeping requests: memory does not depend on their
// number. Not thread-safe.
#pragma once
#include <array>

#include "core/serve/load/load_backend.h"
#include "core/serve/load/quantile_sketch.h"
#include "core/serve/load/saturation.h"

namespace mw::serve {

class LoadStatistics {
 public:
  LoadStatistics(const LoadSettings& load, const Slo& slo) : load_(load), slo_(slo) {}
  void sent(double at_s);
  void tokens(double at_s, std::int64_t count);  // sampled in one step
  void gaps(float ms, std::int64_t count) { itl_.add(ms, count); }
  // `index` in order of arrival; without gaps.
  void finished(std::int64_t index, const formats::RequestResult& request);
  // Call it once, with the share of prompt tokens from the prefix cache.
  formats::BenchPoint take(std::vector<formats::LoadSample> timeline, double prefix_hits);

 private:
  // Requests in flight; those that end count before those that are sent at the same time.
  void flight(double at_s, int change);
  double share_of_ends() const;

  LoadSettings load_;
  Slo slo_;
  formats::BenchPoint point_{};
  QuantileSketch ttft_, tpot_, itl_, e2el_, intended_ttft_, intended_e2el_, service_, wait_, unserved_;
  long good_ = 0;
  double first_intended_ = 0, last_intended_ = 0, last_end_ = 0, prompt_ = 0;
  std::int64_t second_ = -1, in_second_ = 0, best_second_ = 0;
  double flight_s_ = 0;
  int in_flight_ = 0, sent_now_ = 0, most_in_flight_ = 0;
  struct Part {
    std::int64_t count = 0;
    double time = 0, ttft = 0;
  };
  std::array<Part, kEvidenceParts> parts_{};
  std::array<double, 2> arrival_at_{}, end_at_{};  // of the first and the last tenth of the requests
};

}  // namespace mw::serve
