// SPDX-License-Identifier: Apache-2.0
// Judges whether a server kept up with the offered load. Uses trends with confidence intervals, because the mean TTFT
// of an overloaded server only reflects how long the run was. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"
#include "core/serve/load/load_backend.h"

namespace mw::serve {

using mw::to_string;

enum class Saturation { stable, backlogged, overloaded };
// Seconds until a first token that no service of MLPerf Inference exceeds (v5.0, server scenario: Llama 3.1 405B, p99).
inline constexpr double kLongestWait = 6;
// Figures on which the verdict depends.
struct LoadEvidence {
  using Points = std::vector<std::pair<double, double>>;  // by time, s
  bool is_closed = false;
  std::int64_t sent = 0, completed = 0;
  double span = 0;          // of the arrivals, s
  double service = 0;       // median time of a request from its first step, or from sending if that is unknown, s
  double wait = 0;          // median time before, s
  double unserved = 0;      // median time before the first step, or before the first token if that step is unknown, s
  Points ttft{}, queue{};   // means of consecutive parts: of the TTFT by intended time, of the waiting requests by time
  double served_share = 1;  // rate at which the middle four fifths ended, relative to their arrivals
};
Saturation judge_saturation(const LoadEvidence& evidence, double longest_wait_s = kLongestWait);
inline constexpr size_t kEvidenceParts = 10;
// The means of kEvidenceParts consecutive parts, or of half as many as there are points. Neighbouring values in a queue
// are correlated, so the confidence interval of a slope through single values would be far too narrow.
LoadEvidence::Points part_means(const LoadEvidence::Points& points);

// Overloaded: requests failed, or queue or TTFT grow and less is served than offered. Backlogged: queue or TTFT grow,
// or the median request waits for its first step longer than half of its service time or than `longest_wait_s` (for its
// first token, if the server does not report its first step). The queue of a closed loop cannot grow beyond its users.
Saturation judge_saturation(const Load& load, const LoadResult& result, double longest_wait_s = kLongestWait);

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::Saturation>{"stable", "backlogged", "overloaded"};
