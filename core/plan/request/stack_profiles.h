// SPDX-License-Identifier: Apache-2.0
// How each software stack lays out and fuses the network. Plain values; any thread.
#pragma once
#include <string>

#include "core/base/enum_names.h"
#include "core/model/config.h"
#include "core/model/types.h"
#include "core/options/stack_options.h"
#include "core/options/training.h"

namespace mw::plan {

using model::bytes_of;

// The buffers that a software stack keeps, copies and fuses; stack_profile() has the values of each stack.
struct StackProfile {
  using Attention = options::AttentionKernel;
  using Elementwise = options::Elementwise;
  enum class Residual { replicated, sharded };  // the residual stream over tp: replicated, or split (Tunix, Megatron)
  enum class Parameters { stay, gathered };     // split weights are used in place, or gathered layer by layer (FSDP)
  enum class Caches { one, copied };            // decode updates the cache in place, or keeps argument and result
  enum class Forward { compiled, op_by_op };    // log-probabilities in one program, or one program per operation
  enum class OptimizerState { beside_weights, over_batch };  // sharded as the weights, or also over batch axes
  // Remat recomputes only the values that the backward reads (XLA, PyTorch checkpoints), or the whole layer
  // (reentrant).
  enum class Recomputation { needed, whole };
  // When gradients are allocated: as the backward produces them, or at the start (XLA, contiguous buffers).
  enum class GradientBuffers { late, from_start };
  Attention attention = Attention::fused;
  Elementwise elementwise = Elementwise::fused;
  Residual residual = Residual::replicated;
  Parameters parameters = Parameters::stay;
  Caches caches = Caches::one;
  Forward forward = Forward::compiled;
  Recomputation recomputation = Recomputation::needed;
  GradientBuffers gradient_buffers = GradientBuffers::late;
  int prefetched_layers = 1;                 // layers gathered ahead of the current one
  double logit_bytes = 8;                    // per logit of a training step at its peak, all copies
  double forward_logit_bytes = 4;            // the same for a pass without a backward
  model::DType scores = model::DType::bf16;  // type of materialised scores kept for a compiled backward
  model::DType adapters = model::DType::bf16, gradients = model::DType::bf16, moments = model::DType::f32;
  model::DType full_weights = model::DType::bf16;  // as stored in full training
  bool recomputes_logits = true;  // of a loss in chunks, in the backward; the engine takes both passes chunk by chunk
  bool master_weights = false;    // f32 copies of the weights
  OptimizerState optimizer = OptimizerState::beside_weights;
  bool static_shapes = false;  // XLA: every row is padded to data.max_len
  options::StackOptions options{};
  // Reserved KV cache of a server: a share of the device less everything else, a share of what is free once
  // the model is loaded, or a slot of the longest request for every sequence.
  enum class KvReserve { share_of_device, share_of_free, slots };
  KvReserve kv_reserve = KvReserve::share_of_device;
  options::ServerDefaults server{};
  std::string source{};
};
StackProfile stack_profile(model::Stack stack, model::Family family);

// How a server's scheduler lays prompts and answers into steps, and what it reserves for a request; the meaning of the
// values is that of serve::PrefillSteps and serve::KvReservation. Plain values; any thread.
struct ServerScheduling {
  enum class PrefillSteps { mixed, separate };
  enum class KvAdmission { computed, whole };
  PrefillSteps prefill_steps = PrefillSteps::mixed;
  KvAdmission kv_admission = KvAdmission::computed;
  int max_prefills = 0;  // prompts in one step; 0: no limit
};
ServerScheduling server_scheduling(model::Stack stack);

}  // namespace mw::plan
