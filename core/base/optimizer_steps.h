// SPDX-License-Identifier: Apache-2.0
// Number of optimizer steps of a training run whose length is given in epochs; shared by planner, engine and recipes.
// Thread-safe.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mw {

// `batch` counts the rows of a micro-batch over all data shards (fsdp x data), like the setting train.batch; set
// `data_shards` only if it is given per shard.
struct StepRows {
  std::int64_t batch = 1;
  std::int64_t accumulation = 1;
  std::int64_t data_shards = 1;
};

// floor(rows * epochs / (batch * accumulation * data_shards)), at least 1. `rows` counts the rows of one epoch, after
// dropped rows, held-out rows and packing.
inline std::int64_t steps_of_epochs(double rows, double epochs, const StepRows& step) {
  constexpr double kMost = 1e15;           // exact as a double
  constexpr double kRounding = 1 + 1e-12;  // 100 rows x 0.29 epochs are 29 rows, not 28.999999999999996
  const double each = static_cast<double>(std::max<std::int64_t>(1, step.batch)) *
                      static_cast<double>(std::max<std::int64_t>(1, step.accumulation)) *
                      static_cast<double>(std::max<std::int64_t>(1, step.data_shards));
  const double steps = std::floor(rows * epochs * kRounding / each);
  return steps >= 1 ? static_cast<std::int64_t>(std::min(steps, kMost)) : 1;
}

}  // namespace mw
