// SPDX-License-Identifier: Apache-2.0
// Judges whether a server kept up with the offered load. Uses trends with confidence intervals, because the mean TTFT
// of an overloaded server only reflects how long the run was. Pure functions; any thread.
#pragma once
#include <string_view>

#include "core/serve/load/load_backend.h"

namespace mw::serve {

enum class Saturation { stable, backlogged, overloaded };
std::string_view to_string(Saturation saturation);
// Overloaded: requests failed, or queue or TTFT grow and less is served than offered. Backlogged: queue or TTFT grow,
// or requests wait longer than half of their service time. A closed loop is never backlogged.
Saturation judge_saturation(const Load& load, const LoadResult& result);

}  // namespace mw::serve
