// SPDX-License-Identifier: Apache-2.0
// How a sweep's points are stored: as event::Point of kind "sweep", with as many details as a record keeps. Any thread.
#pragma once
#include <vector>

#include "core/base/event.h"
#include "core/formats/results/bench_result.h"

namespace mw::store {

// Drops details that would make a record too large: first the gaps between tokens, then whole requests; the timeline is
// thinned out to 2,000 samples.
formats::BenchPoint as_recorded(formats::BenchPoint point);

// Throws Error for an event that is not a point of a sweep.
std::vector<formats::BenchPoint> points_of(const std::vector<event::Point>& points);

}  // namespace mw::store
