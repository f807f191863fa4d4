// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/mesh/layout/presets.h"

// The text form of a PartitionSpec.
#include <cctype>

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

std::string_view noun(Axis axis) {
  static constexpr std::string_view kNouns[] = {"rows of the vocabulary",
                                                "values of the model's width",
                                                "query heads",
                                                "KV heads",
                                                "values of a head",
                                                "columns of the MLP",
                                                "values",
                                                "ranks of the adapter",
                                                "experts",
                                                "values of the per-layer embedding",
                                                "values"};
  return kNouns[static_cast<size_t>(axis)];
}

std::string layers_text(const std::set<int>& layers) {
  if (layers.empty() || *layers.begin() < 0) return "";
  std::string text = layers.size() == 1 ? " in layer " : " in layers ";
  int shown = 0;
  for (const int layer : layers) {
    if (shown == 3 && layers.size() > 4) {
      text += ", ... " + std::to_string(*layers.rbegin());
      break;
    }
    text += (shown++ ? ", " : "") + std::to_string(layer);
  }
  return layers.size() > 4 ? text + ", " + counted(layers.size(), "layer") : text;
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  size_t i = 0;
  for (const std::string& name : names) text += (i++ == 0 ? "" : i == names.size() ? " and " : ", ") + name;
  return text;
}

std::string legal_text(const Placement& placement, const Mesh& mesh, const std::string& axis) {
  const int most = std::clamp(mesh.size(axis), 32, 1 << 14) * 2;
  return joined(legal_sizes(placement, mesh, axis, most), ", ", [](int n) { return std::to_string(n); });
}

// Collects dimensions that their axes do not divide and reports one problem for all tensors with the same cause.
class IndivisibleDimensions {
 public:
  void add(const PlacedTensor& tensor, size_t dimension);
  // TP-1, FSDP-1 or SPEC-DIVIDES problems, ordered by axis.
  std::vector<Problem> problems(const Placement& placement, const Mesh& mesh) const;

 private:
  struct Where {
    std::string first;  // tensor
    std::set<std::string> kinds;
    std::set<int> layers;
  };
  using Cause = std::tuple<std::vector<std::string>, model::Axis, std::int64_t>;  // axes, dimension, its size
  static Problem problem_of(const Cause& cause, const Where& where, const Placement& placement, const Mesh& mesh);
  std::map<Cause, Where> found_;
};

void IndivisibleDimensions::add(const PlacedTensor& tensor, size_t dimension) {
  Where& where = found_[{tensor.spec.dims[dimension], tensor.dims[dimension].axis, tensor.dims[dimension].size}];
  if (model::is_adapter(tensor.role) && !where.kinds.empty()) return;  // its base was reported with the same cause
  if (where.first.empty()) where.first = tensor.name;
  // "layers.12.k_proj": k_proj
  where.kinds.insert(tensor.layer < 0 ? tensor.name : tensor.name.substr(tensor.name.find('.', 7) + 1));
  where.layers.insert(tensor.layer);
}

std::vector<Problem> IndivisibleDimensions::problems(const Placement& placement, const Mesh& mesh) const {
  std::vector<Problem> list;
  for (const auto& [cause, where] : found_) list.push_back(problem_of(cause, where, placement, mesh));
  return list;
}

Problem IndivisibleDimensions::problem_of(const Cause& cause, const Where& what, const Placement& placement,
                                          const Mesh& mesh) {
  const auto& [axes, dim, size] = cause;
  std::string product, id = "SPEC-DIVIDES";
  for (const std::string& axis : axes)
    if (mesh.size(axis) > 1) product += (product.empty() ? "" : " x ") + axis + " " + std::to_string(mesh.size(axis));
  // The axis to change: the first of more than one device.
  const std::string axis =
      *std::find_if(axes.begin(), axes.end(), [&](const std::string& a) { return mesh.size(a) > 1; });
  if (axes.size() == 1 && axis == "tp") id = "TP-1";
  if (axes.size() == 1 && axis == "fsdp") id = "FSDP-1";
  const std::vector<int> legal = legal_sizes(placement, mesh, axis, mesh.size(axis));
  return {.id = id,
          .message = std::to_string(size) + " " + std::string(noun(dim)) + " cannot be split over " + product + " (" +
                     join(what.kinds) + layers_text(what.layers) + ")",
          .place = "tensor " + what.first + ", dimension " + std::string(axis_key(dim)),
          .found = product,
          .expected = "for every tensor, " + axis + " one of " + legal_text(placement, mesh, axis),
          .fix = legal.empty() ? "choose another spec" : "set mesh." + axis + " = " + std::to_string(legal.back())};
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

std::string_view axis_key(Axis axis) {
  static constexpr std::string_view kKeys[] = {"vocab", "embed", "heads",   "kv_heads", "head_dim", "mlp",
                                               "one",   "rank",  "experts", "ple",      "one"};
  return kKeys[static_cast<size_t>(axis)];
}

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

std::vector<IndexInterval> piece(const PlacedTensor& tensor, const Mesh& mesh, int device) {
  const std::vector<int> at = coordinate(mesh, device);
  std::vector<IndexInterval> ranges;
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

namespace {

std::string dim_text(const std::vector<std::string>& axes) {
  if (axes.empty()) return "-";
  if (axes.size() == 1) return axes[0];
  std::string text;
  for (const std::string& axis : axes) text += (text.empty() ? "(" : ", ") + axis;
  return text + ")";
}

// spec: [P | PartitionSpec] "(" [dim {"," dim} [","]] ")";  dim: "-" | None | name | "(" [name {"," name} [","]] ")"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  PartitionSpec spec() {
    constexpr size_t kMostLength = 1024;
    if (text_.size() > kMostLength) fail("at most 1024 characters");
    skip();
    if (peek() != '(') {
      const std::string head = word();
      if (head != "P" && head != "PartitionSpec") fail("( at the start");
    }
    PartitionSpec spec;
    expect('(');
    while (!accept(')')) {
      spec.dims.push_back(dim());
      if (!accept(',') && peek() != ')') fail(", or )");
    }
    skip();
    if (at_ != text_.size()) fail("nothing more after )");
    return spec;
  }

 private:
  std::vector<std::string> dim() {
    if (accept('-')) return {};
    std::vector<std::string> axes;
    if (!accept('(')) {
      if (std::string name = axis(); name != "None") axes.push_back(std::move(name));
      return axes;
    }
    while (!accept(')')) {
      axes.push_back(axis());
      if (!accept(',') && peek() != ')') fail(", or )");
    }
    return axes;
  }

  std::string axis() {
    const char quote = peek() == '\'' || peek() == '"' ? peek() : '\0';
    if (quote) ++at_;
    std::string name = word();
    if (name.empty()) fail("the name of an axis, - or (");
    if (quote && (at_ >= text_.size() || text_[at_++] != quote)) fail("the closing quote");
    return name;
  }

  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string(1, c));
  }
  [[noreturn]] void fail(const std::string& expected) {
    throw Error("SPEC-SYNTAX", "not a PartitionSpec",
                {.place = "character " + std::to_string(at_ + 1),
                 .found = std::string(text_.substr(0, 80)),
                 .expected = expected,
                 .fix = "write one entry per dimension, as in (tp, fsdp, -)"});
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_text(const PartitionSpec& spec) {
  std::string text = "(";
  for (size_t i = 0; i < spec.dims.size(); ++i) text += (i ? ", " : "") + dim_text(spec.dims[i]);
  return text + ")";
}

PartitionSpec parse_spec(std::string_view text) {
  return Parser(text).spec();
}

}  // namespace mw::mesh
