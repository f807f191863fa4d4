// SPDX-License-Identifier: Apache-2.0
// Proves that training on a mesh equals training on one device: runs the same steps on both, from the same weights,
// adapters, data and seed, compares every tensor, and compares the bytes sent between devices with the plan. After each
// step the unsharded model copies values and moments from the mesh, so that each step is compared on its own: AdamW
// amplifies rounding errors of tiny gradients, which would grow from step to step. Both models are in memory. Use on
// one thread.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/ledger.h"
#include "core/mesh/collectives/collectives.h"
#include "core/train/evaluate.h"

namespace mw::engine {
class Cluster;
}

namespace mw::train {

struct TensorComparison {
  long step = 0;         // 0: the initial state
  std::string part{};    // weight, value, loss, gradient, gradient norm, first moment, second moment, copies
  std::string tensor{};  // empty for loss and gradient norm
  // Those of the element with the largest difference / bound; magnitude: the largest unsharded value.
  double difference = 0, bound = 0, magnitude = 0;
  bool holds() const { return difference <= bound; }
};

// Collectives of one kind, axis, phase, cause and tensor by one device in one step.
struct TrafficComparison {
  long step = 0;
  int device = 0;
  mesh::Collective what;  // its bytes are those of one call; 0 if calls differ
  Bytes planned, counted;
  bool holds() const { return planned == counted; }
};

struct MeshComparison {
  mesh::Mesh mesh;
  long steps = 0;
  std::int64_t parameters = 0, trained = 0;
  std::vector<TensorComparison> tensors;           // in the order of computation
  std::vector<TrafficComparison> traffic;          // in the order of computation
  std::vector<MemoryUse> memory;                   // per device, after loading the weights
  DataFacts facts;                                 // of the steps, to predict their memory
  Bytes capacity;                                  // per device
  double seconds_unsharded = 0, seconds_mesh = 0;  // for all steps
  Bytes planned() const;                           // bytes sent, over all devices and steps
  Bytes counted() const;
  const TensorComparison* first_broken_tensor() const;  // null if all hold
  const TrafficComparison* first_broken_traffic() const;
  bool holds() const { return !first_broken_tensor() && !first_broken_traffic(); }
};

struct ProofRequest {
  Settings settings;
  long steps = 3;  // LoRA's B starts at zero, so all adapters have gradients from the second step on
  std::function<void(const std::string& phase, long done, long total)> progress = {};
  std::function<void(engine::Cluster&)> on_mesh = {};  // called with the sharded model before the first step
};
// Throws MESH for a mesh of one device, cancelled() after a stop, and the errors of a training run.
MeshComparison prove(const ProofRequest& request, std::stop_token stop = {});

}  // namespace mw::train
