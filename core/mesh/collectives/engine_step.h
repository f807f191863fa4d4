// SPDX-License-Identifier: Apache-2.0
// The collectives of the engine's step on virtual devices. The engine executes them, the designer shows them and a
// proof run compares its byte counts with them. Plain values; any thread.
#pragma once
#include <memory>
#include <span>

#include "core/mesh/collectives/collectives.h"

namespace mw::mesh {

inline constexpr int kMostVirtualDevices = 64;

// The part of a micro-batch on one device.
struct DeviceTokens {
  std::int64_t tokens = 0;       // in its rows, without padding
  std::int64_t loss_tokens = 0;  // tokens with a target
  std::int64_t loss_rows = 0;    // rows of logits per chunk; 0: all
  bool operator==(const DeviceTokens&) const = default;
};

struct EngineStep {
  StepKind work = StepKind::train_lora;
  int weight_bytes = 4;  // 4 (f32) or 2 (bf16), as stored; all other values move as f32
  Recompute recompute = Recompute::none;
};
StepShape engine_step(const EngineStep& step);
// The rules as the engine applies them: K and V have separate A matrices with every preset.
ShardingRules engine_rules(ShardingRules rules);

// Slice `index` of `ways` equal slices of a micro-batch's rows. Batch axes split the rows, outermost first.
struct BatchSlice {
  std::int64_t index = 0, ways = 1;
  bool operator==(const BatchSlice&) const = default;
};
BatchSlice batch_slice(const Mesh& mesh, int device);
// The rows of a slice. Slices are rounded up, so the last ones may be shorter or empty.
IndexInterval batch_rows(const BatchSlice& share, std::int64_t rows);

// The range of `elements` that device `index` of `devices` sums for all devices that store them.
IndexInterval reduction_range(std::int64_t elements, size_t devices, size_t index);

// `tokens`: of the device's rows without padding; `loss_tokens`: those with a target; `logit_row_bytes`: bytes of a
// logit row over the device's part of the vocabulary. Rows without a target are not computed.
DeviceTokens count_device_tokens(std::int64_t tokens, std::int64_t loss_tokens, int loss_chunk,
                                 std::int64_t logit_row_bytes);

// Lists the collectives of each virtual device, equal to what the engine counts at run time. Not thread-safe.
class DeviceCollectives {
 public:
  // `config`, `mesh` and `placement` must outlive this object. Throws the errors of local_config().
  DeviceCollectives(const model::Config& config, const Mesh& mesh, const Placement& placement, const EngineStep& step);
  ~DeviceCollectives();
  // The collectives of a device in a step with these micro-batches; equal ones form one entry with several calls.
  std::vector<Collective> of(int device, std::span<const DeviceTokens> micro_batches) const;
  std::int64_t vocab_rows(int device) const;  // the device's part of the vocabulary, with padding

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::mesh
