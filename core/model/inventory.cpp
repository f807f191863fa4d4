// SPDX-License-Identifier: Apache-2.0
// Names and shapes in safetensors files: transformers modeling_{gemma2,gemma3,gemma3n,gemma4,llama,qwen3}.py. NNX paths
// of Tunix: tunix/models/{gemma,gemma3,gemma4,llama3,qwen3}; Tunix lacks Gemma 3n, whose other tensors have the names
// in files.
#include "core/model/inventory.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>

namespace mw::model {
namespace {

using Shape = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;

constexpr std::array<std::string_view, 44> kRoleNames{// in the order of Role
                                                      "embed",
                                                      "final_norm",
                                                      "lm_head",
                                                      "ple_embed",
                                                      "ple_model_proj",
                                                      "ple_model_norm",
                                                      "input_norm",
                                                      "post_attention_norm",
                                                      "pre_ffw_norm",
                                                      "post_ffw_norm",
                                                      "q_norm",
                                                      "k_norm",
                                                      "q_proj",
                                                      "k_proj",
                                                      "v_proj",
                                                      "o_proj",
                                                      "gate_proj",
                                                      "up_proj",
                                                      "down_proj",
                                                      "layer_scalar",
                                                      "ple_gate",
                                                      "ple_proj",
                                                      "post_ple_norm",
                                                      "router_proj",
                                                      "router_scale",
                                                      "per_expert_scale",
                                                      "experts_gate_up",
                                                      "experts_down",
                                                      "moe_pre_ffw_norm",
                                                      "dense_post_ffw_norm",
                                                      "moe_post_ffw_norm",
                                                      "altup_projections",
                                                      "altup_unembed_projections",
                                                      "altup_router",
                                                      "altup_router_norm",
                                                      "altup_prediction_coefs",
                                                      "altup_correction_coefs",
                                                      "altup_output_scale",
                                                      "laurel_left",
                                                      "laurel_right",
                                                      "laurel_norm",
                                                      "lora_a",
                                                      "lora_b",
                                                      "lora_m"};

// Lists the tensors: embeddings, layers, final norm, lm_head.
class InventoryBuilder {
 public:
  InventoryBuilder(const Config& config, std::vector<Tensor>& tensors, std::vector<LoraTarget>& targets)
      : c_(config), tensors_(tensors), targets_(targets) {}

  void build() {
    embeddings();
    for (layer_ = 0; layer_ < static_cast<int>(c_.layers.size()); ++layer_) {
      const Layer& l = c_.layers[static_cast<size_t>(layer_)];
      if (has_llama_layers(c_)) {
        llama_layer(l);
        continue;
      }
      attention(l);
      mlp(l);
      if (c_.experts > 0) experts();
      if (c_.ple_dim > 0) layer_ple();
      if (c_.altup_inputs > 1) altup();
      if (c_.laurel_rank > 0) laurel();
      if (c_.layer_scalar) {
        add(Role::layer_scalar, "layer_scalar", {1}, {{Axis::one, 1}}, "skip_scale");
        tensors_.back().is_buffer = true;
      }
    }
    layer_ = -1;
    norm(Role::final_norm, "norm", "final_norm");
    if (c_.tied_embeddings) return;
    add(Role::lm_head, "lm_head.weight", {c_.vocab, c_.dim}, {{Axis::embed, c_.dim}, {Axis::vocab, c_.vocab}},
        "lm_head.w");
    tensors_.back().hf_name = "lm_head.weight";  // without the prefix
  }

 private:
  void embeddings() {
    add(Role::embed, "embed_tokens.weight", {c_.vocab, c_.dim}, {{Axis::vocab, c_.vocab}, {Axis::embed, c_.dim}},
        "embedder.input_embedding");
    if (c_.altup_inputs > 1) {
      altup_matrices(Role::altup_projections, "altup_projections");
      altup_matrices(Role::altup_unembed_projections, "altup_unembed_projections");
    }
    if (c_.ple_dim == 0) return;
    const std::int64_t all = static_cast<std::int64_t>(c_.layers.size()) * c_.ple_dim;
    const std::int64_t rows = c_.ple_vocab > 0 ? c_.ple_vocab : c_.vocab;
    add(Role::ple_embed, "embed_tokens_per_layer.weight", {rows, all}, {{Axis::vocab, rows}, {Axis::ple, all}},
        "embedder.per_layer_input_embedding");
    add(Role::ple_model_proj, "per_layer_model_projection.weight", {all, c_.dim},
        {{Axis::embed, c_.dim}, {Axis::ple, all}}, "embedder.per_layer_model_projection.w");
    add(Role::ple_model_norm, "per_layer_projection_norm.weight", {c_.ple_dim}, {{Axis::ple, c_.ple_dim}},
        "embedder.per_layer_projection_norm.scale");
  }

  void attention(const Layer& l) {
    const std::int64_t n = l.heads, k = l.kv_heads, h = l.head_dim, d = c_.dim;
    const bool fused = n == k && c_.family != Family::gemma4;  // Tunix has one qkv_einsum if heads == kv_heads
    norm(Role::input_norm, "input_layernorm", "pre_attention_norm");
    linear(Role::q_proj, "self_attn.q_proj", n * h, d, {{Axis::heads, n}, {Axis::embed, d}, {Axis::head_dim, h}},
           fused ? "attn.qkv_einsum.w" : "attn.q_einsum.w", fused ? 0 : -1);
    const Dims kv{{Axis::kv_heads, k}, {Axis::embed, d}, {Axis::head_dim, h}};
    const char* kv_path = fused ? "attn.qkv_einsum.w" : l.has_v ? "attn.kv_einsum.w" : "attn.k_einsum.w";
    if (l.has_k) linear(Role::k_proj, "self_attn.k_proj", k * h, d, kv, kv_path, fused ? 1 : l.has_v ? 0 : -1);
    if (l.has_k && l.has_v) linear(Role::v_proj, "self_attn.v_proj", k * h, d, kv, kv_path, fused ? 2 : 1);
    linear(Role::o_proj, "self_attn.o_proj", d, n * h, {{Axis::heads, n}, {Axis::head_dim, h}, {Axis::embed, d}},
           "attn.attn_vec_einsum.w");
    if (c_.qk_norm) {
      add(Role::q_norm, "self_attn.q_norm.weight", {h}, {{Axis::head_dim, h}}, "attn._query_norm.scale");
      if (l.has_k) add(Role::k_norm, "self_attn.k_norm.weight", {h}, {{Axis::head_dim, h}}, "attn._key_norm.scale");
    }
    norm(Role::post_attention_norm, "post_attention_layernorm",
         c_.family == Family::gemma2 ? "post_attn_norm" : "post_attention_norm");
  }

  void mlp(const Layer& l) {
    const std::int64_t f = l.mlp_dim, d = c_.dim;
    norm(Role::pre_ffw_norm, "pre_feedforward_layernorm", "pre_ffw_norm");
    mlp_linears(f, d);
    norm(Role::post_ffw_norm, "post_feedforward_layernorm", "post_ffw_norm");
  }

  void mlp_linears(std::int64_t f, std::int64_t d) {
    const Dims in{{Axis::embed, d}, {Axis::mlp, f}};
    linear(Role::gate_proj, "mlp.gate_proj", f, d, in, "mlp.gate_proj.kernel");
    linear(Role::up_proj, "mlp.up_proj", f, d, in, "mlp.up_proj.kernel");
    linear(Role::down_proj, "mlp.down_proj", d, f, {{Axis::mlp, f}, {Axis::embed, d}}, "mlp.down_proj.kernel");
  }

  // Gemma 1, Llama, Mistral and Qwen3: norms before attention and MLP only; transformers calls the latter
  // post_attention_layernorm.
  void llama_layer(const Layer& l) {
    const std::int64_t n = l.heads, k = l.kv_heads, h = l.head_dim, d = c_.dim;
    const Dims kv{{Axis::embed, d}, {Axis::kv_heads, k}, {Axis::head_dim, h}};
    norm(Role::input_norm, "input_layernorm", "input_layernorm");
    linear(Role::q_proj, "self_attn.q_proj", n * h, d, {{Axis::embed, d}, {Axis::heads, n}, {Axis::head_dim, h}},
           "attn.q_proj.w");
    linear(Role::k_proj, "self_attn.k_proj", k * h, d, kv, "attn.k_proj.w");
    linear(Role::v_proj, "self_attn.v_proj", k * h, d, kv, "attn.v_proj.w");
    linear(Role::o_proj, "self_attn.o_proj", d, n * h, {{Axis::heads, n}, {Axis::head_dim, h}, {Axis::embed, d}},
           "attn.o_proj.w");
    if (c_.qk_norm) {
      add(Role::q_norm, "self_attn.q_norm.weight", {h}, {{Axis::head_dim, h}}, "attn.q_norm.w");
      add(Role::k_norm, "self_attn.k_norm.weight", {h}, {{Axis::head_dim, h}}, "attn.k_norm.w");
    }
    norm(Role::pre_ffw_norm, "post_attention_layernorm", "post_attention_layernorm");
    if (c_.experts > 0)
      qwen_experts();
    else
      mlp_linears(l.mlp_dim, d);
  }

  // Qwen3 MoE, as transformers 5 holds it; the files on the hub have three matrices for each expert.
  void qwen_experts() {
    const std::int64_t e = c_.experts, f = c_.expert_dim, d = c_.dim;
    add(Role::router_proj, "mlp.gate.weight", {e, d}, {{Axis::embed, d}, {Axis::experts, e}}, "mlp.router.w");
    add(Role::experts_gate_up, "mlp.experts.gate_up_proj", {e, 2 * f, d},
        {{Axis::experts, e}, {Axis::one, 2}, {Axis::mlp, f}, {Axis::embed, d}}, "mlp.gate_up_proj");
    add(Role::experts_down, "mlp.experts.down_proj", {e, d, f}, {{Axis::experts, e}, {Axis::mlp, f}, {Axis::embed, d}},
        "mlp.down_proj");
  }

  void experts() {
    const std::int64_t e = c_.experts, f = c_.expert_dim, d = c_.dim;
    add(Role::router_proj, "router.proj.weight", {e, d}, {{Axis::embed, d}, {Axis::experts, e}}, "moe.router_logits");
    add(Role::router_scale, "router.scale", {d}, {{Axis::embed, d}}, "moe.router_scale");
    add(Role::per_expert_scale, "router.per_expert_scale", {e}, {{Axis::experts, e}}, "moe.per_expert_scale");
    // Rows [0, f) are the gate projection, [f, 2f) the up projection; Tunix has a separate axis for the two.
    add(Role::experts_gate_up, "experts.gate_up_proj", {e, 2 * f, d},
        {{Axis::experts, e}, {Axis::one, 2}, {Axis::mlp, f}, {Axis::embed, d}}, "moe.gating_einsum");
    add(Role::experts_down, "experts.down_proj", {e, d, f}, {{Axis::experts, e}, {Axis::mlp, f}, {Axis::embed, d}},
        "moe.linear");
    norm(Role::moe_pre_ffw_norm, "pre_feedforward_layernorm_2", "moe_pre_ffw_norm");
    norm(Role::dense_post_ffw_norm, "post_feedforward_layernorm_1", "dense_post_ffw_norm");
    norm(Role::moe_post_ffw_norm, "post_feedforward_layernorm_2", "moe_post_ffw_norm");
  }

  void layer_ple() {
    const std::int64_t p = c_.ple_dim, d = c_.dim;
    add(Role::ple_gate, "per_layer_input_gate.weight", {p, d}, {{Axis::embed, d}, {Axis::ple, p}},
        "per_layer_input_gate.w");
    add(Role::ple_proj, "per_layer_projection.weight", {d, p}, {{Axis::ple, p}, {Axis::embed, d}},
        "per_layer_projection.w");
    norm(Role::post_ple_norm, "post_per_layer_input_norm", "post_per_layer_input_norm");
  }

  void altup_matrices(Role role, const std::string& hf) {
    const std::int64_t others = c_.altup_inputs - 1, d = c_.dim;
    add(role, hf, {others, d, d}, {{Axis::one, others}, {Axis::embed, d}, {Axis::one, d}}, hf);
  }

  void altup() {
    const std::int64_t n = c_.altup_inputs, d = c_.dim;
    add(Role::altup_router, "altup.modality_router.weight", {n, d}, {{Axis::embed, d}, {Axis::one, n}},
        "altup.modality_router.w");
    norm(Role::altup_router_norm, "altup.router_norm", "altup.router_norm");
    add(Role::altup_prediction_coefs, "altup.prediction_coefs.weight", {n * n, n}, {{Axis::one, n}, {Axis::one, n * n}},
        "altup.prediction_coefs.w");
    add(Role::altup_correction_coefs, "altup.correction_coefs.weight", {n, n}, {{Axis::one, n}, {Axis::one, n}},
        "altup.correction_coefs.w");
    add(Role::altup_output_scale, "altup.correct_output_scale", {d}, {{Axis::embed, d}}, "altup.correct_output_scale");
  }

  void laurel() {
    const std::int64_t r = c_.laurel_rank, d = c_.dim;
    add(Role::laurel_left, "laurel.linear_left.weight", {r, d}, {{Axis::embed, d}, {Axis::one, r}},
        "laurel.linear_left.w");
    add(Role::laurel_right, "laurel.linear_right.weight", {d, r}, {{Axis::one, r}, {Axis::embed, d}},
        "laurel.linear_right.w");
    norm(Role::laurel_norm, "laurel.post_laurel_norm", "laurel.post_laurel_norm");
  }

  void norm(Role role, const std::string& hf, const std::string& tunix) {
    add(role, hf + ".weight", {c_.dim}, {{Axis::embed, c_.dim}}, tunix + (has_llama_layers(c_) ? ".w" : ".scale"));
  }

  void linear(Role role, const std::string& hf, std::int64_t out, std::int64_t in, Dims dims, const std::string& tunix,
              int slot = -1) {
    add(role, hf + ".weight", {out, in}, std::move(dims), tunix);
    tensors_.back().tunix_slot = slot;
    const std::string module = c_.hf_prefix + scope() + hf;
    const std::string peft = "base_model.model." + module;
    targets_.push_back({role, layer_, in, out, module, peft + ".lora_A.weight", peft + ".lora_B.weight"});
  }

  void add(Role role, const std::string& hf, Shape shape, Dims dims, const std::string& tunix) {
    Tensor t;
    t.role = role;
    t.layer = layer_;
    t.name = scope() + std::string(kRoleNames[static_cast<size_t>(role)]);
    t.hf_shape = std::move(shape);
    t.dims = std::move(dims);
    t.hf_name = c_.hf_prefix + scope() + hf;
    t.tunix_path = scope() + tunix;
    tensors_.push_back(std::move(t));
  }

  std::string scope() const { return layer_ < 0 ? "" : "layers." + std::to_string(layer_) + "."; }

  const Config& c_;
  std::vector<Tensor>& tensors_;
  std::vector<LoraTarget>& targets_;
  int layer_ = -1;
};

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t size : hf_shape) n *= size;
  return n;
}

std::int64_t Tensor::matrix_rows() const {
  if (hf_shape.size() < 3) return elements() / hf_shape.back();
  return role == Role::experts_gate_up ? hf_shape[1] / 2 : hf_shape[1];
}

std::string_view hf_module_name(Role role) {
  return role >= Role::q_proj && role <= Role::down_proj ? kRoleNames[static_cast<size_t>(role)] : "";
}

TensorInventory::TensorInventory(const Config& config) : lists_(listed(config)) {}

// A plan and its fixes ask for the same few configs again and again, and listing one costs more than planning it.
std::shared_ptr<const TensorInventory::Lists> TensorInventory::listed(const Config& config) {
  constexpr size_t kMost = 8;
  static std::mutex mutex;
  static std::deque<std::pair<Config, std::shared_ptr<const Lists>>> lately;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [known, lists] : lately)
      if (known == config) return lists;
  }
  const auto lists = std::make_shared<Lists>();
  InventoryBuilder(config, lists->tensors, lists->targets).build();
  const std::lock_guard lock(mutex);
  lately.emplace_front(config, lists);
  if (lately.size() > kMost) lately.pop_back();
  return lists;
}

const Tensor* TensorInventory::find(Role role, int layer) const {
  const auto at = std::find_if(lists_->tensors.begin(), lists_->tensors.end(),
                               [&](const Tensor& t) { return t.role == role && t.layer == layer; });
  return at == lists_->tensors.end() ? nullptr : &*at;
}

std::int64_t TensorInventory::parameters() const {
  std::int64_t n = 0;
  for (const Tensor& t : lists_->tensors)
    if (!t.is_buffer) n += t.elements();
  return n;
}

}  // namespace mw::model
