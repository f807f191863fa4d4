// SPDX-License-Identifier: Apache-2.0
// Which collectives a step makes under a placement: what the time plan prices, the canvas draws and the engine's
// virtual devices count. Plain values; any thread.
//
// The step that is described. Every tensor has one working form: whole along batch axes (they split the rows: fsdp,
// data), and along the other axes split as its block computes in parallel, or whole where the block does not:
//   attention  heads of q_proj over a model axis: k, v and o compute on the same heads, o's partial sums are reduced
//   MLP, PLE   columns of gate (per-layer gate): up and down (per-layer projection) on the same columns, sums reduced
//   experts    columns of experts_gate_up likewise
//   embedding  rows of the vocabulary: lookups and softmax statistics are reduced, logits stay split
// A weight that is stored otherwise is gathered before its use, and its gradient scattered: that is FSDP for batch axes
// and what a clumsy spec costs for the others. A tensor that repeats along an axis needs nothing forward. Weights are
// gathered for the forward and once more for the backward (recompute included); an output matrix and the norm before it
// once for logits, loss and their backward. The backward ends with the first layer that learns, whose attention passes
// no gradient on unless the embedding learns, too. Routers are whole: what experts in parts tell them is summed. Left
// out: scalars (loss, gradient norm), and the statistics of norms on a split stream (8 bytes a token).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/mesh/layout/placement.h"
#include "core/model/config.h"

namespace mw::mesh {

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce, all_to_all };
enum class Phase { forward, recompute, backward, update };  // recompute: the forward again, within the backward
enum class Cause {
  gather_shards,     // FSDP: a weight whole before its use
  inefficient_spec,  // the same along an axis on which it could have computed in parallel
  partial_sums,      // outputs of row-parallel matmuls; gradients of column-parallel inputs
  embedding_rows,    // lookups in a vocabulary in parts
  softmax,           // maximum, sum and the target's logit of a vocabulary in parts
  logits,            // whole logits for sampling
  gradients          // of trainables, over axes on which they are partial
};
struct Collective {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::string axis;  // one mesh axis; a tensor over two is gathered over each in turn, inner first
  int group = 1;     // its size
  Phase phase = Phase::forward;
  Cause cause = Cause::gather_shards;
  int layer = -1;      // -1: model level
  std::string tensor;  // logical name; of activations the block's: "layers.3.attention", "logits"
  // One call. Full: the array that each device has after an all-gather, before a reduce-scatter, before and after an
  // all-reduce or all-to-all, padded where shards are. Moved: what a device sends: full - full / n, all-reduce twice
  // that (bytes_sent). Of the engine's weights and gradients: what it reads (device_reads.h).
  Bytes full, moved;
  std::int64_t calls = 1;  // in the whole step
};

enum class StepKind { train_lora, train_full, forward, decode };
enum class Residual {  // how the stream between blocks lies on model axes
  whole,               // reduced after each block (Megatron; sampling)
  split                // along its width (Tunix training): each reduction is a reduce-scatter after and a gather before
};
enum class Recompute { none, layers };  // a layer's forward again in the backward
enum class GradientSum { each_micro_batch, each_step };

struct StepShape {
  StepKind work = StepKind::train_lora;
  std::int64_t rows = 1;    // of one micro-batch, over all devices; batch axes split them, rounded up
  std::int64_t tokens = 1;  // per row; decode: 1
  // Of one device and micro-batch where padding is left out, as the engine does: tokens, and those whose logits are
  // asked for. -1: all of its rows.
  std::int64_t device_tokens = -1, device_logits = -1;
  std::int64_t logits_at_once = 0;  // of them, each time with reductions of their own; 0: all
  int accumulation = 1;             // micro-batches in a step
  Recompute recompute = Recompute::layers;
  Residual residual = Residual::whole;
  GradientSum gradient_sum = GradientSum::each_micro_batch;
  int weight_bytes = 2, adapter_bytes = 2, activation_bytes = 2, gradient_bytes = 2, logit_bytes = 4;
  std::vector<std::string> batch_axes{"fsdp", "data"};
};

class DeviceReads;
// reads: weights and gradients as that virtual device of the engine reads them, instead of in stages.
std::vector<Collective> collectives(const model::Config& config, const Mesh& mesh, const Placement& placement,
                                    const StepShape& step, const DeviceReads* reads = nullptr, int device = 0);
// Those of one phase, layer, axis, kind and cause as one call each, as FSDP2 makes them for a wrapped layer.
std::vector<Collective> fuse_by_layer(const std::vector<Collective>& list);
// Bytes that a device sends in one call on `full`.
Bytes bytes_sent(CollectiveKind kind, Bytes full, int group);
// Sum of moved * calls: bytes that each device sends in the step.
Bytes moved(const std::vector<Collective>& list);

std::string to_string(CollectiveKind kind);  // "all-gather"
std::string to_string(Phase phase);
std::string to_string(Cause cause);  // "FSDP gather", ...

}  // namespace mw::mesh
