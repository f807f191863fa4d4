// SPDX-License-Identifier: Apache-2.0
#include "core/plan/cost/tco.h"

namespace mw::plan {

std::optional<double> break_even_hours(const Tco& a, const Tco& b) {
  const double ahead = b.train().value - a.train().value, rate = a.serve_usd_per_hour - b.serve_usd_per_hour;
  if (rate == 0 || ahead / rate < 0) return std::nullopt;
  return ahead / rate;
}

}  // namespace mw::plan
