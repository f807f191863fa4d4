// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/compute_sharding.h"

#include <algorithm>

namespace mw::mesh {
namespace {

using model::Axis;
using model::Role;

int key_of(Role role, int layer) {
  return (layer + 1) * 64 + static_cast<int>(role);
}

// Whether a block can compute with tensors that stay split along this dimension.
bool is_parallel(Block block, Axis axis) {
  switch (block) {
    case Block::attention:
      return axis == Axis::heads || axis == Axis::kv_heads;
    case Block::mlp:
    case Block::experts:
      return axis == Axis::mlp;
    case Block::ple:
      return axis == Axis::ple;
    case Block::vocab:
      return axis == Axis::vocab;
    case Block::none:
      break;
  }
  return false;
}

}  // namespace

Block block_of(Role role) {
  switch (role) {
    case Role::q_proj:
    case Role::k_proj:
    case Role::v_proj:
    case Role::o_proj:
    case Role::q_norm:
    case Role::k_norm:
      return Block::attention;
    case Role::gate_proj:
    case Role::up_proj:
    case Role::down_proj:
      return Block::mlp;
    case Role::experts_gate_up:
    case Role::experts_down:
    case Role::router_proj:
    case Role::router_scale:
    case Role::per_expert_scale:
      return Block::experts;
    case Role::ple_gate:
    case Role::ple_proj:
      return Block::ple;
    case Role::embed:
    case Role::lm_head:
    case Role::ple_embed:
      return Block::vocab;
    default:
      return Block::none;
  }
}

bool splits_inputs(Role projection) {
  return projection == Role::o_proj || projection == Role::down_proj;
}

std::string_view to_string(Block block) {
  static constexpr std::string_view kNames[] = {"attention", "mlp", "experts", "ple", "vocabulary", ""};
  return kNames[static_cast<size_t>(block)];
}

ComputeSharding::ComputeSharding(const Mesh& mesh, const Placement& placement, const StepShape& step) {
  constexpr size_t kMost = 31;
  for (size_t i = 0; i < std::min(mesh.axes.size(), kMost); ++i) {
    names_.push_back(mesh.axes[i].name);
    sizes_.push_back(mesh.size(names_.back()));
    if (sizes_.back() <= 1) continue;
    const bool rows = std::find(step.batch_axes.begin(), step.batch_axes.end(), names_.back()) != step.batch_axes.end();
    (rows ? batch_ : model_) |= AxisSet{1} << i;
    if (rows && names_.back() == kExpertAxis) exchanged_ |= AxisSet{1} << i;
  }
  at_.reserve(placement.tensors.size());
  for (const PlacedTensor& p : placement.tensors) {
    at_[key_of(p.role, p.layer)] = &p;
    auto& blocks = parallel_.try_emplace(p.layer, std::array<AxisSet, 4>{}).first->second;
    if (p.role == Role::q_proj) blocks[0] = on(&p, Axis::heads) & model_;
    if (p.role == Role::gate_proj) blocks[1] = on(&p, Axis::mlp) & model_;
    if (p.role == Role::experts_gate_up) blocks[2] = on(&p, Axis::mlp) & model_;
    if (p.role == Role::ple_gate) blocks[3] = on(&p, Axis::ple) & model_;
  }
  if (step.residual == ResidualLayout::split) residual_ = parallel(Block::attention, 0) | parallel(Block::mlp, 0);
}

AxisSet ComputeSharding::set_of(const std::vector<std::string>& axes) const {
  AxisSet set = 0;
  for (const std::string& axis : axes)
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == axis && sizes_[i] > 1) set |= AxisSet{1} << i;
  return set;
}

AxisSet ComputeSharding::on(const PlacedTensor* p, Axis dimension) const {
  AxisSet set = 0;
  for (size_t d = 0; p && d < p->dims.size(); ++d)
    if (p->dims[d].axis == dimension) set |= set_of(p->spec.dims[d]);
  return set;
}

AxisSet ComputeSharding::parallel(Block block, int layer) const {
  if (block == Block::vocab || block == Block::none) return 0;
  const auto at = parallel_.find(layer);
  return at == parallel_.end() ? 0 : at->second[static_cast<size_t>(block)];
}

AxisSet ComputeSharding::parallel(const PlacedTensor& p) const {
  const Block block = block_of(p.base);
  return block == Block::vocab ? on(&p, Axis::vocab) & model_ : parallel(block, p.layer);
}

AxisSet ComputeSharding::stored(const PlacedTensor& tensor) const {
  AxisSet set = 0;
  for (const auto& axes : tensor.spec.dims) set |= set_of(axes);
  return set;
}

AxisSet ComputeSharding::working(const PlacedTensor& p) const {
  const Block block = block_of(p.base);
  if (block == Block::none) return p.dims.size() == 1 ? on(&p, Axis::embed) & residual_ : 0;
  AxisSet set = 0;
  for (size_t d = 0; d < p.dims.size(); ++d)
    if (is_parallel(block, p.dims[d].axis)) set |= set_of(p.spec.dims[d]);
  return (set & parallel(p)) | (block == Block::experts ? on(&p, Axis::experts) & batch_ & exchanged_ : 0);
}

AxisSet ComputeSharding::expert_axes(int layer) const {
  const PlacedTensor* gate = find(Role::experts_gate_up, layer);
  return gate ? on(gate, Axis::experts) & batch_ & exchanged_ : 0;
}

const PlacedTensor* ComputeSharding::find(Role role, int layer) const {
  const auto at = at_.find(key_of(role, layer));
  return at == at_.end() ? nullptr : at->second;
}

}  // namespace mw::mesh
