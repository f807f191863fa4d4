// SPDX-License-Identifier: Apache-2.0
// The engine's KV cache layout (f32): layers with full attention form one group of blocks, sliding ones another. Pure
// functions; any thread.
#pragma once
#include "core/engine/generate/serving_engine.h"
#include "core/plan/memory/memory.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

enum class OutOfWindowKv { kept, freed };  // blocks of sliding layers behind their window

// Returns `wanted` with `kv` laid out in blocks of wanted.kv.block_size tokens. `kv`: bytes of the cache; 0: what
// max_num_seqs requests of max_model_len need. Throws Error SERVE if not even one such request fits.
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows = OutOfWindowKv::freed);
struct DeviceMemory {
  plan::InferenceModel model{};
  Bytes free{};  // without weights and adapters
};
// As above, but a cache of size `kv` 0 takes at most half of the memory that the buffers of a step leave free.
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows, const DeviceMemory& device);

// What the engine allocates for a server with these settings, and the same as the planner describes it.
engine::ServingCapacity engine_capacity(const model::Config& config, const SchedulerSettings& settings);
plan::Serving planned_serving(const model::Config& config, const SchedulerSettings& settings);

}  // namespace mw::serve
