// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <cstdio>

#include "app/commands.h"
#include "core/formats/checkpoint.h"
#include "core/runs/settings.h"
#include "core/runs/store.h"
#include "core/train/checkpoint.h"
#include "core/train/model.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

// The folder with the tuned weights: --adapter, the last checkpoint of --run, or the experiment's lora.adapter.
fs::path tuned_folder(const Common& common, const GenerateArgs& args, const runs::Experiment& experiment) {
  if (!args.adapter.empty()) return args.adapter;
  if (args.run.empty()) return experiment.path("lora.adapter");
  runs::Store store(common.runs_folder);
  std::string run = args.run;
  if (run == "latest") {
    for (const runs::RunRow& row : store.list())
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
  std::string text;
  size_t tokens = 0;
  double seconds = 0;
};

Result ask(train::LoadedModel& model, const std::string& prompt, data::ChatFormat chat,
           const engine::SampleOptions& options, std::stop_token stop) {
  const auto begun = std::chrono::steady_clock::now();
  const train::Answer a = train::answer(model, prompt, chat, options, stop);
  return {a.text, a.ids.size(), std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()};
}

// Puts the tuned weights into `model`: an adapter onto it, or another whole model in its place.
void tune(train::LoadedModel& model, const fs::path& folder, train::ModelSettings settings) {
  if (!fs::exists(folder / "adapter_config.json")) {
    settings.path = folder;
    settings.init = train::Init::load;
    model = train::load_model(settings);
    return;
  }
  const formats::Adapter adapter = formats::read_peft(folder, model.network->inventory());
  model.network->add_lora(train::lora_options(adapter), settings.seed);
  train::copy_adapter(adapter, *model.network);
}

}  // namespace

int generate_command(const Common& common, const GenerateArgs& args) {
  const runs::Experiment experiment = load_experiment(common);
  const train::ModelSettings settings = runs::model_settings(experiment);
  const fs::path tuned = tuned_folder(common, args, experiment);
  if (!tuned.empty() && fs::exists(tuned / "adapter_config.json"))
    train::read_adapter(tuned, settings.path);  // refused now rather than after the base model's answer
  train::LoadedModel model = train::load_model(settings);
  const data::ChatFormat chat =
      args.raw ? data::ChatFormat::none : runs::chat_format(experiment, model.network->config().family);
  const std::string prompt =
      chat == data::ChatFormat::none ? args.prompt : data::render_prompt(chat, {{"user", args.prompt}});
  const engine::SampleOptions options = runs::sample_options(experiment);

  const Result base = ask(model, prompt, chat, options, common.stop);
  Json out{{"text", base.text},
           {"tokens", base.tokens},
           {"seconds", base.seconds},
           {"model", settings.path.string()},
           {"prompt", prompt}};
  if (common.output == Output::text) std::printf("%s%s\n", tuned.empty() ? "" : "base:  ", base.text.c_str());
  if (!tuned.empty()) {
    tune(model, tuned, settings);
    const Result after = ask(model, prompt, chat, options, common.stop);
    out.update(Json{{"text", after.text},
                    {"tokens", after.tokens},
                    {"seconds", after.seconds},
                    {"base_text", base.text},
                    {"tuned", tuned.string()}});
    if (common.output == Output::text) std::printf("tuned: %s\n", after.text.c_str());
  }
  if (common.output == Output::json) print_json(out);
  return common.stop.stop_requested() ? 130 : 0;
}

}  // namespace mw::app
