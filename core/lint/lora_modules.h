// SPDX-License-Identifier: Apache-2.0
// The modules that LoRA can adapt, under the paths that each library matches with its patterns. Plain values; any
// thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/inventory.h"

namespace mw::lint {

enum class ModuleNaming {
  qwix,  // "layers/0/attn/q_einsum", re.fullmatch (qwix/_src/providers/lora.py)
  peft   // "model.layers.0.self_attn.q_proj", re.fullmatch of a string target_modules (peft tuners_utils.py)
};

struct LoraModule {
  std::string path;
  int layer = 0;
  std::vector<model::Role> roles;        // Tunix's kv_einsum holds k_proj and v_proj
  std::int64_t parameters_per_rank = 0;  // elements of A and B per unit of rank; kv_einsum has one A
  bool has(model::Role role) const;
};
// In inventory order.
std::vector<LoraModule> lora_modules(const model::TensorInventory& inventory, ModuleNaming naming);

std::string_view last_component(std::string_view path);  // "q_einsum"

// An expression that adapts exactly the modules which hold one of `roles`: ".*q_einsum|.*kv_einsum|.*k_einsum";
// PEFT: ".*language_model\..*\.(q_proj|v_proj)" where there are towers, else ".*\.(q_proj|v_proj)".
std::string lora_pattern(const model::TensorInventory& inventory, const std::vector<model::Role>& roles,
                         ModuleNaming naming);

// The modules whose whole path `pattern` matches. Throws Error("PATTERN", "PATTERN-SLOW").
std::vector<LoraModule> matching_modules(const std::vector<LoraModule>& modules, std::string_view pattern);

// Splits an expression at its top-level alternatives: "a|(b|c)" into "a" and "(b|c)".
std::vector<std::string> split_alternatives(std::string_view pattern);

}  // namespace mw::lint
