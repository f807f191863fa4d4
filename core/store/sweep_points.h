// SPDX-License-Identifier: Apache-2.0
// Converts the points of a sweep to and from the stored event::Point of kind "sweep". Thread-safe.
#pragma once
#include <vector>

#include "core/base/event.h"
#include "core/formats/results/bench_result.h"

namespace mw::store {

// Limits the size of the record: drops first the inter-token times, then the per-request results, and thins the
// timeline to 2,000 samples.
formats::BenchPoint as_recorded(formats::BenchPoint point);

// Throws Error if an event is not a valid point of a sweep.
std::vector<formats::BenchPoint> points_of(const std::vector<event::Point>& points);

}  // namespace mw::store
