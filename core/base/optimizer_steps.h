// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of a training run whose length is given in passes over its data. The one definition for planner,
// engine and recipes. Any thread.
#pragma once
#include <cstdint>

namespace mw {

// train.batch counts the rows of a micro-batch over all data shards (fsdp x data), as planner, engine and recipes use
// it. A batch given for each shard is multiplied by `data_shards` here.
struct StepRows {
  std::int64_t batch = 1;
  std::int64_t accumulation = 1;
  std::int64_t data_shards = 1;
};

// floor(rows * epochs / (batch * accumulation * data shards)), at least 1. `rows`: of one pass, after drops, held-out
// rows and packing.
std::int64_t steps_of_epochs(double rows, double epochs, const StepRows& step);

}  // namespace mw
