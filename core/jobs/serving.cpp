// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/serving.h"

#include "core/plan/document/engine_server.h"
#include "core/train/run_settings.h"
#include "core/train/trained_template.h"

namespace mw::jobs {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> template_warnings(const experiment::ExperimentConfig& config, model::Family family) {
  const data::ChatTemplate chat = train::chat_template(config, family);
  std::vector<fs::path> folders{config.model.path};
  for (const auto& [name, folder] : config.serve.adapters) folders.push_back(folder);
  if (config.serve.adapters.empty() && !config.lora.adapter.empty()) folders.push_back(config.lora.adapter);
  std::vector<std::string> out;
  for (const fs::path& folder : folders)
    if (std::string warning = train::template_warning(folder, chat); !warning.empty())
      out.push_back(std::move(warning));
  return out;
}

// Reads the adapters before the weights, so that a wrong folder is reported early.
std::vector<NamedAdapter> read_adapters(const experiment::ExperimentConfig& config, const std::string& model) {
  std::vector<NamedAdapter> out;
  const auto add = [&](const std::string& name, const fs::path& folder) {
    if (name == model)
      throw Error({.id = "ADAPTER",
                   .message = "the adapter has the same name as its model",
                   .place = "serve.adapters",
                   .found = name,
                   .fix = "rename the adapter"});
    out.push_back({name, train::read_adapter(folder, config.model.path)});
  };
  for (const auto& [name, folder] : config.serve.adapters) add(name, folder);
  if (config.serve.adapters.empty() && !config.lora.adapter.empty()) add("tuned", config.lora.adapter);
  return out;
}

std::string served_name(const options::Model& model) {
  if (!model.id.empty()) return model.id;
  std::error_code ec;  // a path that cannot be resolved still has a file name
  const fs::path canonical = fs::weakly_canonical(model.path, ec), folder = ec ? model.path : canonical;
  return folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
}

}  // namespace

ServedModel load_served(const experiment::Experiment& e, const train::Progress& progress) {
  const experiment::ExperimentConfig config = e.config();
  train::check_target(config);
  train::ModelSettings model = train::model_settings(config);
  model.capacity = model.capacity * model.mesh.devices();  // one device with all cores gives the same results
  model.mesh = {};
  model.use = engine::NetworkUse::inference;
  ServedModel out{.model = {},
                  .settings = plan::server_settings(config.serve, formats::read_config(model.path)),
                  .name = served_name(config.model)};
  model.context = out.settings.max_model_len;
  out.adapters = read_adapters(config, out.name);
  out.warnings = template_warnings(config, formats::read_config(model.path).family);
  out.model = train::load_model(model, progress);
  engine::Network& network = out.model.cluster->network(0);
  const engine::Arena& arena = network.device().arena;
  network.release_step_memory();
  out.settings = serve::lay_out_engine_kv(network.config(), out.settings, plan::requested_kv(config.serve),
                                          plan::window_kv(config.serve),
                                          {plan::inference_model(model), arena.capacity() - arena.use().now.total()});
  out.queue = config.serve.queue;
  return out;
}

std::unique_ptr<serve::EngineExecutor> make_executor(const ServedModel& served) {
  auto executor = std::make_unique<serve::EngineExecutor>(served.model.cluster->network(0), served.settings);
  for (const NamedAdapter& a : served.adapters) executor->add_adapter(a.name, a.values);
  return executor;
}

}  // namespace mw::jobs
