// SPDX-License-Identifier: Apache-2.0
// Tunix: ShardingConfig.get_default_sharding of tunix/models/{gemma,gemma3,gemma4,llama3,qwen3};
// Megatron: vllm/model_executor/models; FSDP2: torch.distributed.fsdp.fully_shard, Shard(0) of each parameter.
#include "core/mesh/layout/presets.h"

#include <algorithm>
#include "core/base/counted.h"

namespace mw::mesh {
namespace {

using model::Axis;
using model::Dim;
using model::Role;
using model::Tensor;
using model::TensorInventory;

const std::vector<std::string> kNone{}, kFsdp{"fsdp"}, kTp{"tp"};

template <class AxesOf>
PartitionSpec by_axis(const std::vector<Dim>& dims, const AxesOf& axes_of) {
  PartitionSpec spec;
  spec.dims.reserve(dims.size());
  for (const Dim& d : dims) spec.dims.push_back(axes_of(d.axis));
  return spec;
}

PartitionSpec unsplit(const Tensor& tensor) {
  return {std::vector<std::vector<std::string>>(tensor.dims.size())};
}

// --- Tunix ---

bool is_kv_einsum(const Tensor& tensor) {
  return tensor.tunix_path.ends_with("attn.kv_einsum.w");
}

PartitionSpec tunix_training(const Tensor& tensor) {
  switch (tensor.role) {
    case Role::router_proj:
    case Role::router_scale:
    case Role::per_expert_scale:
    case Role::layer_scalar:
      return unsplit(tensor);
    case Role::experts_gate_up:  // tp lands on the width here and on the experts' columns below, as in Tunix
      return {{kFsdp, kNone, kNone, kTp}};
    case Role::experts_down:
      return {{kFsdp, kTp, kNone}};
    case Role::ple_embed:
      return {{kTp, kFsdp}};
    default:
      break;
  }
  if (tensor.dims.size() == 1) return {{kTp}};
  return by_axis(tensor.dims, [](Axis axis) {
    if (axis == Axis::embed) return kFsdp;
    return axis == Axis::head_dim || axis == Axis::one ? kNone : kTp;
  });
}

// Tunix replicates the q and k norms of Gemma 3, but not those of Gemma 4 (which has a scalar per layer) and Qwen3
// (other names).
bool is_gemma3_qk_norm(const TensorInventory& inventory, const Tensor& tensor) {
  return (tensor.role == Role::q_norm || tensor.role == Role::k_norm) && tensor.tunix_path.ends_with("_norm.scale") &&
         !inventory.find(Role::layer_scalar, 0);
}

PartitionSpec tunix(const TensorInventory& inventory, const Tensor& tensor, ShardingUse use) {
  if (is_gemma3_qk_norm(inventory, tensor)) return unsplit(tensor);
  // With one KV head, kv_einsum is not split over tp and keeps fsdp even in sampling. k_einsum has no such exception.
  if (is_kv_einsum(tensor) && tensor.dims[0].size == 1) return {{kNone, kFsdp, kNone}};
  PartitionSpec spec = tunix_training(tensor);
  if (use == ShardingUse::sampling)
    for (auto& axes : spec.dims) std::erase(axes, "fsdp");
  return spec;
}

// --- Megatron and vLLM ---

PresetSpec megatron(const Tensor& tensor) {
  const bool vocabulary =
      std::any_of(tensor.dims.begin(), tensor.dims.end(), [](const Dim& d) { return d.axis == Axis::vocab; });
  if (vocabulary)
    return {by_axis(tensor.dims, [](Axis axis) { return axis == Axis::vocab ? kTp : kNone; }), UnevenSplit::padded};
  switch (tensor.role) {
    case Role::k_proj:
    case Role::v_proj:
      return {by_axis(tensor.dims, [](Axis axis) { return axis == Axis::kv_heads ? kTp : kNone; }),
              UnevenSplit::repeated};
    case Role::q_proj:
    case Role::o_proj:
    case Role::gate_proj:
    case Role::up_proj:
    case Role::down_proj:
    case Role::experts_gate_up:
    case Role::experts_down:
      return {by_axis(tensor.dims, [](Axis axis) { return axis == Axis::heads || axis == Axis::mlp ? kTp : kNone; })};
    default:
      return {unsplit(tensor)};
  }
}

// --- FSDP2 ---

// Whether a dimension is part of the rows of the tensor as stored in files.
bool is_row(Role role, Axis axis) {
  switch (role) {
    case Role::o_proj:
    case Role::down_proj:
    case Role::ple_proj:
    case Role::laurel_right:
      return axis == Axis::embed;
    case Role::ple_embed:
      return axis == Axis::vocab;
    case Role::experts_gate_up:
    case Role::experts_down:
    case Role::router_proj:
      return axis == Axis::experts;
    default:
      return axis != Axis::embed;
  }
}

// Splits one of the row dimensions over fsdp. Rows are heads x head_dim: if heads do not divide, head_dim may.
PartitionSpec over_rows(const std::vector<Dim>& dims, const std::vector<bool>& rows, int fsdp) {
  PartitionSpec spec{std::vector<std::vector<std::string>>(dims.size())};
  size_t chosen = dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!rows[d]) continue;
    if (chosen == dims.size() || (dims[chosen].size % fsdp != 0 && dims[d].size % fsdp == 0)) chosen = d;
  }
  if (chosen < dims.size()) spec.dims[chosen] = kFsdp;
  return spec;
}

PartitionSpec fsdp_rows(const Tensor& tensor, const Mesh& mesh) {
  std::vector<bool> rows(tensor.dims.size(), tensor.dims.size() == 1);
  for (size_t d = 0; d < tensor.dims.size(); ++d) rows[d] = rows[d] || is_row(tensor.role, tensor.dims[d].axis);
  return over_rows(tensor.dims, rows, mesh.size("fsdp"));
}

std::string with_slashes(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

}  // namespace

PresetSpec preset_spec(const TensorInventory& inventory, const Tensor& tensor, Preset preset, ShardingUse use,
                       const Mesh& mesh) {
  switch (preset) {
    case Preset::tunix:
      return {tunix(inventory, tensor, use)};
    case Preset::megatron:
      return megatron(tensor);
    case Preset::fsdp:
      return {fsdp_rows(tensor, mesh), UnevenSplit::padded};
    case Preset::replicated:
      break;
  }
  return {unsplit(tensor)};
}

// MaxText/configs/base.yml, logical_axis_rules: exp over expert, embed over fsdp and expert, mlp over tensor.
PresetSpec over_experts(PresetSpec spec, const Tensor& tensor, Preset preset) {
  const std::string ep(kExpertAxis);
  const bool maxtext = preset == Preset::tunix;
  if (tensor.role == Role::experts_gate_up || tensor.role == Role::experts_down) {
    if (maxtext)
      spec.spec = by_axis(tensor.dims, [](Axis axis) {
        return axis == Axis::embed ? kFsdp : axis == Axis::mlp ? kTp : kNone;
      });
    for (size_t d = 0; d < tensor.dims.size(); ++d)
      if (tensor.dims[d].axis == Axis::experts) spec.spec.dims[d] = {ep};
    return spec;
  }
  if (!maxtext) return spec;
  for (std::vector<std::string>& axes : spec.spec.dims)
    if (axes == kFsdp) axes.push_back(ep);
  return spec;
}

bool contracted(Role role, Axis axis) {
  const bool puts_out_embed = role == Role::o_proj || role == Role::down_proj;
  return (axis == Axis::embed) != puts_out_embed;
}

PresetSpec adapter_spec(const PlacedTensor& base, Role part, const std::vector<Dim>& dims, Preset preset,
                        const Mesh& mesh) {
  if (preset == Preset::fsdp) {  // rows of A in the files are the rank, of B the outputs
    std::vector<bool> rows;
    for (const Dim& d : dims) rows.push_back((d.axis == Axis::rank) == (part == Role::lora_a));
    return {over_rows(dims, rows, mesh.size("fsdp")), UnevenSplit::padded};
  }
  PartitionSpec spec;
  for (const Dim& d : dims) {
    const auto at = std::find_if(base.dims.begin(), base.dims.end(), [&](const Dim& b) { return b.axis == d.axis; });
    spec.dims.push_back(at == base.dims.end() ? kNone : base.spec.dims[static_cast<size_t>(at - base.dims.begin())]);
  }
  return {spec, base.uneven};
}

bool fuses_kv(const ShardingRules& rules) {
  if (rules.adapters == AdapterForm::by_preset) return rules.preset == Preset::tunix;
  return rules.adapters == AdapterForm::fused_kv;
}

RuleMatcher::RuleMatcher(const ShardingRules& rules, const Mesh& mesh, std::vector<Problem>& problems)
    : rules_(rules), mesh_(mesh), problems_(problems), used_(rules.overrides.size(), false) {
  for (size_t i = 0; i < rules.overrides.size(); ++i) {
    patterns_.emplace_back();
    try {
      patterns_.back().emplace(rules.overrides[i].pattern, Extent::part);
    } catch (const Error& error) {
      report(i, error);
    }
  }
}

int RuleMatcher::find(const std::string& name, const std::string& path, model::Role role) {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    if (model::is_adapter(role) && rules_.overrides[i].pattern.find("lora_") == std::string::npos) continue;
    if (!matches(i, name, path)) continue;
    used_[i] = true;
    return static_cast<int>(i);
  }
  return -1;
}

PartitionSpec RuleMatcher::spec(int rule, const std::string& name, size_t rank, int tunix_slot) {
  const size_t i = static_cast<size_t>(rule);
  PartitionSpec spec = rules_.overrides[i].spec;
  if (spec.dims.size() == rank + 1 && tunix_slot >= 0 && spec.dims.front().empty())
    spec.dims.erase(spec.dims.begin());  // the axis of K and V
  if (spec.dims.size() > rank)
    report_once(i, "SPEC-RANK", "",
                {.message = "the spec is longer than the tensor " + name + " has dimensions",
                 .found = to_text(rules_.overrides[i].spec),
                 .expected = "at most " + counted(rank, "entry"),
                 .fix = "take entries out"});
  spec.dims.resize(rank);
  std::set<std::string> seen;
  for (auto& axes : spec.dims)
    std::erase_if(axes, [&](const std::string& axis) {
      if (!mesh_.has(axis)) {
        report_once(i, "SPEC-AXIS", axis,
                    {.message = "the spec uses an axis that the mesh does not define",
                     .found = axis,
                     .expected = mesh_.axes.empty() ? "- for every dimension" : "one of " + to_text(mesh_),
                     .fix = "add the axis to the mesh, or use another"});
        return true;
      }
      if (seen.insert(axis).second) return false;
      report_once(i, "SPEC-TWICE", axis,
                  {.message = "the spec uses an axis twice",
                   .found = to_text(rules_.overrides[i].spec),
                   .expected = axis + " on one dimension",
                   .fix = "take " + axis + " from all dimensions but one"});
      return true;
    });
  return spec;
}

void RuleMatcher::report_unused() {
  for (size_t i = 0; i < patterns_.size(); ++i)
    if (patterns_[i] && !used_[i])
      problems_.push_back({.id = "SPEC-UNUSED",
                           .severity = Severity::warning,
                           .message = "the sharding rule matches no tensor",
                           .place = place(i),
                           .found = shown(i),
                           .fix = "correct the pattern, or remove the rule"});
}

bool RuleMatcher::matches(size_t i, const std::string& name, const std::string& path) {
  if (!patterns_[i]) return false;
  try {
    return patterns_[i]->matches(name) || patterns_[i]->matches(path) || patterns_[i]->matches(with_slashes(path));
  } catch (const Error& error) {
    report(i, error);
    patterns_[i].reset();
    return false;
  }
}

void RuleMatcher::report(size_t i, const Error& error) {
  Problem problem = error.problem();
  problem.id = "SPEC-PATTERN";
  problem.place = place(i) + (problem.place.empty() ? "" : ", " + problem.place);
  problems_.push_back(std::move(problem));
}

void RuleMatcher::report_once(size_t i, const char* id, const std::string& axis, Problem problem) {
  if (!reported_.insert({i, id, axis}).second) return;
  problem.id = id;
  problem.place = place(i);
  problems_.push_back(std::move(problem));
}

std::string RuleMatcher::place(size_t i) const {
  return "sharding rule " + std::to_string(i + 1) + ", " + shown(i);
}

std::string RuleMatcher::shown(size_t i) const {
  return rules_.overrides[i].pattern.substr(0, 80);
}

}  // namespace mw::mesh
