// SPDX-License-Identifier: Apache-2.0
// Fields: tunix/models/{gemma,gemma3,gemma4}/model.py of google-tunix 0.1.7.
#include "core/recipes/tunix_model.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace mw::recipes {
namespace {

using model::Attention;
using model::Config;
using model::Family;
using model::Layer;

[[noreturn]] void throw_unsupported(const Config& c, const std::string& what, const std::string& found) {
  throw Error("RECIPE", "Tunix does not support " + what,
              {.place = "model",
               .found = c.id + ": " + found,
               .expected = "a model that Tunix supports",
               .fix = "export trl-fsdp or torchax instead"});
}

Json kinds_of(const Config& c, size_t count) {
  Json out = Json::array();
  for (size_t i = 0; i < count; ++i)
    out.push_back(c.layers[i].attention == Attention::full ? "GLOBAL" : "LOCAL_SLIDING");
  return out;
}

// The length of the shortest pattern of layers that repeats.
size_t period_of(const Config& c) {
  const auto kind = [&](size_t i) { return c.layers[i].attention; };
  for (size_t n = 1; n < c.layers.size(); ++n) {
    bool repeats = true;
    for (size_t i = n; i < c.layers.size() && repeats; ++i) repeats = kind(i) == kind(i - n);
    if (repeats) return n;
  }
  return c.layers.size();
}

bool about(float a, double b) {
  return std::abs(static_cast<double>(a) - b) <= 1e-6 * std::abs(b);
}

Json common_fields(const Config& c) {
  const Layer& local = first_of(c, Attention::sliding);
  Json fields{{"num_layers", c.layers.size()}, {"num_embed", c.vocab},     {"embed_dim", c.dim},
              {"hidden_dim", local.mlp_dim},   {"num_heads", local.heads}, {"head_dim", local.head_dim},
              {"num_kv_heads", local.kv_heads}};
  if (c.sliding_window > 0) fields["sliding_window_size"] = c.sliding_window;
  return fields;
}

void check_same_layers(const Config& c) {
  const Layer& first = c.layers.front();
  for (const Layer& l : c.layers)
    if (l.heads != first.heads || l.kv_heads != first.kv_heads || l.head_dim != first.head_dim ||
        l.mlp_dim != first.mlp_dim)
      throw_unsupported(c, "layers of different sizes", "layers that differ");
}

Json gemma2(const Config& c) {
  check_same_layers(c);
  if (!about(c.attention_scale, 1 / std::sqrt(static_cast<double>(c.layers.front().head_dim))))
    throw_unsupported(c, "an attention scale other than 1/sqrt(head_dim)", std::to_string(c.attention_scale));
  Json fields = common_fields(c);
  fields["final_logit_softcap"] = c.final_softcap > 0 ? Json(c.final_softcap) : Json(nullptr);
  fields["attn_logits_soft_cap"] = c.attention_softcap > 0 ? Json(c.attention_softcap) : Json(nullptr);
  fields["use_post_attn_norm"] = fields["use_post_ffw_norm"] = true;
  fields["attention_types"] = kinds_of(c, c.layers.size());
  return {{"module", "tunix.models.gemma.model"}, {"class", "Gemma"}, {"config", std::move(fields)}};
}

Json gemma3(const Config& c) {
  check_same_layers(c);
  for (size_t i = 0; i < c.layers.size(); ++i)
    if ((c.layers[i].attention == Attention::full) != (i % 6 == 5))
      throw_unsupported(c, "a layer pattern other than five local layers and a global one",
                        "layer " + std::to_string(i));
  if (c.final_softcap > 0 || c.attention_softcap > 0) throw_unsupported(c, "soft caps in Gemma 3", "a soft cap");
  const Layer &local = first_of(c, Attention::sliding), &global = first_of(c, Attention::full);
  Json fields = common_fields(c);
  fields["local_base_frequency"] = local.rope_theta;
  fields["global_base_frequency"] = global.rope_theta;
  fields["global_scale_factor"] = global.rope == model::Rope::linear ? global.rope_factor : 1.0f;
  const int dim_per_head = c.dim / local.heads;  // embed_dim // num_heads in Tunix
  if (about(c.attention_scale, 1 / std::sqrt(static_cast<double>(local.head_dim))))
    fields["query_pre_attn_norm"] = "BY_ONE_OVER_SQRT_HEAD_DIM";
  else if (about(c.attention_scale, 1 / std::sqrt(static_cast<double>(dim_per_head))))
    fields["query_pre_attn_norm"] = "BY_ONE_OVER_SQRT_EMBED_DIM_DIV_NUM_HEADS";
  else
    throw_unsupported(c, "this attention scale", std::to_string(c.attention_scale));
  return {{"module", "tunix.models.gemma3.model"}, {"class", "Gemma3"}, {"config", std::move(fields)}};
}

Json gemma4(const Config& c) {
  const Layer &local = first_of(c, Attention::sliding), &global = first_of(c, Attention::full);
  const auto shared = static_cast<double>(
      std::count_if(c.layers.begin(), c.layers.end(), [](const Layer& l) { return l.kv_donor >= 0; }));
  Json fields = common_fields(c);
  fields["final_logit_softcap"] = c.final_softcap;
  fields["num_global_kv_heads"] = global.kv_heads;
  fields["global_key_size"] = global.head_dim;
  fields["attention_pattern"] = kinds_of(c, period_of(c));
  fields["k_eq_v_global"] = global.has_k && !global.has_v;
  fields["local_base_frequency"] = local.rope_theta;
  fields["global_base_frequency"] = global.rope_theta;
  if (global.rope == model::Rope::proportional) fields["global_rope_proportion"] = global.rope_factor;
  fields["per_layer_input_dim"] = c.ple_dim;
  fields["frac_shared_layers"] = shared / static_cast<double>(c.layers.size());
  if (c.layers.back().mlp_dim != local.mlp_dim) fields["override_kv_shared_ffw_hidden"] = c.layers.back().mlp_dim;
  if (c.experts > 0) {
    fields["enable_moe"] = true;
    fields["num_experts"] = c.experts;
    fields["num_experts_per_tok"] = c.experts_per_token;
    fields["expert_dim"] = c.expert_dim;
    fields["moe_dense_hidden_dim"] = local.mlp_dim;
  }
  return {{"module", "tunix.models.gemma4.model"}, {"class", "Gemma4"}, {"config", std::move(fields)}};
}

}  // namespace

Json tunix_model(const Config& c) {
  switch (c.family) {
    case Family::gemma2:
      return gemma2(c);
    case Family::gemma3:
      return gemma3(c);
    case Family::gemma4:
      return gemma4(c);
    default:
      throw_unsupported(c, "this family", std::string(c.hf_model_type));
  }
}

Json tunix_tensors(const Config& c, const model::TensorInventory& inventory) {
  Json out = Json::array();
  for (const model::Tensor& t : inventory.tensors())
    out.push_back({t.tunix_path, t.tunix_slot, t.hf_name.substr(c.hf_prefix.size())});
  return out;
}

}  // namespace mw::recipes
