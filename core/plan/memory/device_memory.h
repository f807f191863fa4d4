// SPDX-License-Identifier: Apache-2.0
// What each device holds, instant by instant; the largest is the peak. Any thread.
#pragma once
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

DeviceMemory train_memory(const LocalModel& model);
DeviceMemory forward_memory(const LocalModel& model);
DeviceMemory rollout_memory(const LocalModel& model);
DeviceMemory serve_memory(const LocalModel& model);

// Bytes of KV cache per token of one row on a device, tiles not counted; of layers that keep only their window as if
// the row were `len` long, averaged over it.
double kv_bytes_per_token(const LocalModel& model, double len);
// Rows of a batch on one device.
double rows_on_device(const LocalModel& model, std::int64_t batch);

}  // namespace mw::plan
