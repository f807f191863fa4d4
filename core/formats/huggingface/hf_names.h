// SPDX-License-Identifier: Apache-2.0
// Tensor names of HF files under every prefix that transformers writes, brought to one internal form. Any thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/model/inventory.h"

namespace mw::formats {

// "model.language_model.layers.0.mlp.up_proj.weight" -> "layers.0.mlp.up_proj.weight"; a name without a known prefix is
// returned unchanged.
std::string_view without_prefix(std::string_view name);

// Whether the tensor belongs to a vision or audio tower or its projector.
bool is_tower(std::string_view name);

// The tensor's name without the prefix of the config.
std::string_view suffix_of(const model::Tensor& tensor);
std::string_view suffix_of(const model::LoraTarget& target);  // "layers.3.self_attn.q_proj"

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[2, 3]"

}  // namespace mw::formats
