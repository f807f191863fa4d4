// SPDX-License-Identifier: Apache-2.0
// Core's construction: room for every tensor, and which tensor is what in each layer.
#include "core/engine/transformer/core.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/engine/transformer/checks.h"

namespace mw::engine {
namespace {

using model::Role;

const model::Config& checked(const model::Config& config) {
  check_model(config);
  return config;
}

float rounded_to_bf16(const VectorKernels& kernels, float x) {
  std::uint16_t half;
  kernels.narrow(1, &x, &half);
  kernels.widen(1, &half, &x);
  return x;
}

RopeSpec rope_of(const model::Layer& l) {
  const float share = l.rope == model::Rope::proportional ? l.rope_factor : 1.0f;
  return {.theta = l.rope_theta,
          .divisor = l.rope == model::Rope::linear ? l.rope_factor : 1.0f,
          .head_dim = l.head_dim,
          .pairs = static_cast<int>(share * static_cast<float>(l.head_dim)) / 2};
}

int widest_head(const model::Config& config) {
  int widest = 0;
  for (const model::Layer& l : config.layers) widest = std::max(widest, l.head_dim);
  return widest;
}

}  // namespace

Core::Core(const model::Config& c, Device& d, model::WeightType t, CollectiveHooks* p, Use u)
    : part(p),
      config(p ? p->local().config : checked(c)),
      inventory(p ? mesh::local_inventory(p->local()) : model::TensorInventory(config)),
      device(d),
      type(t),
      use(u),
      gemm(d, t) {
  allocate_weights();
  embedding = need(Role::embed, -1);
  final_norm = need(Role::final_norm, -1);
  embed_scale = std::sqrt(static_cast<float>(config.dim));
  ple_embedding = find(Role::ple_embed, -1);
  ple_model_proj = find(Role::ple_model_proj, -1);
  ple_model_norm = find(Role::ple_model_norm, -1);
  ple_scale = std::sqrt(static_cast<float>(config.ple_dim));
  if (type != model::WeightType::f32)
    for (float* scale : {&embed_scale, &ple_scale}) *scale = rounded_to_bf16(kernels, *scale);
  for (int layer = 0; layer < static_cast<int>(config.layers.size()); ++layer) connect(layer);
}

// Norms and other vectors are f32, in one buffer, with the gain of norms without weights at its end. All matrices are
// in another, in inventory order: huge pages throughout, and what a step reads one after the other lies so.
void Core::allocate_weights() {
  const std::span<const model::Tensor> tensors = inventory.tensors();
  weights.resize(tensors.size());
  const std::int64_t unit = config.v_norm ? aligned_floats(widest_head(config)) : 0;
  std::int64_t norm_floats = unit;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Weight& w = weights[i];
    w.cols = tensors[i].hf_shape.back();
    w.rows = tensors[i].elements() / w.cols;
    w.vector = tensors[i].hf_shape.size() == 1;
    if (w.vector) w.offset = config.norm_form == model::NormForm::one_plus_w ? 1.0f : 0.0f;
    if (w.vector && stores(i)) norm_floats += aligned_floats(w.cols);
  }
  norms = Buffer<float>(device.arena, MemoryCategory::weights, static_cast<size_t>(norm_floats), "norms");
  std::int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!weights[i].vector && stores(i)) bytes += place(weights[i], tensors[i].matrix_rows(), nullptr);
  matrices = Buffer<std::byte>(device.arena, MemoryCategory::weights, static_cast<size_t>(bytes), "weights");
  std::byte* matrix = matrices.data();
  float* next = norms.data();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Weight& w = weights[i];
    if (!stores(i)) continue;
    if (!w.vector) {
      matrix += place(w, tensors[i].matrix_rows(), matrix);
      continue;
    }
    w.at.f32 = w.f32 = w.norm = next;
    next += aligned_floats(w.cols);
  }
  if (unit == 0) return;
  unit_norm.at.f32 = unit_norm.f32 = next;
  unit_norm.cols = unit, unit_norm.offset = 1.0f;
}

// The bytes of a matrix, which lies at `at`; null: only asked. matrix_rows: of those that are multiplied, if it is
// several.
std::int64_t Core::place(Weight& w, std::int64_t matrix_rows, std::byte* at) {
  const std::int64_t count = w.elements();
  const bool panels = packable(matrix_rows, w.cols);
  if (type == model::WeightType::f32) {
    w.at.f32 = w.f32 = reinterpret_cast<float*>(at);
    return sizes::aligned_bytes(count * 4);
  }
  if (type == model::WeightType::int8 && panels) {
    w.int8 = reinterpret_cast<std::int8_t*>(at);
    w.scales = at ? reinterpret_cast<std::uint16_t*>(at + sizes::aligned_bytes(count)) : nullptr;
    w.at.int8 = {w.int8, w.scales};
    return sizes::aligned_bytes(count) + sizes::aligned_bytes(w.rows * groups_of(w.cols) * 2);
  }
  if (use == Use::inference && gemm.packs() && sizes::slimmable(matrix_rows, w.cols)) {
    w.at.slim = w.slim = at;
    w.rests = &slim_rests;
    return sizes::aligned_bytes(sizes::slim_bytes(w.rows, w.cols));
  }
  w.bf16 = reinterpret_cast<std::uint16_t*>(at);
  (gemm.packs() && panels ? w.at.packed : w.at.bf16) = w.bf16;
  return sizes::aligned_bytes(count * 2);
}

bool Core::stores(size_t weight) const {
  return !part || !part->storage() || part->storage()->is_direct(weight);
}

Weight* Core::find(Role role, int layer) {
  const model::Tensor* tensor = inventory.find(role, layer);
  return tensor ? &weights[static_cast<size_t>(tensor - inventory.tensors().data())] : nullptr;
}

Weight* Core::need(Role role, int layer) {
  Weight* weight = find(role, layer);
  if (!weight)
    throw Error({.id = "ARCH",
                 .message = "the model's inventory lacks a tensor",
                 .file = config.id,
                 .place = "layer " + std::to_string(layer)});
  return weight;
}

void Core::connect(int layer) {
  LayerParts& p = layers.emplace_back();
  p.input_norm = need(Role::input_norm, layer);
  p.post_attention_norm = need(Role::post_attention_norm, layer);
  p.pre_ffw_norm = need(Role::pre_ffw_norm, layer);
  p.post_ffw_norm = need(Role::post_ffw_norm, layer);
  p.q_norm = find(Role::q_norm, layer);
  p.k_norm = find(Role::k_norm, layer);
  p.ple_gate = find(Role::ple_gate, layer);
  p.ple_proj = find(Role::ple_proj, layer);
  p.post_ple_norm = find(Role::post_ple_norm, layer);
  p.layer_scalar = find(Role::layer_scalar, layer);
  p.router = find(Role::router_proj, layer);
  p.router_scale = find(Role::router_scale, layer);
  p.per_expert_scale = find(Role::per_expert_scale, layer);
  p.experts_gate_up = find(Role::experts_gate_up, layer);
  p.experts_down = find(Role::experts_down, layer);
  p.moe_pre_norm = find(Role::moe_pre_ffw_norm, layer);
  p.dense_post_norm = find(Role::dense_post_ffw_norm, layer);
  p.moe_post_norm = find(Role::moe_post_ffw_norm, layer);
  static constexpr Role kRoles[kProjections] = {Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                                                Role::gate_proj, Role::up_proj, Role::down_proj};
  for (int i = 0; i < kProjections; ++i) p.projection[i] = find(kRoles[i], layer);
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  if (config.v_norm && l.has_k) p.v_norm = &unit_norm;
  if (l.kv_donor >= 0) layers[static_cast<size_t>(l.kv_donor)].lends = true;
  const RopeSpec spec = rope_of(l);
  const auto found = std::find(rope_specs.begin(), rope_specs.end(), spec);
  p.rope = static_cast<int>(found - rope_specs.begin());
  if (found == rope_specs.end()) rope_specs.push_back(spec);
}

mesh::Range Core::vocab_rows() const {
  return part ? part->local().vocab : mesh::Range{0, config.vocab};
}

mesh::Range Core::ple_vocab_rows() const {
  return part ? part->local().ple_vocab : mesh::Range{0, config.vocab};
}

void Core::sum_parts(mesh::Block block, int layer, std::int64_t n, float* values) {
  if (part) part->sum_block(block, layer, {values, static_cast<size_t>(n)});
}

void Core::enter_phase(mesh::Phase phase) {
  if (part) part->set_phase(phase);
}

void Core::enter_storage(int what, mesh::Phase phase) {
  if (part && part->storage()) part->storage()->gather_weights(what, phase);
}

void Core::leave_storage(int what) {
  if (part && part->storage() && trainable) part->storage()->reduce_gradients(what);
}

// The calls of a step in their order.
void Core::pass_storage(Want want) {
  const int count = static_cast<int>(layers.size());
  for (int what = ShardedStorage::kEmbeddings; what < count; ++what) enter_storage(what, mesh::Phase::forward);
  enter_storage(ShardedStorage::kHead, mesh::Phase::forward);
  if (want == Want::loss) return;
  leave_storage(ShardedStorage::kHead);
  for (int layer = count - 1; layer >= lowest_trained_layer(); --layer) {
    enter_storage(layer, mesh::Phase::backward);
    leave_storage(layer);
  }
  if (!full) return;
  enter_storage(ShardedStorage::kEmbeddings, mesh::Phase::backward);
  leave_storage(ShardedStorage::kEmbeddings);
}

}  // namespace mw::engine
