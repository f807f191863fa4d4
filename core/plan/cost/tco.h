// SPDX-License-Identifier: Apache-2.0
// Total cost of ownership of a tuned model: training once, then serving by the hour. Plain values; any thread.
#pragma once
#include <optional>
#include <string>

#include "core/base/units.h"

namespace mw::plan {

struct Tco {
  std::string name;
  double train_hours = 0, train_usd_per_hour = 0, serve_usd_per_hour = 0;
  Usd train() const { return Usd(train_hours * train_usd_per_hour); }
  Usd after(double serve_hours) const { return Usd(train().value + serve_hours * serve_usd_per_hour); }
};

// The hours of serving after which both have cost the same; none if one is always cheaper.
std::optional<double> break_even_hours(const Tco& a, const Tco& b);

}  // namespace mw::plan
