// SPDX-License-Identifier: Apache-2.0
// Judges whether a server kept up with the offered load. Uses trends with confidence intervals, because the mean TTFT
// of an overloaded server only reflects how long the run was. Pure functions; any thread.
#pragma once
#include "core/base/enum_names.h"
#include "core/serve/load/load_backend.h"

namespace mw::serve {

using mw::to_string;

enum class Saturation { stable, backlogged, overloaded };
// Overloaded: requests failed, or queue or TTFT grow and less is served than offered. Backlogged: queue or TTFT grow,
// or requests wait longer than half of their service time. A closed loop is never backlogged.
Saturation judge_saturation(const Load& load, const LoadResult& result);

}  // namespace mw::serve

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::serve::Saturation>{"stable", "backlogged", "overloaded"};
