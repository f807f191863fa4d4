// SPDX-License-Identifier: Apache-2.0
// The shipped hardware, read once for all tests of a program.
#pragma once
#include "core/plan/calibration/plan_context.h"

namespace mw::test {

inline const plan::PlanContext& context() {
  static const plan::PlanContext kShipped = plan::PlanContext::load(MW_RESOURCES "/hardware");
  return kShipped;
}

}  // namespace mw::test
