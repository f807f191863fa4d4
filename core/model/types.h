// SPDX-License-Identifier: Apache-2.0
// Enums that several rooms share. Their names in files, on the command line and in the UI are those of kEnumNames.
#pragma once
#include "core/base/enum_names.h"

namespace mw::model {

using mw::parse;
using mw::to_string;

// How the engine stores weights. int8: inference only, with a bf16 scale for each group of 64 columns of a row.
enum class WeightType { f32, bf16, int8 };
enum class TrainMethod { lora, full };
// Activations that the forward keeps for the backward: all of them, the inputs of the attention and MLP blocks, or the
// inputs of the layers only.
enum class Remat { none, block, layer };
// How a value is stored on a device.
enum class DType { f32, bf16, fp8, int8 };
constexpr int bytes_of(DType type) {
  return type == DType::f32 ? 4 : type == DType::bf16 ? 2 : 1;
}
// The software that trains or serves.
enum class Stack {
  engine,  // this program's own
  tunix,
  torchax,
  maxtext,
  trl_fsdp,    // Hugging Face TRL with FSDP, eager
  torchtune,   // PyTorch on one GPU, eager
  torchtitan,  // FSDP2 with torch.compile
  megatron,    // NeMo, Megatron-LM
  vllm_tpu,
  vllm_gpu,
  tensorrt_llm,
  sglang,
  jetstream  // JetStream with MaxText
};

// True for servers: vLLM, TensorRT-LLM, SGLang, JetStream.
constexpr bool serves(Stack stack) {
  return stack == Stack::vllm_tpu || stack == Stack::vllm_gpu || stack == Stack::tensorrt_llm ||
         stack == Stack::sglang || stack == Stack::jetstream;
}

}  // namespace mw::model

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::model::WeightType>{"f32", "bf16", "int8"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::model::TrainMethod>{"lora", "full"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::model::Remat>{"none", "block", "layer"};

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::model::DType>{"f32", "bf16", "fp8", "int8"};

template <>
inline constexpr mw::EnumNames<13> mw::kEnumNames<mw::model::Stack>{
    "engine",   "tunix",    "torchax",  "maxtext",      "trl-fsdp", "torchtune", "torchtitan",
    "megatron", "vllm-tpu", "vllm-gpu", "tensorrt-llm", "sglang",   "jetstream"};
