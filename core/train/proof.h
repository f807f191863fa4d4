// SPDX-License-Identifier: Apache-2.0
// The proof that a mesh computes what one device computes: the same steps on both, from the same weights, adapters,
// data and seed, compared tensor by tensor; and that what moved between the devices is what was planned, byte by byte.
// The run on the mesh is the real one and is not interfered with. The unsharded model takes its values and moments over
// after every step, so that each step is compared by itself: AdamW makes a whole step of a gradient that is nothing but
// rounding, and differences of that kind would grow from step to step. Both are in memory. One thread drives it.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/ledger.h"
#include "core/engine/distributed/cluster.h"
#include "core/train/trainer.h"

namespace mw::train {

struct TensorCompared {
  long step = 0;       // 0: what the first step starts from
  std::string part;    // weight, value, loss, gradient, gradient norm, first moment, second moment, copies
  std::string tensor;  // empty for what belongs to none
  // Where the difference is largest in relation to what is allowed there; `magnitude`: largest unsharded value.
  double difference = 0, bound = 0, magnitude = 0;
  bool holds() const { return difference <= bound; }
};

// All calls of one kind, axis, phase, cause and tensor by one device in one step.
struct TrafficCompared {
  long step = 0;
  int device = 0;
  mesh::Collective what;  // its bytes: of one call, 0 where they differ
  Bytes planned, counted;
  bool holds() const { return planned == counted; }
};

struct Proof {
  mesh::Mesh mesh;
  long steps = 0;
  std::int64_t parameters = 0, trained = 0;
  std::vector<TensorCompared> tensors;             // in the order in which a step makes them
  std::vector<TrafficCompared> traffic;            // likewise
  std::vector<MemoryUse> memory;                   // of each device, since the weights were there
  DataFacts facts;                                 // of the steps, for who predicts their memory
  Bytes capacity;                                  // of each device
  double seconds_unsharded = 0, seconds_mesh = 0;  // of all steps
  Bytes planned() const;                           // moved, over all devices and steps
  Bytes counted() const;
  const TensorCompared* first_broken_tensor() const;  // null: none
  const TrafficCompared* first_broken_traffic() const;
  bool holds() const { return !first_broken_tensor() && !first_broken_traffic(); }
};

struct ProofRequest {
  Settings settings;
  long steps = 3;  // the second is the first in which every adapter learns: LoRA's B starts at zero
  std::function<void(const std::string& phase, long done, long total)> progress = {};
  std::function<void(engine::Cluster&)> on_mesh = {};  // before the first step: tests break something here
};
// Throws Error: what a run would throw, cancelled(), MESH where there is one device only.
Proof prove(const ProofRequest& request, std::stop_token stop = {});

}  // namespace mw::train
