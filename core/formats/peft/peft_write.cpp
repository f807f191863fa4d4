// SPDX-License-Identifier: Apache-2.0
// An adapter folder that peft loads: keys sorted, indent 2, as its own writer does.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/peft/peft_patterns.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

using Sorted = nlohmann::json;  // keys in order

// The shortest decimal of the float; whole numbers without a point, as peft's lora_alpha is.
Sorted number(float value) {
  if (value == std::floor(value) && std::abs(value) < 1e9f) return static_cast<long long>(value);
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = value;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

bool is_multimodal(const AdapterModule& m) {
  return m.target.module.find("language_model.") != std::string::npos;
}

std::string joined(const std::set<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "|") + part;
  return out;
}

// "self_attn.k_proj" of "model.layers.3.self_attn.k_proj".
std::string in_its_layer(const AdapterModule& m) {
  const size_t layers = m.target.module.find("layers."), dot = m.target.module.find('.', layers + 7);
  return m.target.module.substr(dot + 1);
}

// Whether the names alone hit modules of the model that the adapter does not have: PEFT would add them, untrained.
bool hits_others(const Adapter& adapter, const std::set<std::string>& names, const model::TensorInventory& inventory) {
  std::set<std::pair<model::Role, int>> adapted;
  for (const AdapterModule& m : adapter.modules) adapted.insert({m.target.role, m.target.layer});
  const auto targets = inventory.lora_targets();
  return std::any_of(targets.begin(), targets.end(), [&](const model::LoraTarget& t) {
    return names.contains(std::string(model::hf_module_name(t.role))) && !adapted.contains({t.role, t.layer});
  });
}

std::string escaped(const std::string& module) {
  std::string out;
  for (const char c : module) out += c == '.' ? std::string("\\.") : std::string(1, c);
  return out;
}

// Modules with the same layers stand together: "(0|2)\.(mlp\.up_proj|self_attn\.q_proj)|(2)\.self_attn\.k_proj".
std::string by_layer(const Adapter& adapter) {
  std::map<std::string, std::set<int>> layers;  // by module
  for (const AdapterModule& m : adapter.modules) layers[escaped(in_its_layer(m))].insert(m.target.layer);
  std::map<std::set<int>, std::set<std::string>> modules;
  for (const auto& [module, where] : layers) modules[where].insert(module);
  std::string out;
  for (const auto& [where, names] : modules) {
    std::string numbers;
    for (const int layer : where) numbers += (numbers.empty() ? "" : "|") + std::to_string(layer);
    out += (out.empty() ? "(" : "|(") + numbers + ")\\.(" + joined(names) + ")";
  }
  return "layers\\.(" + out + ")";
}

// A suffix list would also hit the q_proj of a vision tower; there an expression names the language model. Where only
// some layers' modules of a name are adapted, it names the layers, too.
Sorted target_modules(const Adapter& adapter, const model::TensorInventory& inventory) {
  std::set<std::string> names;
  for (const AdapterModule& m : adapter.modules) names.emplace(model::hf_module_name(m.target.role));
  const bool towers = std::any_of(adapter.modules.begin(), adapter.modules.end(), is_multimodal);
  if (hits_others(adapter, names, inventory))
    return (towers ? ".*language_model\\.(.*\\.)?" : "(.*\\.)?") + by_layer(adapter);
  if (!towers) return names;
  return ".*language_model\\..*\\.(" + joined(names) + ")";
}

// What each module uses, in the fewest words that give peft the same values: the given patterns if they do (peft saves
// them sorted, and the first match wins), else one entry per module that differs from the default.
template <class Value>
Sorted patterns(const Adapter& adapter, const std::vector<std::pair<std::string, Value>>& given, Value fallback,
                Value AdapterModule::*value, const char* key) {
  std::vector<std::pair<std::string, double>> sorted(given.begin(), given.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const PeftPatterns as_peft(sorted, "", key);
  const auto agrees = [&](const AdapterModule& m) {
    return static_cast<Value>(as_peft.resolve(m.target.module, static_cast<double>(fallback))) == m.*value;
  };
  Sorted out = Sorted::object();
  if (std::all_of(adapter.modules.begin(), adapter.modules.end(), agrees)) {
    for (const auto& [name, v] : given) out[name] = number(static_cast<float>(v));
    return out;
  }
  for (const AdapterModule& m : adapter.modules)
    if (m.*value != fallback) out[escaped(m.target.module)] = number(static_cast<float>(m.*value));
  return out;
}

Sorted config_of(const Adapter& adapter, const model::TensorInventory& inventory) {
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", valid_utf8(adapter.base_model)},
          {"r", adapter.rank},
          {"lora_alpha", number(adapter.alpha)},
          {"lora_dropout", number(adapter.dropout)},
          {"target_modules", target_modules(adapter, inventory)},
          {"rank_pattern", patterns(adapter, adapter.rank_pattern, adapter.rank, &AdapterModule::rank, "rank_pattern")},
          {"alpha_pattern",
           patterns(adapter, adapter.alpha_pattern, adapter.alpha, &AdapterModule::alpha, "alpha_pattern")},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"use_rslora", adapter.rslora},
          {"use_dora", false},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr}};
}

void check_sizes(const Adapter& adapter, const fs::path& file) {
  for (const AdapterModule& m : adapter.modules) {
    const auto r = static_cast<std::int64_t>(m.rank);
    const bool ok = r > 0 && static_cast<std::int64_t>(m.a.size()) == r * m.target.in &&
                    static_cast<std::int64_t>(m.b.size()) == r * m.target.out;
    if (!ok)
      throw Error({.id = "ADAPTER",
                   .message = "the values do not fit the rank",
                   .file = file.string(),
                   .place = "module " + m.target.module,
                   .found = std::to_string(m.a.size()) + " and " + std::to_string(m.b.size()) + " values",
                   .expected = std::to_string(r) + " x " + std::to_string(m.target.in) + " and " +
                               std::to_string(m.target.out) + " x " + std::to_string(r)},
                  Error::Kind::failed);
  }
}

}  // namespace

void write_peft(const fs::path& folder, const Adapter& adapter, const model::TensorInventory& inventory) {
  const fs::path file = folder / "adapter_model.safetensors";
  check_sizes(adapter, file);
  const std::string config = config_of(adapter, inventory).dump(2) + "\n";
  std::vector<TensorData> tensors;
  for (const AdapterModule& m : adapter.modules) {
    tensors.push_back({m.target.peft_a, DType::f32, {m.rank, m.target.in}, std::as_bytes(std::span(m.a))});
    tensors.push_back({m.target.peft_b, DType::f32, {m.target.out, m.rank}, std::as_bytes(std::span(m.b))});
  }
  write_file_atomically(folder / "adapter_config.json", config);  // creates the folder
  write_safetensors(file, tensors, {{"format", "pt"}});
}

}  // namespace mw::formats
