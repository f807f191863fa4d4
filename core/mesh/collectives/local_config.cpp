// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/local_config.h"

#include <algorithm>
#include <string>

namespace mw::mesh {
namespace {

using model::Axis;
using model::Role;

std::int64_t size_of(const IndexInterval& r) {
  return r.end - r.begin;
}

bool holds(const IndexInterval& outer, const IndexInterval& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

[[noreturn]] void impossible(const PlacedTensor& tensor, const std::string& message, const std::string& expected) {
  throw Error("ARCH", message,
              {.place = "tensor " + tensor.name,
               .found = to_text(tensor.spec),
               .expected = expected,
               .fix = "leave these tensors to the preset, or give them the same spec"});
}

class Localiser {
 public:
  Localiser(const model::Config& whole, const ComputeSharding& form, const Placement& placement, const Mesh& mesh,
            int device)
      : whole_(whole), form_(form), placement_(placement), at_(coordinate(mesh, device)) {}

  LocalConfig run() {
    out_.config = whole_;
    for (int layer = 0; layer < static_cast<int>(whole_.layers.size()); ++layer) add(layer);
    for (size_t l = 0; l < out_.layers.size(); ++l) borrow(l);
    for (size_t l = 0; l < out_.layers.size(); ++l) {
      const LocalLayer& part = out_.layers[l];
      model::Layer& own = out_.config.layers[l];
      own.heads = static_cast<int>(size_of(part.heads));
      own.kv_heads = static_cast<int>(size_of(part.kv_heads));
      own.mlp_dim = static_cast<int>(size_of(part.mlp));
    }
    out_.experts = same_in_all_layers(Role::experts_gate_up, Axis::mlp, whole_.expert_dim);
    out_.config.expert_dim = static_cast<int>(size_of(out_.experts));
    out_.ple = same_in_all_layers(Role::ple_gate, Axis::ple, whole_.ple_dim);
    std::int64_t rows = 0;
    out_.vocab = vocabulary(Role::embed, rows);
    out_.config.vocab = static_cast<int>(rows);
    if (const PlacedTensor* p = form_.find(Role::embed, -1))
      for (int a = 0; a < form_.axes(); ++a)
        if (form_.parallel(*p) >> a & 1) out_.vocab_parts *= form_.size(a);
    out_.ple_vocab = vocabulary(Role::ple_embed, out_.ple_vocab_rows);
    for (const PlacedTensor& p : placement_.tensors) check(p);
    for (const PlacedTensor& p : placement_.adapters) check(p);
    return std::move(out_);
  }

 private:
  // The range of dimension d on the device if only `axes` split it.
  IndexInterval part(const PlacedTensor& tensor, size_t d, AxisSet axes) const {
    std::int64_t index = 0, ways = 1;
    for (const std::string& name : tensor.spec.dims[d])
      for (int a = 0; a < form_.axes(); ++a)
        if ((axes >> a & 1) && form_.name(a) == name) {
          index = index * form_.size(a) + at_[static_cast<size_t>(a)];
          ways *= form_.size(a);
        }
    const std::int64_t n = tensor.dims[d].size;
    if (tensor.uneven == UnevenSplit::repeated && ways > n && ways % n == 0) index /= ways / n, ways = n;
    const std::int64_t each = (n + ways - 1) / ways;
    return {std::min(n, index * each), std::min(n, (index + 1) * each)};
  }

  size_t dimension(const PlacedTensor& tensor, Axis axis) const {
    const auto at =
        std::find_if(tensor.dims.begin(), tensor.dims.end(), [&](const model::Dim& d) { return d.axis == axis; });
    return static_cast<size_t>(at - tensor.dims.begin());
  }

  // The range of the tensor that determines the block's split; [0, otherwise) if the model does not have it.
  IndexInterval leading(Role role, int layer, Axis axis, std::int64_t otherwise) const {
    const PlacedTensor* p = form_.find(role, layer);
    if (!p) return {0, otherwise};
    const size_t d = dimension(*p, axis);
    std::int64_t ways = 1;
    const AxisSet axes = form_.parallel(block_of(role), layer);
    for (int a = 0; a < form_.axes(); ++a)
      if (axes >> a & 1) ways *= form_.size(a);
    if (p->dims[d].size % ways != 0)
      impossible(*p, "a device's part of a block is not whole", "sizes that the mesh divides");
    return part(*p, d, axes);
  }

  void add(int layer) {
    const model::Layer& l = whole_.layers[static_cast<size_t>(layer)];
    LocalLayer& part = out_.layers.emplace_back();
    part.group = l.heads / l.kv_heads;
    part.heads = leading(Role::q_proj, layer, Axis::heads, l.heads);
    part.kv_heads = {part.heads.begin / part.group, (part.heads.end - 1) / part.group + 1};
    part.mlp = leading(Role::gate_proj, layer, Axis::mlp, l.mlp_dim);
  }

  // A layer that lends its KV heads also computes those that its borrowers read.
  void borrow(size_t layer) {
    const int donor = whole_.layers[layer].kv_donor;
    if (donor < 0) return;
    if (form_.parallel(Block::attention, static_cast<int>(layer)) != form_.parallel(Block::attention, donor))
      impossible(*form_.find(Role::q_proj, static_cast<int>(layer)),
                 "a layer that borrows keys and values splits its heads differently from the layer that computes them",
                 "the spec of layers." + std::to_string(donor) + ".q_proj");
    IndexInterval &own = out_.layers[static_cast<size_t>(donor)].kv_heads, &borrowed = out_.layers[layer].kv_heads;
    own = borrowed = {std::min(own.begin, borrowed.begin), std::max(own.end, borrowed.end)};
    for (size_t l = 0; l < layer; ++l)
      if (whole_.layers[l].kv_donor == donor) out_.layers[l].kv_heads = own;
  }

  IndexInterval same_in_all_layers(Role role, Axis axis, std::int64_t size) const {
    const IndexInterval first = leading(role, 0, axis, size);
    for (int layer = 1; layer < static_cast<int>(whole_.layers.size()); ++layer)
      if (leading(role, layer, axis, size) != first)
        impossible(*form_.find(role, layer), "layers split this tensor in different ways", "one spec for all layers");
    return first;
  }

  IndexInterval vocabulary(Role role, std::int64_t& rows) const {
    const PlacedTensor* p = form_.find(role, -1);
    if (!p) return {};
    const size_t d = dimension(*p, Axis::vocab);
    const AxisSet axes = form_.parallel(*p);
    rows = p->dims[d].size;
    for (int a = 0; a < form_.axes(); ++a)
      if (axes >> a & 1) rows = (rows + form_.size(a) - 1) / form_.size(a);
    return part(*p, d, axes);
  }

  // The range of a tensor that the device needs must lie within its compute sharding.
  void check(const PlacedTensor& tensor) const {
    const Block block = block_of(tensor.base);
    if (block == Block::vocab || block == Block::none || tensor.layer < 0) return;
    const std::vector<IndexInterval> needed = working_piece(out_, tensor);
    for (size_t d = 0; d < tensor.dims.size(); ++d)
      if (!holds(part(tensor, d, form_.working(tensor)), needed[d]))
        impossible(tensor, "its parts lie on other devices than those of the block they are used with",
                   "the axes of the block, in the same order");
  }

  const model::Config& whole_;
  const ComputeSharding& form_;
  const Placement& placement_;
  const std::vector<int> at_;
  LocalConfig out_;
};

}  // namespace

LocalConfig local_config(const model::Config& whole, const ComputeSharding& form, const Placement& placement,
                         const Mesh& mesh, int device) {
  return Localiser(whole, form, placement, mesh, device).run();
}

std::vector<IndexInterval> working_piece(const LocalConfig& local, const PlacedTensor& tensor) {
  const Block block = block_of(tensor.base);
  const LocalLayer* const l = tensor.layer >= 0 ? &local.layers[static_cast<size_t>(tensor.layer)] : nullptr;
  std::vector<IndexInterval> ranges;
  for (const model::Dim& d : tensor.dims) {
    IndexInterval& r = ranges.emplace_back(IndexInterval{0, d.size});
    if (d.axis == Axis::vocab && tensor.base == Role::embed) r = local.vocab;
    if (d.axis == Axis::vocab && tensor.base == Role::ple_embed) r = local.ple_vocab;
    if (!l) continue;
    if (d.axis == Axis::heads) r = l->heads;
    if (d.axis == Axis::kv_heads) r = l->kv_heads;
    if (d.axis == Axis::mlp) r = block == Block::experts ? local.experts : l->mlp;
    if (d.axis == Axis::ple && block == Block::ple) r = local.ple;
  }
  return ranges;
}

model::TensorInventory local_inventory(const LocalConfig& local) {
  const model::TensorInventory made(local.config);
  std::vector<model::Tensor> tensors(made.tensors().begin(), made.tensors().end());
  for (model::Tensor& t : tensors) {  // the config has these whole
    if (t.role == Role::ple_gate) t.hf_shape[0] = size_of(local.ple);
    if (t.role == Role::ple_proj) t.hf_shape[1] = size_of(local.ple);
    if (t.role == Role::ple_embed) t.hf_shape[0] = local.ple_vocab_rows;
  }
  return {std::move(tensors), {made.lora_targets().begin(), made.lora_targets().end()}};
}

}  // namespace mw::mesh
