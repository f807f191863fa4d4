// SPDX-License-Identifier: Apache-2.0
#include "core/lint/lora_modules.h"

#include <algorithm>

#include "core/base/pattern.h"
#include "core/base/text.h"

namespace mw::lint {
namespace {

using model::Role;
using model::Tensor;

// The module that holds a weight: "layers.3.attn.q_einsum.w" -> "layers/3/attn/q_einsum".
std::string qwix_path(const Tensor& tensor) {
  std::string path = tensor.tunix_path.substr(0, tensor.tunix_path.rfind('.'));
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

bool has_towers(std::string_view prefix) {
  return prefix.find("language_model") != std::string_view::npos;
}

}  // namespace

bool LoraModule::has(Role role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

std::string_view last_component(std::string_view path) {
  return path.substr(path.find_last_of("/.") + 1);
}

std::vector<LoraModule> lora_modules(const model::TensorInventory& inventory, ModuleNaming naming) {
  std::vector<LoraModule> out;
  size_t at = 0;  // targets stand in the order of their tensors
  for (const model::LoraTarget& target : inventory.lora_targets()) {
    const auto tensors = inventory.tensors();
    while (tensors[at].role != target.role || tensors[at].layer != target.layer) ++at;
    const std::string path = naming == ModuleNaming::qwix ? qwix_path(tensors[at]) : target.module;
    const auto same = std::find_if(out.rbegin(), out.rend(),
                                   [&](const LoraModule& m) { return m.layer == target.layer && m.path == path; });
    if (same != out.rend()) {  // one A for all that share the module
      same->roles.push_back(target.role);
      same->parameters_per_rank += target.out;
      continue;
    }
    out.push_back({path, target.layer, {target.role}, target.in + target.out});
  }
  return out;
}

std::string lora_pattern(const model::TensorInventory& inventory, const std::vector<Role>& roles, ModuleNaming naming) {
  std::vector<std::string> names;
  std::string prefix;
  for (const LoraModule& m : lora_modules(inventory, naming)) {
    if (naming == ModuleNaming::peft) prefix = m.path;
    const bool wanted = std::any_of(roles.begin(), roles.end(), [&](Role r) { return m.has(r); });
    const std::string name(last_component(m.path));
    if (wanted && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (naming == ModuleNaming::qwix) return joined(names, "|", [](const std::string& name) { return ".*" + name; });
  return (has_towers(prefix) ? R"(.*language_model\..*\.()" : R"(.*\.()") + joined(names, "|") + ")";
}

std::vector<LoraModule> matching_modules(const std::vector<LoraModule>& modules, std::string_view pattern) {
  const Pattern expression(pattern);
  std::vector<LoraModule> out;
  for (const LoraModule& m : modules)
    if (expression.matches(m.path)) out.push_back(m);
  return out;
}

std::vector<std::string> split_alternatives(std::string_view pattern) {
  std::vector<std::string> out(1);
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out.back() += c;
      out.back() += pattern[++i];
      continue;
    }
    if (in_class)
      in_class = c != ']';
    else if (c == '[')
      in_class = true;
    else if (c == '(')
      ++depth;
    else if (c == ')')
      --depth;
    else if (c == '|' && depth == 0) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
  }
  return out;
}

}  // namespace mw::lint
