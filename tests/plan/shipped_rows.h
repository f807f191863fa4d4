// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped measurements, read once for all tests of a program.
#pragma once
#include "core/plan/calibration/measurements.h"
#include "tests/shipped.h"

namespace mw::test {

inline const std::string kHardware = std::string(MW_RESOURCES) + "/hardware";

inline const std::vector<plan::Measurement>& shipped_rows() {
  static const plan::Measurements kShipped =
      plan::read_measurements(kHardware + "/measurements.json", context().catalogue);
  return kShipped.rows;
}

}  // namespace mw::test
