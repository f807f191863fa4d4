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

namespace {

using model::Role;

class StageLister {
 public:
  explicit StageLister(const ComputeSharding& form) : form_(form) {}

  template <class Each>
  void for_axes(AxisSet set, const Each& each) const {
    for (int a = 0; a < form_.axes(); ++a)
      if (set >> a & 1) each(a);
  }
  void add(CollectiveKind kind, int axis, int group, Cause cause, std::int64_t full) {
    known_ |= AxisSet{1} << axis;
    list_.push_back({kind, axis, group, cause, full, full > 0 ? bytes_sent(kind, Bytes(full), group).value : 0});
  }
  // Pieces may be misaligned: heads over (fsdp, tp) are not the heads that tp alone gives.
  std::vector<Stage> with_others(CollectiveKind kind, Cause cause) {
    for_axes((form_.batch() | form_.model()) & ~known_, [&](int a) { add(kind, a, form_.size(a), cause, 0); });
    return std::move(list_);
  }

 private:
  const ComputeSharding& form_;
  AxisSet known_ = 0;
  std::vector<Stage> list_;
};

}  // namespace

AxisSet contributing(const PlacedTensor& tensor, const ComputeSharding& form) {
  const bool router =
      tensor.base == Role::router_proj || tensor.base == Role::router_scale || tensor.base == Role::per_expert_scale;
  return form.batch() | (router ? 0 : form.parallel(tensor));
}

std::vector<Stage> gather_stages(const PlacedTensor& tensor, const ComputeSharding& form) {
  StageLister list(form);
  const AxisSet gathered = form.stored(tensor) & ~form.working(tensor);
  std::int64_t full = tensor.elements();
  list.for_axes(gathered, [&](int a) { full *= form.size(a); });
  list.for_axes(gathered, [&](int a) {
    const Cause cause = form.batch() >> a & 1 ? Cause::gather_shards : Cause::inefficient_spec;
    list.add(CollectiveKind::all_gather, a, form.size(a), cause, full);
    full /= form.size(a);
  });
  return list.with_others(CollectiveKind::all_gather, Cause::inefficient_spec);
}

std::vector<Stage> sum_stages(const PlacedTensor& tensor, const ComputeSharding& form) {
  StageLister list(form);
  const AxisSet stored = form.stored(tensor), summed = contributing(tensor, form) & ~form.working(tensor);
  std::int64_t full = tensor.elements();
  list.for_axes(summed & stored, [&](int a) { full *= form.size(a); });
  list.for_axes(summed & stored, [&](int a) {
    list.add(CollectiveKind::reduce_scatter, a, form.size(a), Cause::gradients, full);
    full /= form.size(a);
  });
  const auto all_reduce = [&](int a, int group) {  // of several axes each inner one sums its device's part of the outer
    list.add(CollectiveKind::all_reduce, a, group, Cause::gradients, full);
    full = (full + group - 1) / group;
  };
  list.for_axes(summed & ~stored, [&](int a) { all_reduce(a, form.size(a)); });
  if (tensor.uneven == UnevenSplit::repeated)
    list.for_axes(form.working(tensor), [&](int a) {  // devices with the same KV head
      const auto same = static_cast<int>(form.size(a) / std::min<std::int64_t>(form.size(a), tensor.shards));
      if (same > 1) all_reduce(a, same);
    });
  return list.with_others(CollectiveKind::reduce_scatter, Cause::gradients);
}

size_t stage_of(std::span<const Stage> stages, std::span<const int> own, std::span<const int> other) {
  const auto at = std::find_if(stages.begin(), stages.end(), [&](const Stage& s) {
    return own[static_cast<size_t>(s.axis)] != other[static_cast<size_t>(s.axis)];
  });
  return static_cast<size_t>(at - stages.begin());
}

std::vector<int> group_of(const Mesh& mesh, int device, AxisSet axes) {
  const std::vector<int> own = coordinate(mesh, device);
  std::vector<int> group;
  for (int other = 0; other < mesh.devices(); ++other) {
    const std::vector<int> at = coordinate(mesh, other);
    bool same = true;
    for (size_t a = 0; a < own.size(); ++a) same = same && (axes >> a & 1 || at[a] == own[a]);
    if (same) group.push_back(other);
  }
  return group;
}

}  // namespace mw::mesh
