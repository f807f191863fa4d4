// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/settings.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/experiment/parameters.h"
#include "core/lint/lora_modules.h"
#include "core/mesh/layout/sharding_options.h"
#include "core/recipes/tunix_model.h"

namespace mw::recipes {
namespace {

// These programs treat data parallelism as a part of fsdp; programs with one axis use all devices for it.
struct TrainingMesh {
  int fsdp = 1, tp = 1, data = 1, ep = 1;
  int devices() const { return fsdp * tp * data; }
};

TrainingMesh mesh_of(const RecipeInput& s, const std::vector<mesh::MeshAxis>& axes) {
  TrainingMesh m;
  for (const mesh::MeshAxis& a : axes) {
    int* size = a.name == "fsdp" ? &m.fsdp : a.name == "tp" ? &m.tp : a.name == "data" ? &m.data : nullptr;
    if (s.kind == model::Stack::vllm_gpu && s.model.experts > 0 && a.name == mesh::kExpertAxis) size = &m.ep;
    if (!size)
      throw Error(
          "RECIPE", "this software does not support the mesh axis",
          {.place = "mesh." + a.name,
           .found = a.name,
           .expected = "fsdp, tp or data",
           .fix = mesh::intended_axis(a.name).empty() ? "" : "did you mean " + mesh::intended_axis(a.name) + "?"});
    *size = a.size;
  }
  return m;
}

// Axes that are not given have the size 1.
Json mesh_json(const RecipeInput& s, const std::vector<mesh::MeshAxis>& axes) {
  const TrainingMesh m = mesh_of(s, axes);
  if (s.kind == model::Stack::tunix || s.kind == model::Stack::torchax)
    return {{"fsdp", m.fsdp * m.data}, {"tp", m.tp}};
  if (s.kind == model::Stack::trl_fsdp) return {{"fsdp", m.devices()}, {"tp", 1}};
  if (m.ep > 1) return {{"fsdp", 1}, {"tp", m.devices()}, {"ep", m.ep}};
  return {{"fsdp", 1}, {"tp", m.devices()}};
}

lint::ModuleNaming naming_of(model::Stack kind) {
  return kind == model::Stack::tunix ? lint::ModuleNaming::qwix : lint::ModuleNaming::peft;
}

Json lora_json(const RecipeInput& s, const model::TensorInventory& inventory) {
  Json l = s.values.at("lora");
  const int rank = l.at("rank").get<int>();
  const double alpha = l.at("alpha").get<double>();
  const bool rslora = l.at("rslora").get<bool>();
  if (s.kind == model::Stack::tunix && (!l.at("rank_pattern").empty() || !l.at("alpha_pattern").empty()))
    throw Error("RECIPE", "this recipe does not support ranks and alphas per module",
                {.place = l.at("rank_pattern").empty() ? "lora.alpha_pattern" : "lora.rank_pattern",
                 .expected = "none",
                 .fix = "remove the pattern, or export trl-fsdp"});
  const bool peft = s.kind == model::Stack::trl_fsdp;
  if (l.at("dora").get<bool>() && !peft)
    throw Error("RECIPE", "this recipe does not compute DoRA",
                {.place = "lora.dora", .expected = "false", .fix = "set lora.dora to false, or export trl-fsdp"});
  if (l.at("plus_ratio").get<double>() != 1 && !peft)
    throw Error("RECIPE", "this recipe has one learning rate for A and B",
                {.place = "lora.plus_ratio",
                 .found = number_text(l.at("plus_ratio").get<double>()),
                 .expected = "1",
                 .fix = "set lora.plus_ratio to 1, or export trl-fsdp"});
  const double scaling = alpha / (rslora ? std::sqrt(static_cast<double>(rank)) : rank);
  l["qwix_alpha"] = scaling * rank;  // Qwix always scales by alpha / rank
  const std::string pattern = module_expression(s.kind, l.at("module_path").get<std::string>(), inventory, s.targets);
  l["module_path"] = pattern;
  Json modules = Json::array();
  for (const lint::LoraModule& m : lint::matching_modules(lint::lora_modules(inventory, naming_of(s.kind)), pattern))
    for (const model::Role role : m.roles) modules.push_back({m.layer, std::string(model::hf_module_name(role))});
  if (modules.empty())
    throw Error(
        "RECIPE", "the expression matches no module of the model",
        {.place = "lora.module_path", .found = pattern, .fix = "leave it empty to derive it from lora.targets"});
  l["modules"] = std::move(modules);
  l.erase("adapter");  // exported to adapter/
  return l;
}

Json model_json(const RecipeInput& s, const model::TensorInventory& inventory) {
  Json m{{"name", s.given.id.empty() ? s.model.id : s.given.id},
         {"path", s.given.path.string()},
         {"hub", hub_name(s.given.id)},
         {"prefix", s.model.hf_prefix},
         {"vocab", s.model.vocab},
         {"max_positions", s.model.max_positions}};
  if (s.kind == model::Stack::tunix) {
    m["tunix"] = tunix_model(s.model);
    m["tensors"] = tunix_tensors(s.model, inventory);
  }
  if (s.kind == model::Stack::trl_fsdp)
    m["layer_class"] = s.model.family == model::Family::gemma2   ? "Gemma2DecoderLayer"
                       : s.model.family == model::Family::gemma3 ? "Gemma3DecoderLayer"
                                                                 : "Gemma4TextDecoderLayer";
  return m;
}

// Whether an adapted module of Qwix combines several projections, which then share one A.
bool shares_a(const RecipeInput& s) {
  const model::TensorInventory inventory(s.model);
  const std::string pattern =
      module_expression(s.kind, s.values.at("lora").at("module_path").get<std::string>(), inventory, s.targets);
  const auto modules = lint::matching_modules(lint::lora_modules(inventory, naming_of(s.kind)), pattern);
  return std::any_of(modules.begin(), modules.end(), [](const lint::LoraModule& l) { return l.roles.size() > 1; });
}

void training_differences(const RecipeInput& s, const TrainingMesh& m, std::vector<std::string>& out) {
  if (m.data > 1 && s.kind != model::Stack::trl_fsdp)
    out.push_back("The axis data (" + std::to_string(m.data) +
                  ") is a part of fsdp here: weights are sharded over it as well; the result is the same.");
  if (s.kind == model::Stack::tunix) {
    if (shares_a(s))
      out.push_back(
          "Qwix has one A for K and V (for Q, K and V in Gemma 2 and 3 if heads equal KV heads); the engine has one "
          "per projection. The first step is the same, later steps differ slightly.");
    if (s.values.at("train").at("dtype") == "bf16")
      out.push_back("Adapters are bf16 like the weights (Qwix); the engine keeps them in f32. Moments are f32.");
    if (s.model.experts > 0)
      out.push_back(
          "google-tunix 0.1.7 routes experts on the normalized residual stream, transformers and the engine on the "
          "residual stream: its outputs for this model are wrong. Use trl-fsdp, or a Tunix with commit e31e280e.");
  }
  if (s.kind == model::Stack::trl_fsdp && m.tp > 1)
    out.push_back("All " + counted(m.devices(), "device") +
                  " form one fsdp axis: this recipe does not use tensor parallelism.");
  if (s.values.at("lora").at("dropout").get<double>() > 0)
    out.push_back("Dropout of the adapters uses other random numbers than the engine, with the same probability.");
  const Json& train = s.values.at("train");
  const double temperature = s.values.value("sample", Json::object()).value("temperature", 0.0);
  if (temperature > 0 && (train.at("answers") > 0 || (train.at("sample_every") > 0 && train.at("sample_prompts") > 0)))
    out.push_back("Held-out prompts are answered greedily; the engine samples them with sample.temperature.");
  if (train.at("keep_best") != "none")
    out.push_back("The newest checkpoints are kept, not the best one (train.keep_best).");
  if (train.at("patience") > 0) out.push_back("All steps are made: the script does not stop early (train.patience).");
  if (s.kind == model::Stack::torchax && s.values.at("train").at("remat") != "none")
    out.push_back("Rematerialization applies jax.checkpoint to the whole step if train.remat is not none.");
}

// Keys of settings.json that no script of the recipe reads, and why. Tests hold the list to the scripts.
Json unread_json(model::Stack kind) {
  Json out{{"made_by", "the version that wrote the folder"},
           {"not_read", "this list"},
           {"lora.targets", "lora.module_path and lora.modules are derived from it"},
           {"train.method", "always lora"}};
  if (kind == model::Stack::tunix) {
    out["model.hub"] = "Tunix loads the folder given by --model";
    out["model.vocab"] = "contained in model.tunix.config";
  } else {
    out["model.prefix"] = "PEFT derives the module names";
    out["lora.qwix_alpha"] = "Qwix's form of alpha; PEFT reads lora.alpha";
  }
  for (const char* key : {"data.path", "data.eval_path"})
    out[key] = "applied already: data/rows.safetensors has the resulting rows";
  for (const experiment::Parameter& p : experiment::parameters())
    if (p.columns.recipes.of(kind) != experiment::RecipeEffect::applied)
      out[p.key] = std::string(p.columns.recipes.reason);
  return out;
}

std::string words(const Json& list) {
  return joined(list, " ", [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); });
}

// vLLM's flags for what the experiment says, as words.
std::vector<std::string> serve_flags(const RecipeInput& s, const Json& serve, const Json& mesh) {
  std::vector<std::string> flags{"--tensor-parallel-size",   mesh.at("tp").dump(),
                                 "--max-model-len",          serve.at("max_model_len").dump(),
                                 "--max-num-seqs",           serve.at("max_num_seqs").dump(),
                                 "--max-num-batched-tokens", serve.at("max_num_batched_tokens").dump(),
                                 "--gpu-memory-utilization", number_text(serve.at("memory_utilisation").get<double>())};
  if (mesh.contains("ep"))  // vLLM shares the experts over both sizes and splits the requests over the second
    flags.insert(flags.end(), {"--data-parallel-size", mesh.at("ep").dump(), "--enable-expert-parallel"});
  const std::string kv = serve.at("kv_dtype");
  flags.insert(flags.end(), {"--kv-cache-dtype", kv == "fp8" ? "fp8" : "auto"});
  if (serve.value("weight_dtype", "auto") == "fp8") flags.insert(flags.end(), {"--quantization", "fp8"});
  flags.push_back(serve.value("prefix_cache", true) ? "--enable-prefix-caching" : "--no-enable-prefix-caching");
  if (s.kind == model::Stack::vllm_gpu)
    flags.push_back(serve.value("chunked_prefill", true) ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill");
  if (!serve.value("sliding_window_kv", true)) flags.push_back("--disable-hybrid-kv-cache-manager");
  return flags;
}

}  // namespace

std::string module_expression(model::Stack kind, const std::string& given, const model::TensorInventory& inventory,
                              const std::vector<model::Role>& targets) {
  const lint::ModuleNaming own = naming_of(kind);
  const lint::ModuleNaming other =
      own == lint::ModuleNaming::qwix ? lint::ModuleNaming::peft : lint::ModuleNaming::qwix;
  const auto matches = [&](lint::ModuleNaming naming) {
    return !lint::matching_modules(lint::lora_modules(inventory, naming), given).empty();
  };
  const bool ours = !given.empty() && (matches(own) || !matches(other));
  return ours ? given : lint::lora_pattern(inventory, targets, own);
}

Json settings_json(const RecipeInput& s) {
  const model::TensorInventory inventory(s.model);
  Json j{{"recipe", std::string(to_string(s.kind))},
         {"made_by", "Meshwright " MW_VERSION},
         {"name", s.name.empty() ? s.model.id : s.name},
         {"model", model_json(s, inventory)},
         {"mesh", mesh_json(s, s.mesh.axes)}};
  if (model::serves(s.kind)) {
    j["serve"] = s.values.at("serve");
    j["sweep"] = s.values.at("sweep");
    return j;
  }
  if (s.kind != model::Stack::trl_fsdp) j["slices"] = mesh_json(s, s.slices);
  j["lora"] = lora_json(s, inventory);
  j["data"] = s.values.at("data");
  j["data"]["pad_id"] = s.rows ? s.rows->pad_id : 0;
  j["train"] = s.values.at("train");
  j["sample"] = {{"max_new_tokens", s.values.at("sample").at("max_new_tokens")}};
  j["predicted"] = s.predicted;
  j["differences"] = differences(s);
  j["not_read"] = unread_json(s.kind);
  return j;
}

std::vector<std::string> differences(const RecipeInput& s) {
  std::vector<std::string> out;
  if (!model::serves(s.kind)) training_differences(s, mesh_of(s, s.mesh.axes), out);
  return out;
}

void add_serving(const RecipeInput& s, const Json& settings, std::vector<File>& files) {
  const Json &serve = settings.at("serve"), &sweep = settings.at("sweep");
  std::string text = "# What serve.sh and bench.sh read; every value is one quoted word or a list of them.\n";
  const auto set = [&](const char* name, const std::string& value) {
    text += std::string(name) + "=" + shell_quoted(value) + "\n";
  };
  set("MODEL_NAME", settings.at("model").at("name"));
  set("MODEL_HUB", settings.at("model").at("hub"));
  set("MODEL_FOLDER", settings.at("model").at("path"));
  text += "SERVE_FLAGS=(";
  for (const std::string& flag : serve_flags(s, serve, settings.at("mesh"))) text += " " + shell_quoted(flag);
  text += " )\n";
  set("REQUEST_RATES", words(sweep.at("request_rates")));
  set("INPUT_LENS", words(sweep.at("input_lens")));
  set("OUTPUT_LEN", sweep.at("output_len").dump());
  set("NUM_PROMPTS", sweep.at("num_prompts").dump());
  set("NUM_PROMPTS_AT", words(sweep.at("num_prompts_at")));
  set("CONCURRENCY", sweep.at("concurrency").dump());
  set("SEED", sweep.at("seed").dump());
  files.push_back({"settings.sh", std::move(text), false});
}

}  // namespace mw::recipes
