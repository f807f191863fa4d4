// SPDX-License-Identifier: Apache-2.0
// Predicted memory of the engine on one virtual device of a mesh. Any thread.
#pragma once
#include "core/mesh/layout/placement.h"
#include "core/plan/memory/memory.h"

namespace mw::plan {

// One virtual device of a mesh, which stores shards and computes in the working form of mesh/collectives.h.
struct MeshDevice {
  const mesh::Mesh* mesh = nullptr;
  const mesh::Placement* placement = nullptr;  // with the adapters
  int device = 0;                              // row-major in the mesh
};
// `config` is the whole model's; `shape` is of the device's own rows, with one thread.
// Errors also: what mesh::local_config throws.
MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const MeshDevice& at);

}  // namespace mw::plan
