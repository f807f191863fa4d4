// SPDX-License-Identifier: Apache-2.0
#include "core/formats/huggingface/hf_names.h"

#include <algorithm>
#include <array>

namespace mw::formats {
namespace {

// Longest first. The prefixes of Gemma 4 and newer multimodal Gemma 3 files, Gemma 3 4B and larger on the hub, the same
// without a head, and text-only files.
constexpr std::array<std::string_view, 4> kPrefixes{"model.language_model.", "language_model.model.", "language_model.",
                                                    "model."};
constexpr std::array<std::string_view, 6> kTowers{"vision_tower.", "audio_tower.", "multi_modal_projector.",
                                                  "embed_vision.", "embed_audio.", "vision_embedder."};

}  // namespace

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

bool is_tower(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  return std::any_of(kTowers.begin(), kTowers.end(), [&](std::string_view t) { return name.starts_with(t); });
}

std::string_view suffix_of(const model::Tensor& tensor) {
  return without_prefix(tensor.hf_name);
}

std::string_view suffix_of(const model::LoraTarget& target) {
  return without_prefix(target.module);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace mw::formats
