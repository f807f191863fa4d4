// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/checks.h"

#include <bit>
#include <string>

#include "core/base/error.h"

namespace mw::engine {
namespace {

[[noreturn]] void impossible(const model::Config& c, const std::string& place, const std::string& message,
                             const std::string& found, const std::string& expected) {
  throw Error("ARCH", message, {.file = c.id, .place = place, .found = found, .expected = expected});
}

void check_layer(const model::Config& c, size_t index) {
  const model::Layer& l = c.layers[index];
  const std::string place = "layer " + std::to_string(index);
  const std::string heads =
      std::to_string(l.heads) + " heads, " + std::to_string(l.kv_heads) + " kv heads of " + std::to_string(l.head_dim);
  if (l.heads <= 0 || l.kv_heads <= 0 || l.heads % l.kv_heads != 0)
    impossible(c, place, "kv heads do not divide heads", heads, "heads a multiple of kv heads");
  if (l.head_dim <= 0 || l.head_dim % 2 != 0)
    impossible(c, place, "RoPE needs an even head size", heads, "an even head size");
  if (l.mlp_dim <= 0) impossible(c, place, "a layer without an MLP", std::to_string(l.mlp_dim), "a positive width");
  if (!(l.rope_theta > 0) || !(l.rope_factor > 0))
    impossible(c, place, "RoPE needs a positive theta and factor",
               std::to_string(l.rope_theta) + ", " + std::to_string(l.rope_factor), "positive numbers");
  if (l.has_k) return;
  const bool earlier = l.kv_donor >= 0 && static_cast<size_t>(l.kv_donor) < index;
  const model::Layer* donor = earlier ? &c.layers[static_cast<size_t>(l.kv_donor)] : nullptr;
  if (l.has_v || !donor || !donor->has_k || donor->attention != l.attention || donor->kv_heads != l.kv_heads ||
      donor->head_dim != l.head_dim)
    impossible(c, place, "a layer borrows keys and values that do not fit it",
               "those of layer " + std::to_string(l.kv_donor), "an earlier layer of its kind with its own keys");
}

// Where an element stands: "element 17 ([1, 5])".
[[noreturn]] void not_finite(const model::Tensor& tensor, std::int64_t index, const std::string& value) {
  std::string at;
  std::int64_t rest = index;
  for (size_t i = tensor.hf_shape.size(); i-- > 0; rest /= tensor.hf_shape[i])
    at = std::to_string(rest % tensor.hf_shape[i]) + (at.empty() ? "" : ", ") + at;
  throw Error("WEIGHTS", "a weight is not a finite number",
              {.place = "tensor " + tensor.hf_name + ", element " + std::to_string(index) + " ([" + at + "])",
               .found = value,
               .expected = "finite weights",
               .fix = "the file is damaged or its training diverged; take an earlier checkpoint"});
}

constexpr std::uint32_t kExponent = 0x7f800000u;  // all ones: NaN or infinity

std::string text_of(std::uint32_t bits) {
  return bits & 0x7fffffu ? "NaN" : bits >> 31 ? "-infinity" : "infinity";
}

}  // namespace

void check_model(const model::Config& c) {
  if (model::is_planning_only(c))
    throw Error("ARCH", "this model is for planning only; the engine runs Gemma 2, 3 and 4",
                {.file = c.id,
                 .found = c.hf_model_type,
                 .expected = "a Gemma 2, 3 or 4 text model",
                 .fix = "plan it instead (meshwright plan), or set model.path to the folder of a Gemma model"});
  if (c.vocab <= 0 || c.dim <= 0 || c.layers.empty())
    impossible(c, "", "the model has no layers, width or vocabulary",
               std::to_string(c.layers.size()) + " layers, width " + std::to_string(c.dim) + ", vocabulary " +
                   std::to_string(c.vocab),
               "positive sizes");
  if (!c.tied_embeddings)
    impossible(c, "", "the engine does not run untied output heads", "untied output heads", "tied embeddings");
  if (c.max_positions <= 0)
    impossible(c, "", "the model has no positions", std::to_string(c.max_positions), "a positive context");
  if (c.attention_softcap < 0 || c.final_softcap < 0)
    impossible(c, "", "a softcap is negative",
               std::to_string(c.attention_softcap) + ", " + std::to_string(c.final_softcap), "0 (none) or above");
  if (c.ple_dim < 0) impossible(c, "", "per-layer inputs of a negative size", std::to_string(c.ple_dim), "0 or above");
  if (c.experts < 0 ||
      (c.experts > 0 && (c.experts_per_token < 1 || c.experts_per_token > c.experts || c.expert_dim < 1)))
    impossible(c, "", "impossible experts",
               std::to_string(c.experts_per_token) + " of " + std::to_string(c.experts) + " experts of width " +
                   std::to_string(c.expert_dim),
               "1 to all of them, of a positive width");
  for (size_t i = 0; i < c.layers.size(); ++i) check_layer(c, i);
}

void check_context(const model::Config& config, std::int64_t tokens) {
  if (tokens <= config.max_positions) return;
  throw Error("CONTEXT", "this is longer than the model's context",
              {.file = config.id,
               .found = std::to_string(tokens) + " tokens",
               .expected = "at most " + std::to_string(config.max_positions),
               .fix = "shorten the text or the answer (data.max_len, sample.max_new_tokens)"});
}

void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const float> values) {
  std::uint32_t broken = 0;  // without a branch, so that it costs little beside the reading
  for (const float v : values) broken |= (std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent;
  if (!broken) return;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    if ((bits & kExponent) == kExponent) not_finite(tensor, first + static_cast<std::int64_t>(i), text_of(bits));
  }
}

void check_finite(const model::Tensor& tensor, std::int64_t first, std::span<const std::uint16_t> bits) {
  constexpr std::uint16_t kTop = kExponent >> 16;
  std::uint16_t broken = 0;
  for (const std::uint16_t b : bits) broken |= (b & kTop) == kTop;
  if (!broken) return;
  for (size_t i = 0; i < bits.size(); ++i)
    if ((bits[i] & kTop) == kTop)
      not_finite(tensor, first + static_cast<std::int64_t>(i), text_of(static_cast<std::uint32_t>(bits[i]) << 16));
}

}  // namespace mw::engine
