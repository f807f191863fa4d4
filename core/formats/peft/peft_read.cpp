// SPDX-License-Identifier: Apache-2.0
// A PEFT LoRA adapter. Whatever would change the computation and is not plain LoRA is refused by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/formats/peft/peft_patterns.h"
#include "core/formats/safetensors/file_error.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

constexpr double kMaxRank = 1 << 16;

[[noreturn]] void adapter_fault(const fs::path& file, const std::string& place, const std::string& message,
                                const std::string& found = "", const std::string& expected = "",
                                const std::string& fix = "") {
  fail_file("ADAPTER", file, place, {message, found, expected, fix});
}

const Json* get(const Json& config, const char* key) {
  const auto at = config.find(key);
  return at == config.end() || at->is_null() ? nullptr : &*at;
}

// Off in its usual form: absent, null, false or empty.
bool is_off(const Json* value) {
  return !value || *value == false || ((value->is_object() || value->is_array()) && value->empty());
}

void refuse_variants(const Json& config, const fs::path& file) {
  static constexpr std::array<const char*, 17> kMustBeOff{"use_dora",
                                                          "lora_bias",
                                                          "use_qalora",
                                                          "use_bdlora",
                                                          "fan_in_fan_out",
                                                          "modules_to_save",
                                                          "trainable_token_indices",
                                                          "target_parameters",
                                                          "layer_replication",
                                                          "alora_invocation_tokens",
                                                          "arrow_config",
                                                          "kasa_config",
                                                          "velora_config",
                                                          "monteclora_config",
                                                          "lora_ga_config",
                                                          "megatron_config",
                                                          "corda_config"};
  for (const char* key : kMustBeOff)
    if (const Json* value = get(config, key); !is_off(value))
      adapter_fault(file, key, "this kind of adapter is not supported", json_excerpt(*value), "plain LoRA");
  const Json* type = get(config, "peft_type");
  if (!type || *type != "LORA")
    adapter_fault(file, "peft_type", "not a LoRA adapter", type ? json_excerpt(*type) : "nothing", "LORA");
  if (const Json* bias = get(config, "bias"); bias && *bias != "none")
    adapter_fault(file, "bias", "trained biases are not supported", json_excerpt(*bias), "none");
  // These initialisations change the base weights too, so that the adapter alone is not the model.
  const Json* init = get(config, "init_lora_weights");
  const bool plain = !init || init->is_boolean() || *init == "gaussian" || *init == "eva" || *init == "orthogonal";
  if (!plain)
    adapter_fault(file, "init_lora_weights", "this initialisation changes the base weights", json_excerpt(*init),
                  "true, false or gaussian",
                  "convert it with peft: save_pretrained(..., path_initial_model_for_weight_conversion=...)");
}

double number(const Json& config, const char* key, double fallback, double low, double high, const fs::path& file) {
  const Json* value = get(config, key);
  if (!value) return fallback;
  const bool ok = value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
  if (!ok)
    adapter_fault(file, key, "out of range", json_excerpt(*value), "a number from " + std::to_string(low) + " up");
  return value->get<double>();
}

std::vector<std::pair<std::string, double>> patterns(const Json& config, const char* key, double low, double high,
                                                     const fs::path& file) {
  std::vector<std::pair<std::string, double>> out;
  const Json* all = get(config, key);
  if (!all) return out;
  if (!all->is_object()) adapter_fault(file, key, "wrong type", json_excerpt(*all), "an object");
  for (const auto& [name, value] : all->items()) {
    const bool ok = value.is_number() && value.get<double>() >= low && value.get<double>() <= high;
    if (!ok)
      adapter_fault(file, std::string(key) + "." + name, "out of range", json_excerpt(value), "a positive number");
    out.emplace_back(name, value.get<double>());
  }
  return out;
}

int whole_rank(double rank, const std::string& place, const fs::path& file) {
  if (rank != std::floor(rank))
    adapter_fault(file, place, "a rank that is not whole", std::to_string(rank), "a whole number");
  return static_cast<int>(rank);
}

struct Settings {  // adapter_config.json
  Adapter adapter;
  PeftPatterns ranks, alphas;
};

Settings read_settings(const fs::path& file) {
  const Json config = read_json(file);
  if (!config.is_object()) adapter_fault(file, "", "not a JSON object", json_excerpt(config), "an object");
  refuse_variants(config, file);
  Settings s;
  s.adapter.rank = whole_rank(number(config, "r", 8, 1, kMaxRank, file), "r", file);
  s.adapter.alpha = static_cast<float>(number(config, "lora_alpha", 8, 1e-6, 1e9, file));
  s.adapter.dropout = static_cast<float>(number(config, "lora_dropout", 0, 0, 0.999, file));
  if (const Json* rslora = get(config, "use_rslora")) {
    if (!rslora->is_boolean()) adapter_fault(file, "use_rslora", "wrong type", json_excerpt(*rslora), "true or false");
    s.adapter.rslora = rslora->get<bool>();
  }
  if (const Json* base = get(config, "base_model_name_or_path"); base && base->is_string())
    s.adapter.base_model = base->get<std::string>();
  const auto ranks = patterns(config, "rank_pattern", 1, kMaxRank, file);
  const auto alphas = patterns(config, "alpha_pattern", 1e-6, 1e9, file);
  for (const auto& [key, rank] : ranks)
    s.adapter.rank_pattern.emplace_back(key, whole_rank(rank, "rank_pattern." + key, file));
  for (const auto& [key, alpha] : alphas) s.adapter.alpha_pattern.emplace_back(key, static_cast<float>(alpha));
  s.ranks = PeftPatterns(ranks, file.string(), "rank_pattern");
  s.alphas = PeftPatterns(alphas, file.string(), "alpha_pattern");
  return s;
}

struct Pair {
  const TensorInfo *a = nullptr, *b = nullptr;
  std::string module;  // as in the file, which is what peft matches patterns against
};

// "base_model.model.<module>.lora_A.weight" of a module the inventory has; nothing else may stand in the file.
std::map<size_t, Pair> pair_up(const SafetensorsFile& file, const model::TensorInventory& inventory) {
  constexpr std::string_view kRoot = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";
  std::map<std::string_view, size_t> targets;
  const auto all = inventory.lora_targets();
  for (size_t i = 0; i < all.size(); ++i) targets.emplace(suffix_of(all[i]), i);
  std::map<size_t, Pair> out;
  for (const TensorInfo& info : file.tensors()) {
    const std::string_view name = info.name;
    const bool is_a = name.ends_with(kA);
    if (!name.starts_with(kRoot) || (!is_a && !name.ends_with(kB)) || name.size() < kRoot.size() + kA.size())
      adapter_fault(file.path(), "tensor " + info.name, "not a plain LoRA tensor", "",
                    "names ending in lora_A.weight or lora_B.weight");
    const std::string_view module = name.substr(kRoot.size(), name.size() - kRoot.size() - kA.size());
    const auto at = is_tower(module) ? targets.end() : targets.find(without_prefix(module));
    if (at == targets.end())
      adapter_fault(file.path(), "tensor " + info.name, "the model has no such module", std::string(module), "",
                    "this adapter belongs to another base model");
    Pair& pair = out[at->second];
    const TensorInfo*& slot = is_a ? pair.a : pair.b;
    if (slot) adapter_fault(file.path(), "tensor " + info.name, "the module is adapted twice", "also " + slot->name);
    slot = &info;
    pair.module = module;
  }
  if (out.empty()) adapter_fault(file.path(), "", "the adapter holds no tensors");
  return out;
}

std::vector<float> values(const SafetensorsFile& file, const TensorInfo& info, const std::vector<std::int64_t>& shape) {
  if (info.shape != shape)
    adapter_fault(file.path(), "tensor " + info.name, "wrong shape", shape_text(info.shape), shape_text(shape),
                  "this adapter belongs to another base model, or its adapter_config.json to another adapter");
  std::vector<float> out(static_cast<size_t>(info.elements()));
  file.read_f32(info, 0, out);
  const auto bad = std::find_if_not(out.begin(), out.end(), [](float v) { return std::isfinite(v); });
  if (bad != out.end())
    adapter_fault(file.path(), "tensor " + info.name + ", element " + std::to_string(bad - out.begin()),
                  "a value is not a finite number", std::to_string(*bad), "finite values",
                  "the file is damaged or its training diverged; take an earlier checkpoint");
  return out;
}

}  // namespace

Adapter read_peft(const fs::path& folder, const model::TensorInventory& inventory) {
  const fs::path config = folder / "adapter_config.json";
  Settings s = read_settings(config);
  const SafetensorsFile file(folder / "adapter_model.safetensors");
  for (const auto& [index, pair] : pair_up(file, inventory)) {
    const model::LoraTarget& target = inventory.lora_targets()[index];
    if (!pair.a || !pair.b)
      adapter_fault(file.path(), "module " + pair.module, "half of the pair is missing",
                    pair.a ? "lora_A only" : "lora_B only", "lora_A and lora_B");
    AdapterModule m;
    m.target = target;
    m.rank = static_cast<int>(s.ranks.resolve(pair.module, s.adapter.rank));
    m.alpha = static_cast<float>(s.alphas.resolve(pair.module, s.adapter.alpha));
    m.a = values(file, *pair.a, {m.rank, target.in});
    m.b = values(file, *pair.b, {target.out, m.rank});
    s.adapter.modules.push_back(std::move(m));
    const std::string name(model::hf_module_name(target.role));
    if (std::find(s.adapter.targets.begin(), s.adapter.targets.end(), name) == s.adapter.targets.end())
      s.adapter.targets.push_back(name);
  }
  return std::move(s.adapter);
}

}  // namespace mw::formats
