// SPDX-License-Identifier: Apache-2.0
// Judges whether a server kept up with the offered load. Uses trends with confidence intervals, because the mean TTFT
// of an overloaded server only reflects how long the run was. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"
#include "core/serve/load/load.h"

namespace mw::serve {

// How well a percentile or a mean is known from a number of samples, at 95 % confidence. Pure functions; any thread.

inline constexpr double kConfidence = 0.95;

// The percentile p of a distribution lies between the samples of these ranks (1: the smallest of n) with 95 %
// confidence, whatever the distribution. No rank: the samples give no bound on that side.
struct RankInterval {
  std::optional<long> low{}, high{};
};
RankInterval rank_interval(double p, long samples);  // 0 < p < 100
// The number of samples from which both bounds exist: 368 for p99.
long samples_needed(double p);
// "p99 of 100 requests has no upper bound at 95 % confidence; 368 requests are needed" or "p99 of 1000 requests lies
// between p98.4 and p99.7 of them at 95 % confidence".
std::string percentile_text(double p, long samples);

// Student's t of a two-sided 95 % interval; from 1 degree of freedom.
double student_t(size_t degrees);

// The mean of independent values with its 95 % interval by Student's t. One value has no interval: low is -infinity and
// high infinity. Needs at least one value.
struct MeanInterval {
  double mean = 0, low = 0, high = 0;
};
MeanInterval mean_interval(std::span<const double> values);

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

// Whether the arrivals ended before the server was full: until the last request ended, less than two thirds of the
// offered rate was completed, as if the arrivals last less than twice the time of a request. Such a point may be fast,
// but shows no rate that the server sustains. False for an overloaded point, and if the source has no rate.
bool is_too_short(const formats::BenchPoint& point);
std::string verdict_text(const formats::BenchPoint& point);  // "stable", "stable, too short"

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::Saturation>{"stable", "backlogged", "overloaded"};
