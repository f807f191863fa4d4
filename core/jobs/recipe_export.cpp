// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/recipe_export.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/hub_dataset.h"
#include "core/experiment/parameters.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/mesh/layout/layout.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/recipes/settings.h"
#include "core/train/evaluate.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace fs = std::filesystem;
namespace {

using model::Stack;

// Returns {"lora": {"rank": 8, ...}, ...} with the defaults of the table for keys that the document does not set.
Json values_in_force(const experiment::Experiment& e, const std::vector<std::string>& sections) {
  Json out = Json::object();
  for (const std::string& section : sections) out[section] = Json::object();
  for (const experiment::Parameter& p : experiment::parameters()) {
    const size_t dot = p.key.find('.');
    if (dot == std::string::npos || p.key.ends_with(".*")) continue;
    const std::string section = p.key.substr(0, dot), key = p.key.substr(dot + 1);
    if (!out.contains(section) || key.find('.') != std::string::npos) continue;
    out[section][key] = p.type == experiment::ParamType::path ? Json(e.path(p.key).string()) : e.value(p.key);
  }
  return out;
}

// Sets train.steps, which the scripts use; train.epochs stays for information. The steps are those of the engine if its
// settings are known (`settled`), else those of a plan.
void set_steps(const experiment::BoundExperiment& config, const std::optional<train::Settings>& settled,
               recipes::RecipeInput& s) {
  if (config.train.epochs <= 0) return;
  const auto steps = settled ? std::optional<long long>(settled->rate.steps) : plan::training_steps(config);
  s.values["train"]["steps"] = steps.value_or(1);
  if (!steps && !s.source)
    s.remarks.push_back(
        "train.epochs is set, but the number of rows is not known, so settings.json has 1 step. Set data.path, "
        "data.lengths or data.rows and export again.");
}

std::string source_remark(const experiment::HubDataset& d) {
  return "The rows are not in this folder: train.py loads " + d.id + " from the Hugging Face hub (revision " +
         (d.revision.empty() ? "of the first load" : d.revision) + ", licence " +
         (d.license.empty() ? "see its card" : d.license) +
         "), or reads a downloaded copy with --data FILE. The first load records revision, number of rows and their "
         "hash "
         "in data/source.lock.json, and later ones verify them.";
}

// The settings that source.py reads: the reader's settings as the engine would apply them.
void add_reader_settings(const experiment::BoundExperiment& config, recipes::RecipeInput& s) {
  Json& data = s.values["data"];
  data["chat"] = std::string(to_string(train::chat_format(config.data, s.model.family)));
  // The template of the model's folder, which the reader renders in place of `chat`.
  if (const data::ChatTemplate chat = train::chat_template(config, s.model.family); const auto* folder = chat.folder())
    data["chat_template"] = {{"text", folder->text()},
                             {"tool_text", folder->tool_text()},
                             {"tokens", folder->tokens()},
                             {"sha256", folder->sha256()}};
  data["format"] = std::string(to_string(config.data.format));
  data["columns"] = config.data.columns;
  data["source"] = Json::object();
  if (config.data.source.empty()) return;
  s.source = experiment::parse_hub_dataset(config.data.source);
  data["source"] = {{"id", s.source->id},     {"config", s.source->config},     {"split", s.source->split},
                    {"rows", s.source->rows}, {"revision", s.source->revision}, {"license", s.source->license}};
}

// The held-out prompts that the engine would answer with these settings.
std::vector<recipes::Prompt> prompts_of(const experiment::BoundExperiment& config,
                                        const data::TokenizedDataset& dataset, const data::Tokenizer& tokenizer,
                                        const model::Config& model) {
  const options::Training& t = config.train;
  std::vector<recipes::Prompt> out;
  for (const data::Example& e :
       train::with_prompts(dataset.eval, std::max(t.answers, t.sample_every > 0 ? t.sample_prompts : 0), tokenizer)) {
    recipes::Prompt prompt{.text = e.prompt, .expected = e.answer, .ids = {tokenizer.bos()}, .max_new = 0};
    const std::vector<int> body = tokenizer.encode(e.prompt);
    prompt.ids.insert(prompt.ids.end(), body.begin(), body.end());
    prompt.max_new = std::min(train::answer_limit(e, tokenizer, config.sample),
                              std::max(0, model.max_positions - static_cast<int>(prompt.ids.size())));
    out.push_back(std::move(prompt));
  }
  return out;
}

// Adds rows if data and tokenizer are available, else a remark that names the missing one. Always sets the steps.
void add_rows(const experiment::BoundExperiment& config, recipes::RecipeInput& s, const std::stop_token& stop,
              const CountProgress& progress) {
  if ((config.data.path.empty() || config.model.tokenizer_path().empty()) && s.source) {
    s.remarks.push_back(source_remark(*s.source));
    return set_steps(config, std::nullopt, s);
  }
  if (config.data.path.empty() || config.model.tokenizer_path().empty()) {
    s.remarks.push_back(
        config.data.path.empty()
            ? "The experiment names no data: set data.path or data.source and export again; until then only --smoke "
              "runs."
            : "The experiment names no tokenizer: set model.tokenizer (or model.path) and export again; until then "
              "only --smoke runs.");
    return set_steps(config, std::nullopt, s);
  }
  const auto tokenizer = data::load_tokenizer(config.model.tokenizer_path());
  train::Settings settings = train::data_only_settings(config, s.model.family);
  const data::TokenizedDataset dataset = data::open_dataset(settings.data, *tokenizer, stop, progress);
  settings.accumulation = config.train.accumulation;
  settings.rate.steps = config.train.rate.steps;
  auto prompts = prompts_of(config, dataset, *tokenizer, s.model);
  settings.epochs = config.train.epochs;
  train::set_steps_from_epochs(settings, dataset.train);
  set_steps(config, settings, s);
  s.rows = recipes::plan_rows(dataset, train::batch_options(settings),
                              std::int64_t{settings.rate.steps} * settings.accumulation, tokenizer->pad());
  s.rows->prompts = std::move(prompts);
  s.rows->stop_ids = train::answer_stops(*tokenizer, settings.data.chat);
}

bool holds_every_tensor(const recipes::RecipeInput& s) try {
  return !s.given.path.empty() &&
         formats::compare_folder(s.given.path, model::TensorInventory(s.model)).missing.empty();
} catch (const Error&) {
  return false;  // the folder has only a config; the checker reports it
}

// Returns whether a rule does not apply to the scripts because they differ from the plain software: they load files
// with the recipe's own name map and add LoRA with remat off.
bool repaired(const recipes::RecipeInput& s, const std::string& rule) {
  return s.kind == Stack::tunix && (rule == "REMAT-1" || (rule == "LOAD-1" && holds_every_tensor(s)));
}

// {category: bytes, "total", "devices": [...]} of the fullest device, as the info of a Started event has it, so that
// the charts of a recorded run show it. Empty if the target is this machine or no plan is possible.
Json predicted_memory(const experiment::Experiment& e, const plan::PlanContext& context) try {
  if (e.valid_values().target.id == "cpu") return Json::object();
  const Json planned = plan::planned_json(plan::plan_experiment(e, context));
  Json fullest = Json::object(), devices = Json::array();
  for (const Json& device : planned.at("devices")) {
    devices.push_back(device.at("memory"));
    if (device.at("memory").value("total", 0.0) > fullest.value("total", 0.0)) fullest = device.at("memory");
  }
  if (devices.size() > 1) fullest["devices"] = std::move(devices);
  return fullest;
} catch (const Error&) {
  return Json::object();
}

// Refuses software and options that no recipe has, which an export would replace silently.
void check_exported(Stack kind, const experiment::BoundExperiment& config) {
  const bool trains = !model::serves(kind);
  const auto refuse = [](const char* message, std::string place, std::string found, std::string expected) {
    throw Error("RECIPE", message,
                {.place = place,
                 .found = std::move(found),
                 .expected = std::move(expected),
                 .fix = "set " + place + " to one of these, or remove it"});
  };
  const std::optional<Stack> stack = trains ? config.train.stack : config.serve.stack;
  const auto has_recipe = [](Stack s) {
    return s == Stack::engine ||
           std::find(recipes::kRecipes.begin(), recipes::kRecipes.end(), s) != recipes::kRecipes.end();
  };
  if (stack && !has_recipe(*stack))
    refuse("there is no recipe for this software", trains ? "train.stack" : "serve.stack",
           std::string(model::to_string(*stack)), trains ? "tunix, torchax or trl-fsdp" : "vllm-tpu or vllm-gpu");
  if (trains) {
    const options::Training& t = config.train;
    if (t.products != model::DType::bf16)
      refuse("the recipes compute in bf16", "train.products", std::string(to_string(t.products)), "bf16");
    if (t.offload != options::Offload::none)
      refuse("the recipes do not offload activations", "train.offload", std::string(to_string(t.offload)), "none");
    if (t.compile)
      refuse("the recipes run as their software does by default", "train.compile", std::string(to_string(*t.compile)),
             "auto");
    if (!t.saved.empty())
      refuse("the recipes do not keep activations by name", "train.saved", std::string(to_string(t.saved.front())),
             "an empty list");
    return;
  }
  const std::optional<model::DType> weights = config.serve.weight_dtype;
  const bool fp8 = weights == model::DType::fp8 && kind == Stack::vllm_gpu;
  if (weights && *weights != model::DType::bf16 && !fp8)
    refuse("the recipe does not serve weights of this type", "serve.weight_dtype", std::string(to_string(*weights)),
           kind == Stack::vllm_gpu ? "auto, bf16 or fp8" : "auto or bf16");
}

}  // namespace

experiment::Experiment as_recipe(Stack kind, const experiment::Experiment& experiment, const fs::path& templates) {
  experiment::Experiment e = experiment;
  const experiment::BoundExperiment given = e.valid_values();
  const model::Config config = formats::model_config(given.model);
  e.set_value("export.merge", "meshwright");
  e.set_value("export.rank", 0);
  e.set_value("export.alpha", 0);
  e.set_value("export.out", "");
  if (model::serves(kind)) {
    e.set_value("serve.stack", std::string(model::to_string(kind)));
    e.set_value("export.serve_as", "merged");
    return e;
  }
  e.set_value("train.stack", std::string(model::to_string(kind)));
  Json versions = Json::array();
  for (const std::string& line : recipes::pinned_packages(kind, templates)) versions.push_back(line);
  e.set_value("stack.versions", std::move(versions));
  e.set_value("stack.add_bos", "auto");                 // rows.safetensors has <bos> once
  e.set_value("stack.rendering", "prompt_and_answer");  // and is rendered as the engine renders it
  const model::TensorInventory inventory(config);
  e.set_value("lora.module_path", recipes::module_expression(kind, given.lora.module_path, inventory,
                                                             experiment::lora_targets(given.lora)));
  e.set_value("stack.model_config", Json::array());
  if (kind == Stack::tunix)
    e.set_value("stack.model_config", Json::array({"num_embed=" + std::to_string(config.vocab),
                                                   "hidden_dim=" + std::to_string(config.layers.front().mlp_dim)}));
  return e;
}

// How the plan's mesh lies on several slices; empty on one, and if it cannot be laid out.
std::vector<mesh::MeshAxis> axes_over_slices(const experiment::Experiment& made, const plan::PlanContext& context) try {
  const plan::Request r = plan::plan_request(made, context);
  if (r.target.slices == 1) return {};
  return mesh::network_split(mesh::lay_out(r.mesh, r.target, r.places));
} catch (const Error&) {
  return {};
}

recipes::RecipeInput recipe_input(Stack kind, const experiment::Experiment& experiment,
                                  const plan::PlanContext& context, const fs::path& templates, std::stop_token stop,
                                  const CountProgress& progress) {
  const experiment::BoundExperiment config = experiment.config();
  check_exported(kind, config);
  recipes::RecipeInput s{.kind = kind, .name = config.name, .model = formats::model_config(config.model)};
  s.given = config.model;
  if (!config.model.path.empty()) s.given.path = fs::absolute(config.model.path);
  s.mesh = config.mesh;
  s.targets = experiment::lora_targets(config.lora);
  s.experiment = experiment.json();
  s.values = values_in_force(experiment, {"lora", "data", "train", "sample", "serve", "sweep"});
  for (Json* recorded : {&s.experiment, &s.values}) remove_url_secrets(*recorded);
  s.adapter = config.lora.adapter;
  s.tokenizer = config.model.tokenizer_path();
  if (!model::serves(kind)) {
    if (config.train.method != model::TrainMethod::lora)
      throw Error("RECIPE", "recipes support only adapter training",
                  {.place = "train.method", .found = std::string(to_string(config.train.method)), .expected = "lora"});
    if (config.train.dtype == model::WeightType::int8)
      throw Error("RECIPE", "int8 weights cannot be trained",
                  {.place = "train.dtype", .found = "int8", .expected = "bf16 or f32"});
    add_reader_settings(config, s);
    add_rows(config, s, std::move(stop), progress);
  }
  const experiment::Experiment made = as_recipe(kind, experiment, templates);
  if (s.mesh.axes.empty() && config.target.id != "cpu") s.mesh = plan::planned_mesh(made, context);
  if (!model::serves(kind)) {
    s.predicted = predicted_memory(made, context);
    s.slices = axes_over_slices(made, context);
  }
  for (const plan::Diagnostic& d : plan::diagnose(made, context).beyond_the_document())
    if (d.problem.severity != Severity::info && !repaired(s, d.problem.id))
      s.remarks.push_back(d.problem.id + ": " + to_text(d.problem));
  return s;
}

}  // namespace mw::jobs
