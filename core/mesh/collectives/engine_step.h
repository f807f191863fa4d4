// SPDX-License-Identifier: Apache-2.0
// The step of this program's own engine on virtual devices, as collectives() describes steps: what the engine follows,
// the design shows and a proof counts against. Plain values; any thread.
#pragma once
#include <memory>
#include <span>

#include "core/mesh/collectives/collectives.h"

namespace mw::mesh {

inline constexpr int kMostVirtualDevices = 64;

// What one device has of a micro-batch.
struct DeviceTokens {
  std::int64_t tokens = 0;       // of its rows, without padding
  std::int64_t loss_tokens = 0;  // those with a target
  std::int64_t loss_rows = 0;    // rows of logits at once; 0: all
  bool operator==(const DeviceTokens&) const = default;
};

struct EngineStep {
  StepKind work = StepKind::train_lora;
  int weight_bytes = 4;  // as stored: 4 (f32) or 2 (bf16); everything else moves as f32
  Recompute recompute = Recompute::none;
};
StepShape engine_step(const EngineStep& step);
// The engine has an A for each of K and V, whatever the preset.
ShardingRules engine_rules(ShardingRules rules);

// Which of the equal runs of a micro-batch's rows a device computes: batch axes split them, outermost first.
struct BatchSlice {
  std::int64_t index = 0, ways = 1;
  bool operator==(const BatchSlice&) const = default;
};
BatchSlice batch_slice(const Mesh& mesh, int device);
// Those rows, rounded up so that the last devices may have fewer or none.
Range batch_rows(const BatchSlice& share, std::int64_t rows);

// Those of `elements` in a row whose sum one of several devices makes for all that store them.
Range reduction_range(std::int64_t elements, size_t devices, size_t index);

// Of a device's rows of a micro-batch: its tokens without padding, those with a target; `logit_row_bytes` of its part
// of the vocabulary. Rows without a target are not computed at all.
DeviceTokens count_device_tokens(std::int64_t tokens, std::int64_t loss_tokens, int loss_chunk,
                                 std::int64_t logit_row_bytes);

// What the virtual devices move in steps of one kind, as they count it. Of one thread.
class DeviceCollectives {
 public:
  // Config, mesh and placement outlive it. Throws what local_config() throws.
  DeviceCollectives(const model::Config& config, const Mesh& mesh, const Placement& placement, const EngineStep& step);
  ~DeviceCollectives();
  // All collectives of a device in a step of these micro-batches: equal ones as one entry of several calls.
  std::vector<Collective> of(int device, std::span<const DeviceTokens> micro_batches) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::mesh
