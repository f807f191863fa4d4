// SPDX-License-Identifier: Apache-2.0
// Judges whether a server kept up with the offered load. Uses trends with confidence intervals, because the mean TTFT
// of an overloaded server only reflects how long the run was. Pure functions; any thread.
#pragma once
#include "core/base/enum_names.h"
#include "core/serve/load/load_backend.h"

namespace mw::serve {

using mw::to_string;

enum class Saturation { stable, backlogged, overloaded };
// Seconds until a first token that no service of MLPerf Inference exceeds (v5.0, server scenario: Llama 3.1 405B, p99).
inline constexpr double kLongestWait = 6;
// Overloaded: requests failed, or queue or TTFT grow and less is served than offered. Backlogged: queue or TTFT grow,
// or the median request waits for its first step longer than half of its service time or than `longest_wait_s` (for its
// first token, if the server does not report its first step). The queue of a closed loop cannot grow beyond its users.
Saturation judge_saturation(const Load& load, const LoadResult& result, double longest_wait_s = kLongestWait);

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::Saturation>{"stable", "backlogged", "overloaded"};
