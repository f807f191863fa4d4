// SPDX-License-Identifier: Apache-2.0
// TensorInventory: every tensor of a model from its config, once, with its names everywhere. Planner, engine,
// loaders, checker and exporters read this list, so they cannot disagree. Any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/config.h"

namespace mw::model {

enum class Axis { vocab, embed, heads, kv_heads, head_dim, mlp, layers, rank, experts, ple, one };
enum class Role {  // what the tensor is, independent of names
  embed,
  final_norm,
  lm_head,  // the output matrix where the embedding is not used for it
  ple_embed,
  ple_model_proj,
  ple_model_norm,
  input_norm,
  post_attention_norm,
  pre_ffw_norm,
  post_ffw_norm,
  q_norm,
  k_norm,
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  gate_proj,
  up_proj,
  down_proj,
  layer_scalar,
  ple_gate,
  ple_proj,
  post_ple_norm,
  router_proj,
  router_scale,
  per_expert_scale,
  experts_gate_up,
  experts_down,
  moe_pre_ffw_norm,
  dense_post_ffw_norm,
  moe_post_ffw_norm,
  lora_a,
  lora_b
};

struct Dim {
  Axis axis;
  std::int64_t size;
  bool operator==(const Dim&) const = default;
};

struct Tensor {
  Role role;
  int layer = -1;                      // -1: model level
  std::string name;                    // logical: "layers.3.q_proj", "embed"
  std::vector<std::int64_t> hf_shape;  // as in the safetensors, [out, in] for linears
  std::vector<Dim> dims;               // logical axes in Tunix order, e.g. q of Gemma: heads x embed x head_dim
  std::string hf_name;                 // full, with the config's prefix and ".weight"
  std::string tunix_path;              // "layers.3.attn.q_einsum.w"; Gemma's K and V share "...kv_einsum.w"
  // Index on the leading axis of a Tunix tensor shared by several of ours, which `dims` leaves out: kv_einsum 0 K, 1 V;
  // qkv_einsum (Gemma 2/3 with heads == kv_heads) 0 Q, 1 K, 2 V; else -1.
  int tunix_slot = -1;
  bool is_buffer = false;  // layer_scalar: saved, not a parameter
  std::int64_t elements() const;
  // Rows of one matrix as it is multiplied: all; of experts' tensors one expert's gate, up or down projection.
  std::int64_t matrix_rows() const;
};

// A linear that LoRA can adapt.
struct LoraTarget {
  Role role;
  int layer;
  std::int64_t in, out;
  std::string module;          // "model.layers.3.self_attn.q_proj" (config prefix)
  std::string peft_a, peft_b;  // "base_model.model.<module>.lora_A.weight"
};

class TensorInventory {
 public:
  explicit TensorInventory(const Config& config);
  // Of a device's part of a model (mesh/local_config.h).
  TensorInventory(std::vector<Tensor> tensors, std::vector<LoraTarget> targets)
      : tensors_(std::move(tensors)), targets_(std::move(targets)) {}
  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor* find(Role role, int layer = -1) const;
  std::int64_t parameters() const;  // excludes buffers
  // The seven HF projections of every layer where they exist, in layer order.
  std::span<const LoraTarget> lora_targets() const { return targets_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<LoraTarget> targets_;
};

std::string_view hf_module_name(Role role);  // "q_proj", "gate_proj", ...

}  // namespace mw::model
