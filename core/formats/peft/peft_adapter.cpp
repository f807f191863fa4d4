// SPDX-License-Identifier: Apache-2.0
// Follows peft/src/peft/tuners/lora. adapter_config.json is written like PEFT does: sorted keys, indentation of 2.
#include "core/formats/peft/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {
namespace {

constexpr size_t kMaxPatterns = 4096, kMaxLength = 256;

Error fault(const std::string& file, const std::string& place, const std::string& message, const std::string& key) {
  return Error("ADAPTER", message,
               {.file = file,
                .place = valid_utf8(place),
                .found = valid_utf8(key.substr(0, 60)),
                .expected = "a module name or a regular expression"});
}

Pattern compile(const std::string& key, const std::string& file, const std::string& place) {
  if (key.size() > kMaxLength) throw fault(file, place, "the pattern is too long", key);
  try {
    return Pattern("(.*\\.)?(" + key + ")");
  } catch (const Error&) {
    throw fault(file, place, "invalid regular expression", key);
  }
}

}  // namespace

PeftPatterns::PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
                           const std::string& place)
    : file_(file), place_(place) {
  if (patterns.size() > kMaxPatterns)
    throw Error("ADAPTER", "there are too many patterns",
                {.file = file,
                 .place = place,
                 .found = std::to_string(patterns.size()),
                 .expected = "at most " + std::to_string(kMaxPatterns)});
  for (const auto& [key, value] : patterns) patterns_.push_back({key, compile(key, file, place + "." + key), value});
}

double PeftPatterns::resolve(const std::string& module, double fallback) const {
  for (const Entry& entry : patterns_) {
    try {
      if (entry.expression.matches(module)) return entry.value;
    } catch (const Error&) {
      throw fault(file_, place_ + "." + entry.key, "matching the regular expression takes too long", entry.key);
    }
  }
  return fallback;
}

namespace fs = std::filesystem;
namespace {

constexpr double kMaxRank = 1 << 16;

constexpr FileErrors adapter_fault{"ADAPTER"};

// Missing, null, false or empty.
bool is_off(const Json* value) {
  return !value || *value == false || ((value->is_object() || value->is_array()) && value->empty());
}

void reject_other_variants(const Json& config, const fs::path& file) {
  for (const char* key :
       {"lora_bias", "use_qalora", "use_bdlora", "fan_in_fan_out", "modules_to_save", "trainable_token_indices",
        "target_parameters", "layer_replication", "alora_invocation_tokens", "arrow_config", "kasa_config",
        "velora_config", "monteclora_config", "lora_ga_config", "megatron_config", "corda_config"})
    if (const Json* value = find_member(config, key); !is_off(value))
      adapter_fault(file, key, "this variant of LoRA is not supported", json_excerpt(*value), "LoRA or DoRA");
  const Json* type = find_member(config, "peft_type");
  if (!type || *type != "LORA")
    adapter_fault(file, "peft_type", "the adapter is not a LoRA adapter", type ? json_excerpt(*type) : "nothing",
                  "LORA");
  if (const Json* bias = find_member(config, "bias"); bias && *bias != "none")
    adapter_fault(file, "bias", "trained biases are not supported", json_excerpt(*bias), "none");
  // Other initialisations change the base weights as well, so the adapter alone is not sufficient.
  const Json* init = find_member(config, "init_lora_weights");
  const bool plain = !init || init->is_boolean() || *init == "gaussian" || *init == "eva" || *init == "orthogonal";
  if (!plain)
    adapter_fault(file, "init_lora_weights", "this initialisation changes the base weights and is not supported",
                  json_excerpt(*init), "true, false or gaussian",
                  "convert the adapter with peft: save_pretrained(..., path_initial_model_for_weight_conversion=...)");
}

double number(const Json& config, const char* key, double fallback, double low, double high, const fs::path& file) {
  const Json* value = find_member(config, key);
  if (!value) return fallback;
  const bool ok = value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
  if (!ok)
    adapter_fault(file, key, "the value is out of range", json_excerpt(*value),
                  "a number from " + std::to_string(low) + " up");
  return value->get<double>();
}

std::vector<std::pair<std::string, double>> patterns(const Json& config, const char* key, double low, double high,
                                                     const fs::path& file) {
  std::vector<std::pair<std::string, double>> out;
  const Json* all = find_member(config, key);
  if (!all) return out;
  if (!all->is_object()) adapter_fault(file, key, "wrong type", json_excerpt(*all), "an object");
  for (const auto& [name, value] : all->items()) {
    const bool ok = value.is_number() && value.get<double>() >= low && value.get<double>() <= high;
    if (!ok)
      adapter_fault(file, std::string(key) + "." + name, "the value is out of range", json_excerpt(value),
                    "a positive number");
    out.emplace_back(name, value.get<double>());
  }
  return out;
}

int whole_rank(double rank, const std::string& place, const fs::path& file) {
  if (rank != std::floor(rank))
    adapter_fault(file, place, "the rank is not a whole number", std::to_string(rank), "a whole number");
  return static_cast<int>(rank);
}

struct Settings {  // adapter_config.json
  PeftAdapter adapter;
  PeftPatterns ranks, alphas;
};

Settings read_settings(const fs::path& file) {
  const Json config = read_json(file);
  if (!config.is_object())
    adapter_fault(file, "", "the configuration is not a JSON object", json_excerpt(config), "an object");
  reject_other_variants(config, file);
  Settings s;
  s.adapter.rank = whole_rank(number(config, "r", 8, 1, kMaxRank, file), "r", file);
  s.adapter.alpha = static_cast<float>(number(config, "lora_alpha", 8, 1e-6, 1e9, file));
  s.adapter.dropout = static_cast<float>(number(config, "lora_dropout", 0, 0, 0.999, file));
  for (const auto& [key, flag] : {std::pair("use_rslora", &s.adapter.rslora), {"use_dora", &s.adapter.dora}})
    if (const Json* value = find_member(config, key)) {
      if (!value->is_boolean()) adapter_fault(file, key, "wrong type", json_excerpt(*value), "true or false");
      *flag = value->get<bool>();
    }
  if (const Json* base = find_member(config, "base_model_name_or_path"); base && base->is_string())
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

struct ModuleTensors {
  const TensorInfo *a = nullptr, *b = nullptr, *m = nullptr;
  std::string module;  // name in the file, which PEFT matches with patterns
};

constexpr std::string_view kMagnitude = ".lora_magnitude_vector";

// Finds the tensors "base_model.model.<module>.lora_A.weight", lora_B and the magnitudes of each module; throws for
// other tensors.
std::map<size_t, ModuleTensors> find_modules(const SafetensorsFile& file, const model::TensorInventory& inventory) {
  constexpr std::string_view kRoot = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";
  std::map<std::string_view, size_t> targets;
  const auto all = inventory.lora_targets();
  for (size_t i = 0; i < all.size(); ++i) targets.emplace(suffix_of(all[i]), i);
  std::map<size_t, ModuleTensors> out;
  for (const TensorInfo& info : file.tensors()) {
    const std::string_view name = info.name;
    const auto ends = {kA, kB, kMagnitude};
    const auto end = std::find_if(ends.begin(), ends.end(), [&](std::string_view e) { return name.ends_with(e); });
    if (!name.starts_with(kRoot) || end == ends.end() || name.size() < kRoot.size() + end->size())
      adapter_fault(file.path(), "tensor " + info.name, "the tensor does not belong to LoRA or DoRA", "",
                    "names ending in lora_A.weight, lora_B.weight or lora_magnitude_vector");
    const std::string_view module = name.substr(kRoot.size(), name.size() - kRoot.size() - end->size());
    const auto at = is_tower(module) ? targets.end() : targets.find(without_prefix(module));
    if (at == targets.end())
      adapter_fault(file.path(), "tensor " + info.name, "the model has no such module", std::string(module), "",
                    "choose the base model of this adapter");
    ModuleTensors& tensors = out[at->second];
    const TensorInfo*& slot = *end == kA ? tensors.a : *end == kB ? tensors.b : tensors.m;
    if (slot) adapter_fault(file.path(), "tensor " + info.name, "the module has two adapters", "also " + slot->name);
    slot = &info;
    tensors.module = module;
  }
  if (out.empty()) adapter_fault(file.path(), "", "the adapter contains no tensors");
  return out;
}

std::vector<float> values(const SafetensorsFile& file, const TensorInfo& info, const std::vector<std::int64_t>& shape) {
  if (info.shape != shape)
    adapter_fault(file.path(), "tensor " + info.name, "the shape does not match the base model", shape_text(info.shape),
                  shape_text(shape),
                  "choose the base model of this adapter, and check that adapter_config.json belongs to it");
  std::vector<float> out(static_cast<size_t>(info.elements()));
  file.read_f32(info, 0, out);
  const auto bad = std::find_if_not(out.begin(), out.end(), [](float v) { return std::isfinite(v); });
  if (bad != out.end())
    adapter_fault(file.path(), "tensor " + info.name + ", element " + std::to_string(bad - out.begin()),
                  "a value is not finite", std::to_string(*bad), "finite values",
                  "use an earlier checkpoint: the file is damaged, or the training diverged");
  return out;
}

using Sorted = nlohmann::json;  // sorts keys

// The shortest decimal of the float; integers without a point, like lora_alpha in PEFT.
Sorted number(float value) {
  if (value == std::floor(value) && std::abs(value) < 1e9f) return static_cast<long long>(value);
  return shortest_double(value);
}

bool is_multimodal(const AdapterModule& m) {
  return m.target.module.find("language_model.") != std::string::npos;
}

// "self_attn.k_proj" of "model.layers.3.self_attn.k_proj".
std::string name_in_layer(const AdapterModule& m) {
  const size_t layers = m.target.module.find("layers."), dot = m.target.module.find('.', layers + 7);
  return m.target.module.substr(dot + 1);
}

// Whether the names also match modules without an adapter; PEFT would add untrained adapters for these.
bool matches_other_modules(const PeftAdapter& adapter, const std::set<std::string>& names,
                           const model::TensorInventory& inventory) {
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

// Groups modules with the same layers: "(0|2)\.(mlp\.up_proj|self_attn\.q_proj)|(2)\.self_attn\.k_proj".
std::string layer_expression(const PeftAdapter& adapter) {
  std::map<std::string, std::set<int>> layers;  // by module
  for (const AdapterModule& m : adapter.modules) layers[escaped(name_in_layer(m))].insert(m.target.layer);
  std::map<std::set<int>, std::set<std::string>> modules;
  for (const auto& [module, where] : layers) modules[where].insert(module);
  std::string out;
  for (const auto& [where, names] : modules) {
    const std::string numbers = joined(where, "|", [](int layer) { return std::to_string(layer); });
    out += (out.empty() ? "(" : "|(") + numbers + ")\\.(" + joined(names, "|") + ")";
  }
  return "layers\\.(" + out + ")";
}

// A list of suffixes, or a regular expression if a list would also match modules of a vision tower or of other layers.
Sorted target_modules(const PeftAdapter& adapter, const model::TensorInventory& inventory) {
  std::set<std::string> names;
  for (const AdapterModule& m : adapter.modules) names.emplace(model::hf_module_name(m.target.role));
  const bool towers = std::any_of(adapter.modules.begin(), adapter.modules.end(), is_multimodal);
  if (matches_other_modules(adapter, names, inventory))
    return (towers ? ".*language_model\\.(.*\\.)?" : "(.*\\.)?") + layer_expression(adapter);
  if (!towers) return names;
  return ".*language_model\\..*\\.(" + joined(names, "|") + ")";
}

// rank_pattern or alpha_pattern: the given patterns if PEFT derives the modules' values from them (it sorts them, and
// the first match wins), else one entry per module that differs from the default.
template <class Value>
Sorted patterns(const PeftAdapter& adapter, const std::vector<std::pair<std::string, Value>>& given, Value fallback,
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

Sorted config_of(const PeftAdapter& adapter, const model::TensorInventory& inventory) {
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
          {"use_dora", adapter.dora},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr}};
}

void check_sizes(const PeftAdapter& adapter, const fs::path& file) {
  for (const AdapterModule& m : adapter.modules) {
    const auto r = static_cast<std::int64_t>(m.rank);
    const bool ok = r > 0 && static_cast<std::int64_t>(m.a.size()) == r * m.target.in &&
                    static_cast<std::int64_t>(m.b.size()) == r * m.target.out &&
                    static_cast<std::int64_t>(m.m.size()) == (adapter.dora ? m.target.out : 0);
    if (!ok)
      throw Error("ADAPTER", "the number of values does not match the rank",
                  {.file = file.string(),
                   .place = "module " + m.target.module,
                   .found = std::to_string(m.a.size()) + " and " + counted(m.b.size(), "value"),
                   .expected = std::to_string(r) + " x " + std::to_string(m.target.in) + " and " +
                               std::to_string(m.target.out) + " x " + std::to_string(r)},
                  Error::Kind::failed);
  }
}

}  // namespace

std::string peft_magnitude(const model::LoraTarget& target) {
  constexpr std::string_view kEnd = ".lora_A.weight";
  return target.peft_a.substr(0, target.peft_a.size() - kEnd.size()) + std::string(kMagnitude);
}

PeftAdapter read_peft(const fs::path& folder, const model::TensorInventory& inventory) {
  const fs::path config = folder / "adapter_config.json";
  Settings s = read_settings(config);
  const SafetensorsFile file(folder / "adapter_model.safetensors");
  for (const auto& [index, tensors] : find_modules(file, inventory)) {
    const model::LoraTarget& target = inventory.lora_targets()[index];
    if (!tensors.a || !tensors.b)
      adapter_fault(file.path(), "module " + tensors.module, "one of the two tensors is missing",
                    tensors.a ? "lora_A only" : "no lora_A", "lora_A and lora_B");
    if (s.adapter.dora != (tensors.m != nullptr))
      adapter_fault(file.path(), "module " + tensors.module, "magnitudes and use_dora contradict each other",
                    tensors.m ? "magnitudes" : "no magnitudes",
                    tensors.m ? "none, as use_dora is false" : "lora_magnitude_vector, as use_dora is true");
    AdapterModule m;
    m.target = target;
    m.rank = static_cast<int>(s.ranks.resolve(tensors.module, s.adapter.rank));
    m.alpha = static_cast<float>(s.alphas.resolve(tensors.module, s.adapter.alpha));
    m.a = values(file, *tensors.a, {m.rank, target.in});
    m.b = values(file, *tensors.b, {target.out, m.rank});
    if (tensors.m) m.m = values(file, *tensors.m, {target.out});
    s.adapter.modules.push_back(std::move(m));
    const std::string name(model::hf_module_name(target.role));
    if (std::find(s.adapter.targets.begin(), s.adapter.targets.end(), name) == s.adapter.targets.end())
      s.adapter.targets.push_back(name);
  }
  return std::move(s.adapter);
}

std::uint64_t peft_file_size(std::span<const AdapterRank> adapters) {
  std::vector<TensorSpec> tensors;
  for (const AdapterRank& a : adapters) {
    tensors.push_back({a.target.peft_a, TensorDType::f32, {a.rank, a.target.in}});
    tensors.push_back({a.target.peft_b, TensorDType::f32, {a.target.out, a.rank}});
    if (a.dora) tensors.push_back({peft_magnitude(a.target), TensorDType::f32, {a.target.out}});
  }
  return layout_of(tensors, {{"format", "pt"}}, {}).bytes;
}

void write_peft(const fs::path& folder, const PeftAdapter& adapter, const model::TensorInventory& inventory) {
  const fs::path file = folder / "adapter_model.safetensors";
  check_sizes(adapter, file);
  const std::string config = config_of(adapter, inventory).dump(2) + "\n";
  std::vector<TensorData> tensors;
  for (const AdapterModule& m : adapter.modules) {
    tensors.push_back({m.target.peft_a, TensorDType::f32, {m.rank, m.target.in}, std::as_bytes(std::span(m.a))});
    tensors.push_back({m.target.peft_b, TensorDType::f32, {m.target.out, m.rank}, std::as_bytes(std::span(m.b))});
    if (adapter.dora)
      tensors.push_back({peft_magnitude(m.target), TensorDType::f32, {m.target.out}, std::as_bytes(std::span(m.m))});
  }
  write_file_atomically(folder / "adapter_config.json", config);  // creates the folder
  write_safetensors(file, tensors, {{"format", "pt"}});
}

}  // namespace mw::formats
