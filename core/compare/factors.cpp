// SPDX-License-Identifier: Apache-2.0
#include "core/compare/factors.h"

#include <utility>

#include "core/experiment/bind.h"

namespace mw::compare {
namespace {

struct Factor {
  std::string_view name;
  std::vector<std::string_view> keys;  // "mesh" and "sweep" include all keys below them
};
const std::vector<Factor>& factors() {
  static const std::vector<Factor> kFactors{
      {"chips and software", {"target.id", "mesh", "serve.stack", "sharding", "target.memory_gib", "price"}},
      {"model", {"model.id", "model.path", "train.dtype", "lora.rank"}},
      {"KV type", {"serve.kv_dtype"}},
      {"window caches", {"serve.sliding_window_kv"}},
      {"replicas", {"sweep.replicas", "sweep.routing"}},
      {"prefix cache", {"serve.prefix_cache", "sweep.prompts", "sweep.shared_prefix", "sweep.shared_prefixes"}},
      {"chunked prefill", {"serve.chunked_prefill", "serve.max_num_batched_tokens"}},
      {"server limits",
       {"serve.max_num_seqs", "serve.max_model_len", "serve.memory_utilisation", "serve.block_size", "serve.policy",
        "serve.async_scheduling", "serve.sampling"}},
      {kLoadFactor, {"sweep"}}};
  return kFactors;
}

std::string text_of(const experiment::Experiment& e, std::string_view key) {
  if (key == "mesh") {
    std::string text;
    for (const mesh::MeshAxis& axis : e.valid_values().mesh.axes)
      text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
    return text;
  }
  if (key.find('.') == std::string_view::npos) {
    const Json* part = e.find(key);
    return part ? part->dump() : "";
  }
  const Json value = e.value(key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Copies the keys of a factor from the other document, including missing keys.
experiment::Experiment switched(experiment::Experiment e, const experiment::Experiment& other, const Factor& factor) {
  for (const std::string_view key : factor.keys) {
    e.erase(key);
    if (const Json* value = other.find(key)) e.set_value(key, *value);
  }
  return e;
}

std::string changes(const experiment::Experiment& before, const experiment::Experiment& after, const Factor& factor) {
  std::string text;
  for (const std::string_view key : factor.keys) {
    const std::string a = text_of(before, key), b = text_of(after, key);
    if (a == b) continue;
    const bool is_long = a.size() + b.size() > 80;
    text += (text.empty() ? "" : ", ") + std::string(key) + (is_long ? "" : ": " + a + " -> " + b);
  }
  return text;
}

}  // namespace

std::vector<FactorChange> factor_changes(const experiment::Experiment& baseline, const experiment::Experiment& other) {
  std::vector<FactorChange> out;
  experiment::Experiment now = baseline;
  for (const Factor& factor : factors()) {
    experiment::Experiment next = switched(now, other, factor);
    if (next == now) continue;
    if (const std::string text = changes(now, next, factor); !text.empty())
      out.push_back({std::string(factor.name), text, next});
    now = std::move(next);
  }
  return out;
}

}  // namespace mw::compare
