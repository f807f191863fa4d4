// SPDX-License-Identifier: Apache-2.0
// How each stack runs the same network. Sources: the stacks' own code, named in each row.
#include "core/plan/request/stack_profiles.h"

namespace mw::plan {
namespace {

using H = StackProfile;

bool gemma(model::Family family) {
  return family != model::Family::llama && family != model::Family::qwen3;
}

StackProfile tunix() {
  StackProfile h;
  h.attention = H::Attention::materialised;
  h.scores = model::DType::f32;  // softmax(scores.astype(float32)): its derivative keeps the f32 result
  h.residual = H::Residual::sharded;
  h.caches = H::Caches::copied;
  h.forward = H::Forward::op_by_op;
  h.gradients = h.moments = model::DType::bf16;
  h.static_shapes = true;
  h.gradient_buffers = H::GradientBuffers::from_start;
  h.source =
      "Tunix: attention in plain einsums unless use_flash_attention; activations (fsdp, -, tp); sampler's programs "
      "without donation until 2026; model called outside jit; adapters, gradients and moments in the base's type";
  return h;
}

StackProfile eager(model::Family family) {
  StackProfile h;
  h.elementwise = H::Elementwise::eager;
  // transformers warns to train Gemma with eager attention only; other families run PyTorch's fused attention.
  h.attention = gemma(family) ? H::Attention::materialised : H::Attention::fused;
  h.logit_bytes = 14;  // bf16, f32 copy, f32 log-softmax, f32 gradient
  h.forward_logit_bytes = 10;
  h.source = "PyTorch eager: one buffer per operation; f32 copies in norms, softmax and loss (transformers)";
  return h;
}

StackProfile layout_of(model::Stack stack, model::Family family) {
  StackProfile h;
  switch (stack) {
    case model::Stack::engine:
      h.adapters = h.gradients = h.moments = model::DType::f32;
      h.recomputes_logits = false;
      h.source = "this program's own engine: core/plan/prediction/memory.h has its exact memory";
      return h;
    case model::Stack::tunix:
      return tunix();
    case model::Stack::torchax:
      h = tunix();
      h.residual = H::Residual::replicated;
      h.forward = H::Forward::compiled;
      h.adapters = h.gradients = h.moments = model::DType::f32;
      h.source = "TorchAX: a PyTorch model in one XLA program; PEFT keeps adapters in f32";
      return h;
    case model::Stack::maxtext:
      h.residual = H::Residual::sharded;
      h.gradients = h.full_weights = model::DType::f32;
      h.parameters = H::Parameters::gathered;
      h.static_shapes = true;
      h.gradient_buffers = H::GradientBuffers::from_start;
      h.source = "MaxText: f32 weights and moments, bf16 products, splash attention, FSDP with scanned layers";
      return h;
    case model::Stack::trl_fsdp:
      h = eager(family);
      h.parameters = H::Parameters::gathered;
      h.recomputation = H::Recomputation::whole;  // transformers' default: use_reentrant
      h.adapters = h.gradients = h.moments = model::DType::f32;
      h.source += "; FSDP gathers layer by layer; PEFT keeps adapters in f32";
      return h;
    case model::Stack::torchtune:
      h = eager(family);
      h.gradients = h.moments = model::DType::bf16;
      h.source += "; everything in bf16 (torchtune)";
      return h;
    case model::Stack::torchtitan:
      h.parameters = H::Parameters::gathered;
      h.residual = H::Residual::sharded;  // sequence parallel beside tp
      h.gradients = h.full_weights = model::DType::f32;
      h.logit_bytes = 10;
      h.source = "torchtitan: FSDP2 with f32 shards, bf16 gathers, torch.compile";
      return h;
    case model::Stack::megatron:
      h.residual = H::Residual::sharded;
      h.gradients = model::DType::f32;
      h.master_weights = true;
      h.optimizer = H::OptimizerState::over_batch;
      h.recomputation = H::Recomputation::whole;
      h.gradient_buffers = H::GradientBuffers::from_start;
      h.source = "Megatron-LM: tensor and sequence parallel, distributed optimizer with f32 masters";
      return h;
    case model::Stack::vllm_tpu:
      h.static_shapes = true;
      h.source = "vLLM on TPU: buckets of tokens and requests, ragged paged attention";
      return h;
    case model::Stack::vllm_gpu:
      h.source = "vLLM on GPU: paged attention, CUDA graphs";
      return h;
    case model::Stack::tensorrt_llm:
      // tensorrt_llm/llmapi/llm_args.py: KvCacheConfig.free_gpu_memory_fraction, a share of what is free once the model
      // is loaded.
      h.kv_reserve = H::KvReserve::share_of_free;
      h.source =
          "TensorRT-LLM (PyTorch backend): CUDA graphs, KV blocks of 32 tokens from the memory that is free, reserved "
          "for prompt and answer, no chunked prefill, overlap scheduler";
      return h;
    case model::Stack::sglang:
      // python/sglang/srt/server_args.py: mem_fraction_static of the whole device.
      h.source =
          "SGLang: CUDA graphs, pages of one token, radix cache, chunks of 8192 prompt tokens in steps of their own "
          "that come before decoding, overlap scheduler";
      return h;
    case model::Stack::jetstream:
      // JetStream with MaxText (google/JetStream, archived 2026-02): prefill, insert and generate of a fixed number of
      // slots, each of max_target_length.
      h.static_shapes = true;
      h.kv_reserve = H::KvReserve::slots;
      h.source =
          "JetStream with MaxText: a slot of the longest request for each sequence, prompts computed whole, one at a "
          "time and between decode steps; the step time of vLLM on TPUs without its paged kernel, as no published row "
          "fits its own";
      return h;
  }
  return h;
}

}  // namespace

StackProfile stack_profile(model::Stack stack, model::Family family) {
  StackProfile profile = layout_of(stack, family);
  profile.options = options::stack_options(stack);
  profile.server = options::server_defaults(stack);
  return profile;
}

ServerScheduling server_scheduling(model::Stack stack) {
  using S = ServerScheduling;
  switch (stack) {
    case model::Stack::tensorrt_llm:  // tensorrt_llm/llmapi/llm_args.py: CapacitySchedulerPolicy GUARANTEED_NO_EVICT
      return {.kv_admission = S::KvAdmission::whole};
    // sglang/srt/managers/scheduler.py, get_next_batch_to_run: a batch of prompts comes before the next token of the
    // others unless --enable-mixed-chunk is set.
    case model::Stack::sglang:
      return {.prefill_steps = S::PrefillSteps::separate};
    case model::Stack::jetstream:  // jetstream/core/orchestrator.py: prefill and generate programs take turns
      return {.prefill_steps = S::PrefillSteps::separate, .max_prefills = 1};
    default:
      return {};
  }
}

}  // namespace mw::plan
