// SPDX-License-Identifier: Apache-2.0
// How the engine lays out a server's KV cache, f32: layers that see everything in one group of blocks, sliding ones in
// another. Any thread.
#pragma once
#include "core/engine/generate/serving.h"
#include "core/plan/memory/memory.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

enum class OutOfWindowKv { kept, freed };  // blocks of sliding layers behind their window

// `wanted` with `kv` filled in; its block_size is read. kv 0: what max_num_seqs requests of max_model_len need; more
// than that goes to the prefix cache. Throws Error SERVE where not even one of them fits.
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows = OutOfWindowKv::freed);
// The same on a device: kv 0 takes at most half of what is left beside the buffers of a step.
struct DeviceMemory {
  plan::InferenceModel model{};
  Bytes free{};  // beside weights and adapters
};
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows, const DeviceMemory& room);

// What the engine reserves for such a server, and what the plan says of it.
engine::ServeRoom engine_capacity(const model::Config& config, const SchedulerSettings& settings);
plan::Serving planned_serving(const model::Config& config, const SchedulerSettings& settings);

}  // namespace mw::serve
