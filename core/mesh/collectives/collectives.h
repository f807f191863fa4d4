// SPDX-License-Identifier: Apache-2.0
// Lists the collectives of a step under a placement, for the planner's times, the designer's canvas and the engine's
// virtual devices. Plain values; any thread.
//
// Model of the step. Every tensor has one compute sharding: whole along batch axes (fsdp and data, which split the
// rows); along the other axes split as its block computes in parallel, or whole if the block does not:
//   attention  heads of q_proj over a model axis: k, v and o compute on the same heads, o's partial sums are reduced
//   MLP, PLE   columns of gate (per-layer gate): up and down (per-layer projection) on the same columns, sums reduced
//   experts    columns of experts_gate_up likewise; over a batch axis that splits the experts, tokens are exchanged
//   DoRA       the squares of the columns of o_proj's and down_proj's rows are reduced before their norms are taken
//   embedding  rows of the vocabulary: lookups and softmax statistics are reduced, logits stay split
// A weight that is stored differently is gathered before its use and its gradient is scattered: FSDP for batch axes,
// the cost of an inefficient spec for model axes. A tensor that is replicated along an axis needs no collective in the
// forward. Weights are gathered for the forward and once more for the backward (recompute included); the output matrix
// and the norm before it once for logits, loss and their backward. The backward ends at the first trainable layer,
// whose attention passes no gradient on unless the embedding is trained. Routers are replicated and their gradients
// summed over the devices that split the experts. Not listed: scalars (loss, gradient norm) and the statistics of norms
// on a split residual stream (8 bytes per token).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/mesh/layout/placement.h"
#include "core/model/config.h"

namespace mw::mesh {

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce, all_to_all };
enum class Phase { forward, recompute, backward, update };  // recompute: the forward pass repeated by the backward
enum class Cause {
  gather_shards,     // FSDP: a weight is gathered before its use
  inefficient_spec,  // a weight is gathered along an axis over which its block could compute in parallel
  partial_sums,      // outputs of row-parallel matmuls; input gradients of column-parallel ones
  embedding_rows,    // lookups in a sharded vocabulary
  softmax,           // maximum, sum and the target's logit over a sharded vocabulary
  logits,            // whole logits for sampling
  gradients,         // of trainable tensors, over axes along which they are partial
  experts            // tokens sent to the devices of their experts, and back
};
struct Collective {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::string axis;  // one mesh axis; a tensor over two axes is gathered over each in turn, inner first
  int group = 1;     // its size
  Phase phase = Phase::forward;
  Cause cause = Cause::gather_shards;
  int layer = -1;      // -1: model level
  std::string tensor;  // logical name of a weight, or a block of activations: "layers.3.attention", "logits"
  // Bytes of one call. full: the array on each device after an all-gather, before a reduce-scatter, before and after an
  // all-reduce or all-to-all, with padding if shards have it. moved: sent by a device, full - full / n, for all-reduce
  // twice that (bytes_sent); for the engine's weights and gradients the bytes that it reads (reshard_plan.h).
  Bytes full, moved;
  std::int64_t calls = 1;  // in a step
};

enum class StepKind { train_lora, train_full, forward, decode };
enum class ResidualLayout {  // how the residual stream is laid out over model axes
  whole,                     // all-reduced after each block (Megatron; sampling)
  split  // along its width (Tunix training): an all-gather before and a reduce-scatter after each block
};
enum class Recompute { none, layers };  // layers: the backward repeats each layer's forward
enum class GradientSum { each_micro_batch, each_step };
// How tokens reach experts on other devices: each token is sent to the device of each of its experts (Megatron-LM's
// alltoall dispatcher, MaxText's ragged all-to-all), or every device gets all tokens and sums its experts' outputs
// (vLLM,
// --all2all-backend allgather_reducescatter, the default).
enum class ExpertExchange { all_to_all, gather };

struct StepShape {
  StepKind work = StepKind::train_lora;
  std::int64_t rows = 1;    // of a micro-batch over all devices; batch axes split them, rounded up
  std::int64_t tokens = 1;  // per row; 1 when decoding
  // For one device and micro-batch if padding is not computed, as in the engine: tokens, and tokens whose logits are
  // computed. -1: all tokens of its rows.
  std::int64_t device_tokens = -1, device_logits = -1;
  std::int64_t logits_at_once = 0;  // logit rows per chunk; each chunk has its own reductions; 0: all rows
  int accumulation = 1;             // micro-batches in a step
  int row_norms = -1;               // times that a step computes the norms of DoRA; -1: in every micro-batch
  Recompute recompute = Recompute::layers;
  ResidualLayout residual = ResidualLayout::whole;
  GradientSum gradient_sum = GradientSum::each_micro_batch;
  ExpertExchange exchange = ExpertExchange::all_to_all;
  int weight_bytes = 2, adapter_bytes = 2, activation_bytes = 2, gradient_bytes = 2, logit_bytes = 4;
  std::vector<std::string> batch_axes{"fsdp", "data"};
};

class ReshardPlans;
// Lists the collectives of a step. With `plans`, weights and gradients are listed as virtual device `device` of the
// engine reads them instead of stage by stage.
std::vector<Collective> collectives(const model::Config& config, const Mesh& mesh, const Placement& placement,
                                    const StepShape& step, const ReshardPlans* plans = nullptr, int device = 0);
// Merges collectives of the same phase, layer, axis, kind and cause into one call, as FSDP2 does for a wrapped layer.
std::vector<Collective> fuse_by_layer(const std::vector<Collective>& list);
// The bytes that a device sends in one call on an array of `full` bytes.
Bytes bytes_sent(CollectiveKind kind, Bytes full, int group);
// The bytes that each device sends in the step: the sum of moved * calls.
Bytes moved(const std::vector<Collective>& list);

std::string to_string(CollectiveKind kind);  // "all-gather"
std::string to_string(Phase phase);
std::string to_string(Cause cause);  // "FSDP gather", ...

}  // namespace mw::mesh
