// SPDX-License-Identifier: Apache-2.0
// Predicted memory of a device: the buffers at each instant of a step; the largest total is the peak. Any thread.
#pragma once
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

DeviceMemory train_memory(const LocalModel& model);
DeviceMemory forward_memory(const LocalModel& model);
DeviceMemory rollout_memory(const LocalModel& model);
DeviceMemory serve_memory(const LocalModel& model);

// at_peak.total() of the above without their buffers, for searches. `longest`: RowStatistics::longest.
Bytes train_peak(const LocalModel& model, double longest);
Bytes forward_peak(const LocalModel& model);
Bytes rollout_peak(const LocalModel& model);
Ledger serve_totals(const LocalModel& model);  // at_peak of serve_memory()
Bytes device_capacity(const Request& request);

// Bytes of KV cache per token of a row with `len` tokens on a device, without padding of tiles. Layers that keep only
// their window count with their average over the row.
double kv_bytes_per_token(const LocalModel& model, double len);
// Rows of a batch on one device.
double rows_on_device(const LocalModel& model, std::int64_t batch);

}  // namespace mw::plan
