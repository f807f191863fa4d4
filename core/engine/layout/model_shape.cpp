// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/model_shape.h"

#include <algorithm>

#include "core/base/buffer_sizes.h"

namespace mw::engine {
namespace {

using model::Role;
using model::WeightType;

RopeSpec rope_spec(const model::Layer& layer) {
  const float share = layer.rope == model::Rope::proportional ? layer.rope_factor : 1.0f;
  return {.theta = layer.rope_theta,
          .divisor = layer.rope == model::Rope::linear ? layer.rope_factor : 1.0f,
          .head_dim = layer.head_dim,
          .pairs = static_cast<int>(share * static_cast<float>(layer.head_dim)) / 2};
}

}  // namespace

Projection projection_of(Role role) {
  constexpr Role kRoles[] = {Role::q_proj, Role::k_proj,    Role::v_proj,
                             Role::o_proj, Role::gate_proj, Role::up_proj};  // in the order of Projection
  return static_cast<Projection>(std::find(std::begin(kRoles), std::end(kRoles), role) - std::begin(kRoles));
}

ModelShape::ModelShape(const model::Config& whole, WeightStorage storage, const mesh::LocalConfig* local)
    : config(local ? local->config : whole),
      inventory(local ? mesh::local_inventory(*local) : model::TensorInventory(config)),
      type(storage.type),
      use(storage.use),
      is_part(local != nullptr),
      vocab_parts(local ? local->vocab_parts : 1) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const model::Layer& layer = config.layers[i];
    const RopeSpec spec = rope_spec(layer);
    const auto found = std::find(rope_specs.begin(), rope_specs.end(), spec);
    layer_shapes.push_back({.rope = static_cast<int>(found - rope_specs.begin()),
                            .group = local ? local->layers[i].group : layer.heads / layer.kv_heads});
    if (found == rope_specs.end()) rope_specs.push_back(spec);
    if (layer.kv_donor >= 0) layer_shapes[static_cast<size_t>(layer.kv_donor)].shares_kv = true;
  }
}

std::vector<LoraShape> lora_shapes(const model::TensorInventory& inventory,
                                   std::span<const mesh::AdapterShape> adapters) {
  std::vector<LoraShape> shapes;
  for (const mesh::AdapterShape& a : adapters)
    for (const model::LoraTarget& t : inventory.lora_targets())
      if (t.role == a.role && t.layer == a.layer)
        shapes.push_back({t.layer, projection_of(t.role), t.in, t.out, a.rank, a.dora});
  return shapes;
}

void ModelShape::set_adapters(std::span<const mesh::AdapterShape> adapters) {
  lora_shapes = engine::lora_shapes(inventory, adapters);
  for (LayerShape& layer : layer_shapes) layer.ranks = {};
  for (const LoraShape& a : lora_shapes)
    layer_shapes[static_cast<size_t>(a.layer)].ranks[static_cast<size_t>(a.projection)] = a.rank;
}

std::int64_t ModelShape::ple_width() const {
  const model::Tensor* gate = inventory.find(Role::ple_gate, 0);
  return gate ? gate->hf_shape[0] : 0;
}
int ModelShape::widest_head() const {
  int widest = 0;
  for (const model::Layer& l : config.layers) widest = std::max(widest, l.head_dim);
  return widest;
}

std::int64_t ModelShape::visible_keys(size_t layer, std::int64_t tokens) const {
  const bool slides = config.layers[layer].attention == model::Attention::sliding && config.sliding_window > 0;
  return slides ? std::min<std::int64_t>(tokens, config.sliding_window) : tokens;
}

int ModelShape::lowest_trained_layer() const {
  int lowest = full ? 0 : static_cast<int>(config.layers.size());
  for (const LoraShape& a : lora_shapes) lowest = std::min(lowest, a.layer);
  return lowest;
}

MatrixFormat ModelShape::matrix_format(std::int64_t matrix_rows, std::int64_t cols) const {
  const bool panels = sizes::packable(matrix_rows, cols);
  // Trained weights and those that devices exchange stay in rows, as their gradients are.
  if (type == WeightType::f32) return panels && !full && !is_part ? MatrixFormat::packed_f32 : MatrixFormat::f32;
  if (type == WeightType::int8 && panels) return MatrixFormat::int8;
  if (use == NetworkUse::inference && type == WeightType::bf16 && sizes::fits_bf16x12(matrix_rows, cols))
    return MatrixFormat::bf16x12;
  return panels ? MatrixFormat::packed : MatrixFormat::bf16;
}

bool ModelShape::streams_loss() const {
  const model::Tensor* head = inventory.find(config.tied_embeddings ? Role::embed : Role::lm_head);
  return !full && matrix_format(head->matrix_rows(), head->hf_shape.back()) == MatrixFormat::packed;
}

std::int64_t matrix_bytes(MatrixFormat format, std::int64_t rows, std::int64_t cols) {
  switch (format) {
    case MatrixFormat::f32:
    case MatrixFormat::packed_f32:
      return sizes::aligned_bytes(rows * cols * 4);
    case MatrixFormat::int8:  // and a bf16 scale for each group of columns
      return sizes::aligned_bytes(rows * cols) + sizes::aligned_bytes(rows * sizes::scale_groups(cols) * 2);
    case MatrixFormat::bf16x12:
      return sizes::aligned_bytes(sizes::bf16x12_bytes(rows, cols));
    default:
      return sizes::aligned_bytes(rows * cols * 2);
  }
}

}  // namespace mw::engine
