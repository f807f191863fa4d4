// SPDX-License-Identifier: Apache-2.0
#include "core/base/optimizer_steps.h"

#include <algorithm>
#include <cmath>

namespace mw {

std::int64_t steps_of_epochs(double rows, double epochs, const StepRows& step) {
  constexpr double kMost = 1e15;           // exact as a double
  constexpr double kRounding = 1 + 1e-12;  // 100 rows x 0.29 epochs are 29 rows, not 28.999999999999996
  const double each = static_cast<double>(std::max<std::int64_t>(1, step.batch)) *
                      static_cast<double>(std::max<std::int64_t>(1, step.accumulation)) *
                      static_cast<double>(std::max<std::int64_t>(1, step.data_shards));
  const double steps = std::floor(rows * epochs * kRounding / each);
  return steps >= 1 ? static_cast<std::int64_t>(std::min(steps, kMost)) : 1;
}

}  // namespace mw
