// SPDX-License-Identifier: Apache-2.0
// How each software stack runs the same network: what it keeps, copies and fuses. Plain values; any thread.
#pragma once
#include <string>

#include "core/model/config.h"
#include "core/model/types.h"

namespace mw::plan {

using model::bytes_of;
using model::DType;
using model::Stack;

// How a stack writes the same network: what it keeps, copies and fuses. Values of a stack: stack_profile().
struct StackProfile {
  enum class Attention { materialised, fused };  // scores in memory, or in blocks that never leave the chip
  enum class Elementwise { eager, fused };       // one kernel and one buffer per operation, or what a compiler leaves
  enum class Residual { replicated, sharded };   // the stream between blocks over tp: whole, or split (Tunix, Megatron)
  enum class Parameters { stay, gathered };      // split weights are used in place, or gathered layer by layer (FSDP)
  enum class Caches { one, copied };             // decode writes the cache in place, or keeps argument and result
  enum class Forward { compiled, op_by_op };     // log-probabilities in one program, or one program per operation
  enum class OptimizerState { beside_weights, over_batch };  // as the trainables, or split over batch axes, too
  // Of a layer under remat: what its backward reads (XLA, PyTorch's checkpoints stop there), or all of it (reentrant).
  enum class Recomputation { needed, whole };
  // When gradients take their place: as the backward makes them, or from the start (XLA, contiguous buffers).
  enum class GradientBuffers { late, from_start };
  Attention attention = Attention::fused;
  Elementwise elementwise = Elementwise::fused;
  Residual residual = Residual::replicated;
  Parameters parameters = Parameters::stay;
  Caches caches = Caches::one;
  Forward forward = Forward::compiled;
  Recomputation recomputation = Recomputation::needed;
  GradientBuffers gradient_buffers = GradientBuffers::late;
  int prefetched_layers = 1;       // gathered ahead of the one in use
  double logit_bytes = 8;          // per logit of a training step at its peak, all copies
  double forward_logit_bytes = 4;  // the same without a backward
  DType scores = DType::bf16;      // that a compiled backward finds of materialised attention
  DType adapters = DType::bf16, gradients = DType::bf16, moments = DType::f32;
  DType full_weights = DType::bf16;  // stored, in full training
  bool master_weights = false;       // f32 copies beside them
  OptimizerState optimizer = OptimizerState::beside_weights;
  bool static_shapes = false;  // XLA: every row is padded to data.max_len
  std::string source{};
};
StackProfile stack_profile(Stack stack, model::Family family);

}  // namespace mw::plan
