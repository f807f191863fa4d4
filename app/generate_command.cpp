// SPDX-License-Identifier: GPL-3.0-or-later
// `generate`: samples from the base model and, if there is one, from the tuned model.
#include <CLI/CLI.hpp>
#include <chrono>
#include <tuple>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

struct GenerateOptions {
  std::vector<std::string> prompts;
  TunedRun tuned{};
  fs::path adapter{};  // PEFT folder
  bool raw = false;    // continue the text without the chat template
  fs::path logits{};   // output file for the logits of the prompts
};

// The folder of the tuned weights: --adapter, the checkpoint of --run-id, or the experiment's lora.adapter.
fs::path tuned_folder(const CommonOptions& common, const GenerateOptions& options,
                      const experiment::BoundExperiment& experiment) {
  if (!options.adapter.empty()) return options.adapter;
  return options.tuned.run.empty() ? experiment.lora.adapter : tuned_model(common, options.tuned);
}

struct Generated {
  std::vector<train::Answer> answers;  // one per prompt
  double seconds = 0;                  // for all prompts
  size_t tokens() const {
    size_t sum = 0;
    for (const train::Answer& answer : answers) sum += answer.ids.size();
    return sum;
  }
};

Generated sample(train::LoadedModel& model, const std::vector<std::string>& prompts, const data::ChatTemplate& chat,
                 const options::SampleOptions& options, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  Generated generated{.answers = train::answers(model, prompts, chat, options, stop)};
  generated.seconds = seconds_since(start);
  return generated;
}

void print_answers(const char* label, const GenerateOptions& options, const Generated& generated) {
  for (size_t i = 0; i < generated.answers.size(); ++i) {
    if (options.prompts.size() > 1) print_text("> %s\n", options.prompts[i].c_str());
    print_text("%s%s\n", label, generated.answers[i].text.c_str());
  }
}

// The answer to the first prompt is at the top level; "answers" lists all of them if there are several prompts.
Json generated_json(const std::vector<std::string>& prompts, const Generated& base, const Generated* tuned) {
  const Generated& last = tuned ? *tuned : base;
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

// Writes the logits of every position of every prompt, computed in train.dtype, for comparison with other programs.
void write_logits(train::LoadedModel& model, const std::vector<std::string>& prompts, const fs::path& file) {
  std::vector<train::PromptLogits> all;
  for (const std::string& prompt : prompts) all.push_back(train::prompt_logits(model, prompt));
  std::vector<formats::TensorData> tensors;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto rows = static_cast<std::int64_t>(all[i].ids.size());
    const std::string name = std::to_string(i);
    tensors.push_back({name + ".ids", formats::TensorDType::i32, {rows}, std::as_bytes(std::span(all[i].ids))});
    tensors.push_back({name + ".logits",
                       formats::TensorDType::f32,
                       {rows, model.config().vocab},
                       std::as_bytes(std::span(all[i].logits))});
  }
  formats::write_safetensors(file, tensors);
}

// The experiment's mesh is used if its target is this machine. Other targets, and logits, run on one device.
train::ModelSettings generation_settings(const experiment::BoundExperiment& experiment,
                                         const GenerateOptions& options) {
  train::ModelSettings settings = train::model_settings(experiment);
  settings.use = engine::NetworkUse::inference;
  if (experiment.target.id == "cpu" && options.logits.empty()) return settings;
  settings.capacity = settings.capacity * settings.mesh.devices();
  settings.mesh = {};
  return settings;
}

std::vector<std::string> render_prompts(const std::vector<std::string>& prompts, const data::ChatTemplate& chat) {
  if (chat.is_none()) return prompts;
  std::vector<std::string> rendered;
  for (const std::string& prompt : prompts) rendered.push_back(data::render_prompt(chat, {{"user", prompt}}));
  return rendered;
}

void add_generate_options(CLI::App& command, CommonOptions& common, GenerateOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--prompt", options.prompts, "Text to answer or to continue (repeatable; answered as one batch)")
      ->required()
      ->allow_extra_args(false);
  for (const auto& [option, key, help] :
       {std::tuple("--temperature", "sample.temperature", "Sampling temperature; 0 is greedy"),
        {"--top-k", "sample.top_k", "Sample from the k most likely tokens; 0 disables the limit"},
        {"--top-p", "sample.top_p", "Sample from the most likely tokens whose probabilities sum to p; 1 disables it"},
        {"--min-p", "sample.min_p", "Drop tokens less likely than this share of the likeliest; 0 disables it"},
        {"--seed", "sample.seed", "Random seed of sampling"}})
    command.add_option_function<std::string>(
        option, [&common, key = std::string(key)](const std::string& text) { common.sets.push_back(key + "=" + text); },
        help);
  add_tuned_run_options(command, options.tuned, "Tuned model: the best checkpoint of this run, or latest");
  command.add_option("--adapter", options.adapter, "Tuned model: a PEFT adapter folder");
  command.add_flag("--raw", options.raw, "Continue the text, without the chat template");
  command.add_option(
      "--logits", options.logits,
      "Safetensors file for the (tuned) model's logits at every position of each prompt: N.ids, N.logits");
}

int run_generate(const CommonOptions& common, const GenerateOptions& options) {
  const experiment::BoundExperiment experiment = load_experiment(common).config();
  const train::ModelSettings settings = generation_settings(experiment, options);
  const fs::path tuned = tuned_folder(common, options, experiment);
  if (!tuned.empty() && path_exists(tuned / "adapter_config.json"))
    train::read_adapter(tuned, settings.path);  // reports a bad adapter before the base model generates
  train::LoadedModel model = train::load_model(settings);
  const data::ChatTemplate chat =
      options.raw ? options::ChatFormat::none : train::chat_template(experiment, model.config().family);
  const std::vector<std::string> prompts = render_prompts(options.prompts, chat);
  const options::SampleOptions sampling = experiment.sample;

  const Generated base = sample(model, prompts, chat, sampling, common.stop);
  if (common.output == Output::text) print_answers(tuned.empty() ? "" : "base:  ", options, base);
  Json out;
  if (tuned.empty()) {
    out = generated_json(prompts, base, nullptr);
  } else {
    train::load_tuned(model, tuned, settings);
    const Generated after = sample(model, prompts, chat, sampling, common.stop);
    if (common.output == Output::text) print_answers("tuned: ", options, after);
    out = generated_json(prompts, base, &after);
    out["tuned"] = tuned.string();
  }
  if (!options.logits.empty()) {
    write_logits(model, prompts, options.logits);
    out["logits"] = options.logits.string();
  }
  out["model"] = settings.path.string();
  out["mesh"] = train::mesh_json(settings.mesh);
  if (common.output == Output::json) print_json(out);
  return common.stop.stop_requested() ? 130 : 0;
}

}  // namespace

Subcommand generate_subcommand() {
  return make_subcommand("generate", "Sample from the base and the tuned model", add_generate_options, run_generate);
}

}  // namespace mw::app
