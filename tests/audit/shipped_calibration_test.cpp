// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped calibration is what the shipped rows give.
#include <gtest/gtest.h>

#include "core/plan/calibration/calibration_file.h"
#include "core/plan/document/simulated_rows.h"
#include "tests/plan/shipped_rows.h"

namespace mw::audit {
namespace {

using plan::CalibrationFactor;

TEST(ShippedCalibration, FollowsFromShippedRows) {
  const std::vector<CalibrationFactor> again =
      plan::with_means(plan::fit_factors(test::shipped_rows(), plan::simulated_fit_options()));
  const plan::Calibration file = plan::read_calibration(test::kHardware + "/calibration.json");
  ASSERT_EQ(file.factors.size(), again.size()) << "run scripts/calibrate.sh";
  for (size_t i = 0; i < again.size(); ++i) {
    const CalibrationFactor &a = file.factors[i], &b = again[i];
    EXPECT_EQ(a.stack, b.stack);
    EXPECT_EQ(a.chip, b.chip);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_NEAR(a.value / b.value, 1, 5e-3) << to_string(a.stack) << " " << a.chip << ": run scripts/calibrate.sh";
    for (const std::string& id : a.rows)
      for (const plan::Measurement& m : test::shipped_rows())
        if (m.id == id) {
          EXPECT_EQ(m.purpose, plan::MeasurementUse::calibration) << id;
        }
  }
}

}  // namespace
}  // namespace mw::audit
