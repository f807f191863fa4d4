// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <cstdio>

#include "app/commands.h"
#include "core/base/files.h"
#include "core/experiment/settings.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/store/store.h"
#include "core/train/checkpoint.h"
#include "core/train/model.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

// The folder with the tuned weights: --adapter, the last checkpoint of --run, or the experiment's lora.adapter.
fs::path tuned_folder(const Common& common, const GenerateArgs& args, const experiment::Experiment& experiment) {
  if (!args.adapter.empty()) return args.adapter;
  if (args.run.empty()) return experiment.path("lora.adapter");
  store::Store store(common.runs_folder);
  std::string run = args.run;
  if (run == "latest") {
    for (const store::RunRow& row : store.list())
      if (train::latest_checkpoint(store.run_folder(row.id))) {
        run = row.id;
        break;
      }
  }
  const auto checkpoint = store.find(run) ? train::latest_checkpoint(store.run_folder(run)) : std::nullopt;
  if (!checkpoint)
    throw Error({.id = "RUN",
                 .message = "there is no checkpoint of this run",
                 .file = common.runs_folder.string(),
                 .place = args.run,
                 .fix = "see `meshwright runs`; train one with `meshwright run`"});
  return *checkpoint;
}

struct Result {
  std::vector<train::Answer> answers;  // of each prompt
  double seconds = 0;                  // for all of them
  size_t tokens() const {
    size_t sum = 0;
    for (const train::Answer& a : answers) sum += a.ids.size();
    return sum;
  }
};

Result ask(train::LoadedModel& model, const std::vector<std::string>& prompts, data::ChatFormat chat,
           const engine::SampleOptions& options, std::stop_token stop) {
  const auto begun = std::chrono::steady_clock::now();
  Result r{.answers = train::answers(model, prompts, chat, options, stop)};
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return r;
}

void print(const char* label, const GenerateArgs& args, const Result& result) {
  for (size_t i = 0; i < result.answers.size(); ++i) {
    if (args.prompts.size() > 1) print_text("> %s\n", args.prompts[i].c_str());
    print_text("%s%s\n", label, result.answers[i].text.c_str());
  }
}

// The first prompt's answer at the top, as for a single one; with several, all under "answers".
Json to_json(const std::vector<std::string>& prompts, const Result& base, const Result* tuned) {
  const Result& last = tuned ? *tuned : base;
  Json out{
      {"text", last.answers[0].text}, {"tokens", last.tokens()}, {"seconds", last.seconds}, {"prompt", prompts[0]}};
  if (tuned) out["base_text"] = base.answers[0].text;
  if (prompts.size() == 1) return out;
  out["answers"] = Json::array();
  for (size_t i = 0; i < prompts.size(); ++i) {
    out["answers"].push_back(
        {{"prompt", prompts[i]}, {"text", last.answers[i].text}, {"tokens", last.answers[i].ids.size()}});
    if (tuned) out["answers"].back()["base_text"] = base.answers[i].text;
  }
  return out;
}

// Puts the tuned weights into `model`: an adapter onto it, or another whole model in its place.
void tune(train::LoadedModel& model, const fs::path& folder, train::ModelSettings settings) {
  if (!is_there(folder / "adapter_config.json")) {
    settings.path = folder;
    settings.init = train::Init::load;
    model = {};  // the devices have room for one
    model = train::load_model(settings);
    return;
  }
  const formats::Adapter adapter = formats::read_peft(folder, model.cluster->inventory());
  train::attach_adapter(adapter, settings.seed, *model.cluster);
}

// To hold another program's against: as the weights are computed with (train.dtype), at every position.
void write_logits(train::LoadedModel& model, const std::vector<std::string>& prompts, const fs::path& file) {
  std::vector<train::PromptLogits> all;
  for (const std::string& prompt : prompts) all.push_back(train::prompt_logits(model, prompt));
  std::vector<formats::TensorData> tensors;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto rows = static_cast<std::int64_t>(all[i].ids.size());
    const std::string name = std::to_string(i);
    tensors.push_back({name + ".ids", formats::DType::i32, {rows}, std::as_bytes(std::span(all[i].ids))});
    tensors.push_back(
        {name + ".logits", formats::DType::f32, {rows, model.config().vocab}, std::as_bytes(std::span(all[i].logits))});
  }
  formats::write_safetensors(file, tensors);
}

// On the mesh of this machine's virtual devices; one of chips that are not here runs as one device, and so do logits.
train::ModelSettings settings_of(const experiment::Experiment& experiment, const GenerateArgs& args) {
  train::ModelSettings settings = experiment::model_settings(experiment);
  settings.use = engine::Use::inference;
  if (experiment.string("target.id") == "cpu" && args.logits.empty()) return settings;
  settings.capacity = settings.capacity * settings.mesh.devices();
  settings.mesh = {};
  return settings;
}

}  // namespace

int generate_command(const Common& common, const GenerateArgs& args) {
  const experiment::Experiment experiment = load_experiment(common);
  const train::ModelSettings settings = settings_of(experiment, args);
  const fs::path tuned = tuned_folder(common, args, experiment);
  if (!tuned.empty() && is_there(tuned / "adapter_config.json"))
    train::read_adapter(tuned, settings.path);  // refused now rather than after the base model's answer
  train::LoadedModel model = train::load_model(settings);
  const data::ChatFormat chat =
      args.raw ? data::ChatFormat::none : experiment::chat_format(experiment, model.config().family);
  std::vector<std::string> prompts;
  for (const std::string& p : args.prompts)
    prompts.push_back(chat == data::ChatFormat::none ? p : data::render_prompt(chat, {{"user", p}}));
  const engine::SampleOptions options = experiment::sample_options(experiment);

  const Result base = ask(model, prompts, chat, options, common.stop);
  if (common.output == Output::text) print(tuned.empty() ? "" : "base:  ", args, base);
  Json out;
  if (tuned.empty()) {
    out = to_json(prompts, base, nullptr);
  } else {
    tune(model, tuned, settings);
    const Result after = ask(model, prompts, chat, options, common.stop);
    if (common.output == Output::text) print("tuned: ", args, after);
    out = to_json(prompts, base, &after);
    out["tuned"] = tuned.string();
  }
  if (!args.logits.empty()) {
    write_logits(model, prompts, args.logits);
    out["logits"] = args.logits.string();
  }
  out["model"] = settings.path.string();
  out["mesh"] = train::mesh_json(settings.mesh);
  if (common.output == Output::json) print_json(out);
  return common.stop.stop_requested() ? 130 : 0;
}

}  // namespace mw::app
