// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/mesh/layout/indivisible.h"
#include "core/mesh/layout/presets.h"
#include "core/mesh/layout/rule_matcher.h"

namespace mw::mesh {
namespace {

using model::Axis;
using model::Dim;
using model::Role;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t ways(const Mesh& mesh, const std::vector<std::string>& axes) {
  std::int64_t n = 1;
  for (const std::string& axis : axes) n = std::min(n * mesh.size(axis), std::int64_t{1} << 30);
  return n;
}

bool divides(std::int64_t size, std::int64_t ways, UnevenSplit uneven) {
  return uneven == UnevenSplit::padded || size % ways == 0 ||
         (uneven == UnevenSplit::repeated && size > 0 && ways % size == 0);
}

void cut(PlacedTensor& tensor, const Mesh& mesh) {
  tensor.shards = 1;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const std::int64_t n = tensor.dims[d].size, s = ways(mesh, tensor.spec.dims[d]);
    tensor.shard.push_back(ceil_div(n, s));
    tensor.pieces.push_back(n > 0 ? ceil_div(n, tensor.shard.back()) : 1);  // of a config without a vocabulary
    tensor.shards *= tensor.pieces.back();
  }
  tensor.replicas = std::max<std::int64_t>(1, mesh.devices() / tensor.shards);
}

class Placer {
 public:
  Placer(const model::TensorInventory& inventory, const Mesh& mesh, const ShardingRules& rules, ShardingUse use)
      : inventory_(inventory), mesh_(mesh), rules_(rules), use_(use), matcher_(rules, mesh, out_.problems) {}

  Placement run(const std::vector<AdapterShape>& adapters) {
    out_.tensors.reserve(inventory_.tensors().size());
    for (const model::Tensor& t : inventory_.tensors()) {
      at_[{t.layer, t.role}] = out_.tensors.size();
      base(t);
    }
    std::set<int> k_adapted;  // layers, where V shares the A of K
    if (fuses_kv(rules_))
      for (const AdapterShape& a : adapters)
        if (a.role == Role::k_proj) k_adapted.insert(a.layer);
    for (const AdapterShape& a : adapters) {
      const auto found = at_.find({a.layer, a.role});
      if (found == at_.end() || a.rank < 1) continue;
      const size_t i = found->second;
      const bool fused = k_adapted.contains(a.layer) && inventory_.tensors()[i].tunix_slot >= 0 &&
                         (a.role == Role::k_proj || a.role == Role::v_proj);
      if (!fused || a.role == Role::k_proj) adapter(out_.tensors[i], Role::lora_a, a.rank, fused);
      adapter(out_.tensors[i], Role::lora_b, a.rank, false);
      if (a.dora) adapter(out_.tensors[i], Role::lora_m, a.rank, false);
    }
    matcher_.report_unused();
    for (Problem& problem : indivisible_.problems(out_, mesh_)) out_.problems.push_back(std::move(problem));
    return std::move(out_);
  }

 private:
  void base(const model::Tensor& tensor) {
    PlacedTensor p{
        .name = tensor.name, .role = tensor.role, .base = tensor.role, .layer = tensor.layer, .dims = tensor.dims};
    if (!override_for(p, tensor.tunix_path, tensor.tunix_slot)) {
      PresetSpec preset = preset_spec(inventory_, tensor, rules_.preset, use_, mesh_);
      if (rules_.experts == ExpertParallel::on && mesh_.size(kExpertAxis) > 1)
        preset = over_experts(std::move(preset), tensor, rules_.preset);
      p.spec = std::move(preset.spec);
      p.uneven = preset.uneven;
      p.rule = to_string(rules_.preset);
    }
    keep(std::move(p), out_.tensors);
  }

  void adapter(const PlacedTensor& from, Role part, int rank, bool fused) {
    static constexpr const char* kParts[] = {".lora_a", ".lora_b", ".lora_m"};
    PlacedTensor p{.name = from.name + kParts[static_cast<int>(part) - static_cast<int>(Role::lora_a)],
                   .role = part,
                   .base = from.role,
                   .layer = from.layer};
    const Dim r{Axis::rank, rank};
    if (part == Role::lora_b) p.dims.push_back(r);
    for (const Dim& d : from.dims)
      if (contracted(from.role, d.axis) == (part == Role::lora_a)) p.dims.push_back(d);
    if (part == Role::lora_a) p.dims.push_back(r);
    if (!override_for(p, p.name, -1)) {
      PresetSpec derived = adapter_spec(from, part, p.dims, rules_.preset, mesh_);
      p.spec = std::move(derived.spec);
      p.uneven = derived.uneven;
      p.rule = "from " + from.name + (fused ? "; one A for K and V" : "");
    }
    keep(std::move(p), out_.adapters);
  }

  bool override_for(PlacedTensor& tensor, const std::string& path, int slot) {
    if (rules_.overrides.empty()) return false;
    const int rule = matcher_.find(tensor.name, path, tensor.role);
    if (rule < 0) return false;
    tensor.spec = matcher_.spec(rule, tensor.name, tensor.dims.size(), slot);
    tensor.rule = "override: " + rules_.overrides[static_cast<size_t>(rule)].pattern;
    return true;
  }

  void keep(PlacedTensor p, std::vector<PlacedTensor>& list) {
    cut(p, mesh_);
    for (size_t d = 0; d < p.dims.size(); ++d)
      if (!divides(p.dims[d].size, ways(mesh_, p.spec.dims[d]), p.uneven)) indivisible_.add(p, d);
    list.push_back(std::move(p));
  }

  const model::TensorInventory& inventory_;
  const Mesh& mesh_;
  const ShardingRules& rules_;
  const ShardingUse use_;
  Placement out_;
  RuleMatcher matcher_;
  std::map<std::pair<int, Role>, size_t> at_;
  IndivisibleDimensions indivisible_;
};

}  // namespace

std::int64_t PlacedTensor::elements() const {
  return std::accumulate(shard.begin(), shard.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t PlacedTensor::total() const {
  std::int64_t n = 1;
  for (const Dim& d : dims) n *= d.size;
  return n;
}

const PlacedTensor* find_tensor(const Placement& placement, std::string_view tensor) {
  for (const auto* list : {&placement.tensors, &placement.adapters})
    for (const PlacedTensor& p : *list)
      if (p.name == tensor) return &p;
  return nullptr;
}

Placement place(const model::TensorInventory& inventory, const Mesh& mesh, const ShardingRules& rules,
                const std::vector<AdapterShape>& adapters, ShardingUse use) {
  return Placer(inventory, mesh, rules, use).run(adapters);
}

std::vector<int> legal_sizes(const Placement& placement, const Mesh& mesh, std::string_view axis, int most) {
  std::set<std::tuple<std::int64_t, std::int64_t, UnevenSplit>> bounds;  // size, ways of the other axes there
  for (const std::vector<PlacedTensor>* list : {&placement.tensors, &placement.adapters})
    for (const PlacedTensor& p : *list)
      for (size_t d = 0; d < p.dims.size(); ++d) {
        const std::vector<std::string>& axes = p.spec.dims[d];
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
        const std::int64_t others = ways(mesh, axes) / mesh.size(axis);
        if (divides(p.dims[d].size, others, p.uneven)) bounds.insert({p.dims[d].size, others, p.uneven});
      }
  constexpr int kMost = 1 << 16;  // beyond any slice
  std::vector<int> legal;
  for (int n = 1; n <= std::min(most, kMost); ++n)
    if (std::all_of(bounds.begin(), bounds.end(),
                    [&](const auto& b) { return divides(std::get<0>(b), std::get<1>(b) * n, std::get<2>(b)); }))
      legal.push_back(n);
  return legal;
}

namespace {

// The index of the piece of dimension d on the device at coordinates `at`.
std::int64_t piece_of_dimension(const PlacedTensor& tensor, size_t d, const Mesh& mesh, const std::vector<int>& at) {
  std::int64_t index = 0, all = 1;
  for (const std::string& axis : tensor.spec.dims[d]) {
    const auto found =
        std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const MeshAxis& a) { return a.name == axis; });
    if (found == mesh.axes.end()) continue;
    const std::int64_t size = std::max(1, found->size);
    index = index * size + at[static_cast<size_t>(found - mesh.axes.begin())];
    all *= size;
  }
  if (tensor.uneven == UnevenSplit::repeated && all > tensor.pieces[d] && all % tensor.pieces[d] == 0)
    index /= all / tensor.pieces[d];
  return index;
}

}  // namespace

std::vector<Range> piece(const PlacedTensor& tensor, const Mesh& mesh, int device) {
  const std::vector<int> at = coordinate(mesh, device);
  std::vector<Range> ranges;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const std::int64_t begin = piece_of_dimension(tensor, d, mesh, at) * tensor.shard[d], n = tensor.dims[d].size;
    ranges.push_back({std::min(begin, n), std::min(begin + tensor.shard[d], n)});
  }
  return ranges;
}

std::int64_t piece_index(const PlacedTensor& tensor, const Mesh& mesh, int device) {
  const std::vector<int> at = coordinate(mesh, device);
  std::int64_t index = 0;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const std::int64_t here = piece_of_dimension(tensor, d, mesh, at);
    if (here >= tensor.pieces[d]) return -1;
    index = index * tensor.pieces[d] + here;
  }
  return index;
}

}  // namespace mw::mesh
