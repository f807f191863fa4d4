// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/local_model.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"
#include "core/mesh/layout/size_constraints.h"

namespace mw::plan {
namespace {

using model::Axis;
using model::Role;

bool is_batch(const Request& request, std::string_view axis) {
  return axis == "fsdp" || axis == "data" ||
         (axis == mesh::kExpertAxis && request.rules.experts == mesh::ExpertParallel::on);
}

// False if a sharding rule names layers by number, or if per-layer embeddings depend on the number of layers.
bool one_of_each_kind(const Request& request) {
  const auto numbered = [](const mesh::ShardingRule& rule) {
    return std::any_of(rule.pattern.begin(), rule.pattern.end(),
                       [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  };
  return request.model.ple_dim == 0 &&
         std::none_of(request.rules.overrides.begin(), request.rules.overrides.end(), numbered);
}

// Compares everything that memory and time depend on; RoPE does not matter.
bool same_kind(const model::Layer& a, const model::Layer& b) {
  return a.attention == b.attention && a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
         a.mlp_dim == b.mlp_dim && a.gate_sparsity == b.gate_sparsity && a.has_k == b.has_k && a.has_v == b.has_v;
}

std::string kind_name(const model::Config& config, const model::Layer& layer) {
  const bool mixed = std::any_of(config.layers.begin(), config.layers.end(),
                                 [&](const model::Layer& l) { return l.attention != layer.attention; });
  std::string name = !mixed ? "layers" : layer.attention == model::Attention::full ? "global layers" : "sliding layers";
  const bool lends = std::any_of(config.layers.begin(), config.layers.end(), [](const auto& l) { return !l.has_k; });
  if (layer.gate_sparsity > 0) name += " with sparse gates";
  return lends && !layer.has_k ? name + " with borrowed KV" : name;
}

using Adapted = std::optional<std::vector<std::vector<Role>>>;

// `adapted` is indexed by the layers of `inventory`.
std::vector<mesh::AdapterShape> shapes_of(const Request& request, const Adapted& adapted,
                                          const model::TensorInventory& inventory) {
  std::vector<mesh::AdapterShape> shapes;
  if (request.method != model::TrainMethod::lora) return shapes;
  for (const model::LoraTarget& t : inventory.lora_targets()) {
    const auto layer = static_cast<size_t>(t.layer);
    if (adapted && layer >= adapted->size()) continue;
    const std::vector<Role>& roles = adapted ? (*adapted)[layer] : request.targets;
    if (std::find(roles.begin(), roles.end(), t.role) != roles.end())
      shapes.push_back({.role = t.role, .layer = t.layer, .rank = request.lora.rank, .dora = request.lora.dora});
  }
  return shapes;
}

// Keeps one layer of each kind; layers of a kind have equal shapes and adapters.
void reduce(const Request& request, LocalModel& model) {
  model.config = request.model;
  if (!one_of_each_kind(request)) {
    model.layers_represented.assign(request.model.layers.size(), 1);
    model.adapted = request.adapted;
    return;
  }
  model.config.layers.clear();
  if (request.adapted) model.adapted.emplace();
  for (size_t i = 0; i < request.model.layers.size(); ++i) {
    const model::Layer& l = request.model.layers[i];
    const std::vector<Role> adapted =
        request.adapted && i < request.adapted->size() ? (*request.adapted)[i] : std::vector<Role>();
    size_t at = 0;
    while (at < model.config.layers.size() &&
           !(same_kind(model.config.layers[at], l) && (!model.adapted || (*model.adapted)[at] == adapted)))
      ++at;
    if (at < model.config.layers.size()) {
      ++model.layers_represented[at];
      continue;
    }
    model.config.layers.push_back(l);
    model.config.layers.back().kv_donor = -1;
    model.layers_represented.push_back(1);
    if (model.adapted) model.adapted->push_back(adapted);
  }
}

// The number of parts into which model axes split the first dimension on `axis`.
double ways(const Request& request, const mesh::PlacedTensor& tensor, Axis axis) {
  for (size_t d = 0; d < tensor.dims.size() && d < tensor.spec.dims.size(); ++d) {
    if (tensor.dims[d].axis != axis) continue;
    double n = 1;
    for (const std::string& name : tensor.spec.dims[d])
      if (!is_batch(request, name)) n *= request.mesh.size(name);
    return n;
  }
  return 1;
}

// Elements of the tensor after a gather along batch axes; 0 if batch axes do not split it. Experts stay split over ep.
double gathered(const Request& request, const mesh::PlacedTensor& tensor) {
  double batch = 1, other = 1;
  for (size_t d = 0; d < tensor.spec.dims.size(); ++d)
    for (const std::string& name : tensor.spec.dims[d]) {
      const bool stays = name == mesh::kExpertAxis && tensor.dims[d].axis == Axis::experts;
      (is_batch(request, name) && !stays ? batch : other) *= request.mesh.size(name);
    }
  return batch > 1 ? static_cast<double>(tensor.total()) / other : 0;
}

const mesh::PlacedTensor* find(const mesh::Placement& placement, Role role, int layer) {
  for (const mesh::PlacedTensor& t : placement.tensors)
    if (t.role == role && (layer < -1 || t.layer == layer)) return &t;
  return nullptr;
}

// The widths of a projection on a device: heads and MLP columns are split, the residual stream is not.
Product widths(const LocalModel& model, const LayerKind& kind, Role role) {
  const double d = model.config.dim;
  switch (role) {
    case Role::q_proj:
      return {d, kind.q(), role};
    case Role::k_proj:
    case Role::v_proj:
      return {d, kind.kv(), role};
    case Role::o_proj:
      return {kind.q(), d, role};
    case Role::gate_proj:
    case Role::up_proj:
      return {d, kind.mlp, role};
    case Role::down_proj:
      return {kind.mlp, d, role};
    default:
      return {};
  }
}

void add_products(const LocalModel& model, LayerKind& kind, const mesh::PlacedTensor& tensor) {
  const model::Config& c = model.config;
  const double d = c.dim;
  switch (tensor.role) {
    case Role::experts_gate_up:
      kind.products.push_back({d, 2.0 * c.expert_dim * c.experts_per_token / model.mlp_ways, tensor.role});
      break;
    case Role::experts_down:
      kind.products.push_back(
          {static_cast<double>(c.expert_dim) * c.experts_per_token / model.mlp_ways, d, tensor.role});
      break;
    case Role::router_proj:
      kind.products.push_back({d, static_cast<double>(c.experts), tensor.role});
      break;
    case Role::ple_gate:
      kind.products.push_back({d, static_cast<double>(c.ple_dim), tensor.role});
      break;
    case Role::ple_proj:
      kind.products.push_back({static_cast<double>(c.ple_dim), d, tensor.role});
      break;
    case Role::altup_router:  // before and after the layer
      kind.products.push_back({d, 2.0 * c.altup_inputs, tensor.role});
      break;
    case Role::laurel_left:
      kind.products.push_back({d, static_cast<double>(c.laurel_rank), tensor.role});
      break;
    case Role::laurel_right:
      kind.products.push_back({static_cast<double>(c.laurel_rank), d, tensor.role});
      break;
    default:
      if (const Product p = widths(model, kind, tensor.role); p.in > 0) kind.products.push_back(p);
  }
}

LayerKind make_kind(const LocalModel& model, int layer) {
  const Request& r = *model.request;
  LayerKind kind;
  kind.layer = layer;
  kind.shape = model.config.layers[static_cast<size_t>(layer)];
  kind.count = model.layers_represented[static_cast<size_t>(layer)];
  kind.name = kind_name(r.model, kind.shape);
  kind.heads = std::ceil(kind.shape.heads / model.attention_ways);
  kind.kv_heads = std::max(1.0, std::ceil(kind.shape.kv_heads / model.attention_ways));
  kind.mlp = std::ceil(kind.shape.mlp_dim / model.mlp_ways);
  for (const mesh::PlacedTensor& t : model.placement.tensors) {
    if (t.layer != layer) continue;
    add_products(model, kind, t);
    if (r.profile.parameters == StackProfile::Parameters::gathered || r.rules.preset == mesh::Preset::tunix)
      kind.gathered += gathered(r, t);
  }
  for (const mesh::PlacedTensor& t : model.placement.adapters) {
    if (t.layer != layer) continue;
    const Product p = widths(model, kind, t.base);
    if (t.role == Role::lora_a)
      kind.lora_a.push_back({p.in, static_cast<double>(r.lora.rank)});
    else if (t.role == Role::lora_b)
      kind.lora_b.push_back({static_cast<double>(r.lora.rank), p.out});
    else
      kind.dora.push_back(p);
  }
  return kind;
}

// Servers quantise linear layers only.
bool quantised(const Request& request, Role role, model::DType type) {
  if (!serves(request.stack) || bytes_of(type) > 1) return true;
  return (role >= Role::q_proj && role <= Role::down_proj) || role == Role::experts_gate_up ||
         role == Role::experts_down || role == Role::ple_gate || role == Role::ple_proj ||
         role == Role::ple_model_proj || role == Role::altup_projections || role == Role::altup_unembed_projections ||
         role == Role::laurel_left || role == Role::laurel_right;
}

TensorBytes held(const LocalModel& model, const std::vector<mesh::PlacedTensor>& tensors, model::DType type) {
  TensorBytes sum;
  for (const mesh::PlacedTensor& t : tensors) {
    const int bytes = bytes_of(quantised(*model.request, t.role, type) ? type : model::DType::bf16);
    const mesh::TileRule tile = mesh::tile_of(model.request->target.chip, bytes);
    const double times = t.layer < 0 ? 1 : model.layers_represented[static_cast<size_t>(t.layer)];
    const auto elements = static_cast<double>(t.elements());
    sum.bytes += times * static_cast<double>(mesh::padded_bytes(t.shard, bytes, tile));
    sum.unpadded += times * elements * bytes;
    sum.elements += times * elements;
    sum.total += times * static_cast<double>(t.total());
  }
  return sum;
}

}  // namespace

std::vector<std::string> batch_axes(const Request& request) {
  std::vector<std::string> axes{"fsdp", "data"};
  if (is_batch(request, mesh::kExpertAxis)) axes.emplace_back(mesh::kExpertAxis);
  return axes;
}

mesh::Mesh canonical_order(mesh::Mesh mesh) {
  const auto rank = [](const mesh::MeshAxis& axis) {
    const int place = axis.name == "data" ? 0 : axis.name == "fsdp" ? 1 : axis.name == "tp" ? 3 : 2;
    return std::pair<int, std::string_view>(place, axis.name);
  };
  std::stable_sort(mesh.axes.begin(), mesh.axes.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return mesh;
}

const Product* LayerKind::product(Role role) const {
  for (const Product& p : products)
    if (p.role == role) return &p;
  return nullptr;
}

int LocalModel::head_bytes() const {
  return bytes_of(quantised(*request, Role::lm_head, request->weights) ? request->weights : model::DType::bf16);
}

int LocalModel::layers() const {
  return static_cast<int>(request->model.layers.size());
}

std::vector<mesh::AdapterShape> adapter_shapes(const Request& request, const model::TensorInventory& inventory) {
  return shapes_of(request, request.adapted, inventory);
}

std::vector<mesh::SizeConstraint> size_constraints(const Request& request, mesh::ShardingUse use) {
  LocalModel m;
  reduce(request, m);
  const model::TensorInventory inventory(m.config);
  return mesh::size_constraints(inventory, request.mesh, request.rules, shapes_of(request, m.adapted, inventory), use);
}

LocalModel local_model(const Request& r, mesh::ShardingUse use) {
  LocalModel m;
  m.request = &r;
  for (const Problem& p :
       mesh::check_mesh(r.mesh, r.target.chip.vendor == hardware::Vendor::cpu ? 0 : r.target.devices()))
    if (p.severity == Severity::error) throw Error(p);
  reduce(r, m);
  const model::TensorInventory inventory(m.config);
  m.placement = mesh::place(inventory, r.mesh, r.rules, shapes_of(r, m.adapted, inventory), use);
  m.layout = mesh::lay_out(r.mesh, r.target, r.places);
  for (const mesh::MeshAxis& axis : r.mesh.axes)
    if (is_batch(r, axis.name)) m.batch_ways *= std::max(1, axis.size);

  const mesh::PlacedTensor* q = find(m.placement, Role::q_proj, -2);
  const mesh::PlacedTensor* gate = find(m.placement, Role::gate_proj, -2);
  if (!gate) gate = find(m.placement, Role::experts_gate_up, -2);
  const mesh::PlacedTensor* embed = find(m.placement, Role::embed, -1);
  const mesh::PlacedTensor* head = find(m.placement, Role::lm_head, -1);
  if (q) m.attention_ways = ways(r, *q, Axis::heads);
  if (gate) m.mlp_ways = ways(r, *gate, Axis::mlp);
  if (const mesh::PlacedTensor* out = head ? head : embed) m.vocab_ways = ways(r, *out, Axis::vocab);
  const bool split = r.profile.residual == StackProfile::Residual::sharded && use == mesh::ShardingUse::training;
  m.width = r.model.dim / (split ? m.attention_ways : 1);
  m.vocab = std::ceil(r.model.vocab / m.vocab_ways);
  for (const mesh::PlacedTensor* t : {embed, head})
    if (t) m.head_gathered += gathered(r, *t);
  for (size_t l = 0; l < m.config.layers.size(); ++l) {
    LayerKind kind = make_kind(m, static_cast<int>(l));
    const auto same = std::find_if(m.kinds.begin(), m.kinds.end(), [&](const LayerKind& k) {
      return k.name == kind.name && same_kind(k.shape, kind.shape) && k.gathered == kind.gathered;
    });
    if (same != m.kinds.end())
      same->count += kind.count;
    else
      m.kinds.push_back(std::move(kind));
  }
  for (const model::DType type : {model::DType::f32, model::DType::bf16, model::DType::fp8, model::DType::int8}) {
    m.weights_of[static_cast<size_t>(type)] = held(m, m.placement.tensors, type);
    m.adapters_of[static_cast<size_t>(type)] = held(m, m.placement.adapters, type);
  }
  m.parameters = static_cast<std::int64_t>(m.weights(model::DType::int8).total);
  if (m.config.layer_scalar) m.parameters -= m.layers();  // saved with the weights, but no parameters
  return m;
}

}  // namespace mw::plan
