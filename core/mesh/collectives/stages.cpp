// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/stages.h"

#include <algorithm>

namespace mw::mesh {
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
