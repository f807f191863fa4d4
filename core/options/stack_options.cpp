// SPDX-License-Identifier: Apache-2.0
// Sources: the stacks' own options, named in each row.
#include "core/options/stack_options.h"

namespace mw::options {

using model::DType;
using model::Stack;

StackOptions stack_options(Stack stack) {
  // Linear layers of servers in fp8 or int8; embeddings and output matrix stay in bf16.
  const StackOptions server{.fp8_products = true, .weights = {DType::bf16, DType::f32, DType::fp8, DType::int8}};
  switch (stack) {
    case Stack::maxtext:
      // quantization=fp8 (AQT, Qwix); remat_policy=custom with context, q, k, v, out and MLP products, each kept on the
      // device or offloaded (MaxText, configs/base.yml); ici_expert_parallelism.
    case Stack::megatron:
      // --fp8-format, --recompute-modules, --cpu-offloading (Transformer Engine), --expert-model-parallel-size.
      return {.fp8_products = true, .saved_by_name = true, .offload = true, .expert_parallel = true};
    case Stack::trl_fsdp:   // SFTConfig: activation_offloading, torch_compile
    case Stack::torchtune:  // enable_activation_offloading, compile
      return {.offload = true, .compile_choice = true};
    case Stack::torchtitan:
      // quantize.linear.float8 and selective activation checkpointing by operation; no offload of activations.
      return {.fp8_products = true, .saved_by_name = true, .compile_choice = true};
    case Stack::vllm_gpu: {
      StackOptions options = server;
      options.expert_parallel = true;  // --enable-expert-parallel
      return options;
    }
    case Stack::vllm_tpu:
    case Stack::tensorrt_llm:
    case Stack::sglang:
      return server;
    case Stack::jetstream:  // int8 weights by AQT
      return {.weights = {DType::bf16, DType::f32, DType::int8}};
    default:
      return {};
  }
}

ServerDefaults server_defaults(Stack stack) {
  switch (stack) {
    case Stack::tensorrt_llm:
      // tensorrt_llm/llmapi/llm_args.py: KvCacheConfig.tokens_per_block 32; max_num_tokens 8192; enable_chunked_prefill
      // off; overlap scheduler on.
      return {.block_size = 32, .max_num_batched_tokens = 8192, .chunked_prefill = false, .async_scheduling = true};
    case Stack::sglang:
      // python/sglang/srt/server_args.py: page_size 1, radix cache, chunked_prefill_size 8192 on GPUs of 80 GB,
      // disable_overlap_schedule off.
      return {.block_size = 1, .max_num_batched_tokens = 8192, .async_scheduling = true};
    case Stack::jetstream:  // no prefix cache unless configured
      return {.chunked_prefill = false, .prefix_cache = false};
    default:
      return {};
  }
}

}  // namespace mw::options
