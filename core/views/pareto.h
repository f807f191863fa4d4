// SPDX-License-Identifier: Apache-2.0
// The Pareto front of points in a plane. Pure function; any thread.
#pragma once
#include <span>
#include <vector>

#include "core/views/series.h"

namespace mw::views {

enum class Better { lower, higher };

// For each point whether no other is at least as good in x and y and better in one of them. Points that are not finite
// are never on the front.
std::vector<bool> pareto_front(std::span<const Point> points, Better x = Better::lower, Better y = Better::lower);

}  // namespace mw::views
