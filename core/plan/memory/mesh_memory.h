// SPDX-License-Identifier: Apache-2.0
// Predicted memory of the engine on one virtual device of a mesh. Any thread.
#pragma once
#include "core/mesh/layout/placement.h"
#include "core/plan/memory/memory.h"

namespace mw::plan {

// One virtual device of a mesh: it stores shards and computes as mesh::ComputeSharding says.
struct MeshDevice {
  const mesh::Mesh* mesh = nullptr;
  const mesh::Placement* placement = nullptr;  // with the adapters
  int device = 0;                              // row-major in the mesh
};
// `config` describes the whole model, `shape` the rows of this device with one thread. Throws Error PLAN-SIZE and the
// errors of mesh::local_config.
MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const MeshDevice& at);

}  // namespace mw::plan
