// SPDX-License-Identifier: Apache-2.0
// TensorInventory lists all tensors of a model with their shapes and their names in every format. Planner, engine,
// loaders, checker and exporters share it. Plain values.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/config.h"

namespace mw::model {

enum class Axis { vocab, embed, heads, kv_heads, head_dim, mlp, layers, rank, experts, ple, one };
enum class Role {  // purpose of a tensor, independent of its names
  embed,
  final_norm,
  lm_head,  // output matrix, if not tied to the embedding
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
  altup_projections,  // of the embedding to AltUp's other streams: one tensor for the matrices, which files have apart
  altup_unembed_projections,  // of these streams to the output, likewise
  altup_router,
  altup_router_norm,
  altup_prediction_coefs,
  altup_correction_coefs,
  altup_output_scale,
  laurel_left,
  laurel_right,
  laurel_norm,
  lora_a,
  lora_b,
  lora_m  // magnitudes of DoRA, one for each output
};
constexpr bool is_adapter(Role role) {
  return role >= Role::lora_a;
}

struct Dim {
  Axis axis;
  std::int64_t size;
  bool operator==(const Dim&) const = default;
};

struct Tensor {
  Role role;
  int layer = -1;                      // -1: model level
  std::string name;                    // logical: "layers.3.q_proj", "embed"
  std::vector<std::int64_t> hf_shape;  // shape in safetensors files; [out, in] for linear layers
  std::vector<Dim> dims;               // logical axes in Tunix order, e.g. q of Gemma: heads x embed x head_dim
  std::string hf_name;                 // full name, with the config's prefix and ".weight"
  std::string tunix_path;              // "layers.3.attn.q_einsum.w"; Gemma's K and V share "...kv_einsum.w"
  // Index on the leading axis of a Tunix tensor that combines several of these; `dims` excludes that axis. kv_einsum: 0
  // is K, 1 is V; qkv_einsum (Gemma 2/3 with heads == kv_heads): 0 is Q, 1 is K, 2 is V; -1: not combined.
  int tunix_slot = -1;
  bool is_buffer = false;  // saved, but not a parameter: layer_scalar
  std::int64_t elements() const;
  // Rows of one matrix product; for experts' tensors the rows of one expert's gate, up or down projection.
  std::int64_t matrix_rows() const;
};

// A linear layer that LoRA can adapt.
struct LoraTarget {
  Role role;
  int layer;
  std::int64_t in, out;
  std::string module;          // "model.layers.3.self_attn.q_proj", with the config's prefix
  std::string peft_a, peft_b;  // "base_model.model.<module>.lora_A.weight"
};

// A shared immutable value: copies are cheap, and so is the inventory of a config that was listed lately. Any thread.
class TensorInventory {
 public:
  explicit TensorInventory(const Config& config);
  // For the part of a model on one device (core/mesh/collectives/local_config.h).
  TensorInventory(std::vector<Tensor> tensors, std::vector<LoraTarget> targets)
      : lists_(std::make_shared<const Lists>(Lists{std::move(tensors), std::move(targets)})) {}
  std::span<const Tensor> tensors() const { return lists_->tensors; }
  const Tensor* find(Role role, int layer = -1) const;
  std::int64_t parameters() const;  // excludes buffers
  // The projections q, k, v, o, gate, up and down of each layer, as far as they exist, in layer order.
  std::span<const LoraTarget> lora_targets() const { return lists_->targets; }

 private:
  struct Lists {
    std::vector<Tensor> tensors;
    std::vector<LoraTarget> targets;
  };
  static std::shared_ptr<const Lists> listed(const Config& config);
  std::shared_ptr<const Lists> lists_;
};

std::string_view hf_module_name(Role role);  // "q_proj", "gate_proj", ...; empty if LoRA cannot adapt it

}  // namespace mw::model
