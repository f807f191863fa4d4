// SPDX-License-Identifier: Apache-2.0
// Number of optimizer steps of a training run whose length is given in epochs; shared by planner, engine and recipes.
// Thread-safe.
#pragma once
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
std::int64_t steps_of_epochs(double rows, double epochs, const StepRows& step);

}  // namespace mw
