// SPDX-License-Identifier: Apache-2.0
// Enums that several rooms share. Their names in files, on the command line and in the UI are those of EnumNames.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mw::model {

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
  vllm_gpu
};

// The names of an enum's values, in the order of the enum.
template <class Enum>
struct EnumNames;
template <>
struct EnumNames<WeightType> {
  static constexpr std::array<std::string_view, 3> values{"f32", "bf16", "int8"};
};
template <>
struct EnumNames<TrainMethod> {
  static constexpr std::array<std::string_view, 2> values{"lora", "full"};
};
template <>
struct EnumNames<Remat> {
  static constexpr std::array<std::string_view, 3> values{"none", "block", "layer"};
};
template <>
struct EnumNames<DType> {
  static constexpr std::array<std::string_view, 4> values{"f32", "bf16", "fp8", "int8"};
};
template <>
struct EnumNames<Stack> {
  static constexpr std::array<std::string_view, 10> values{"engine",   "tunix",     "torchax",    "maxtext",
                                                           "trl-fsdp", "torchtune", "torchtitan", "megatron",
                                                           "vllm-tpu", "vllm-gpu"};
};

template <class Enum>
requires requires {
  EnumNames<Enum>::values;
}
constexpr std::string_view to_string(Enum value) {
  return EnumNames<Enum>::values[static_cast<std::size_t>(value)];
}

template <class Enum>
constexpr std::optional<Enum> parse(std::string_view name) {
  constexpr auto& names = EnumNames<Enum>::values;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace mw::model
