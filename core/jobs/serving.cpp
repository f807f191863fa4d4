// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/serving.h"

#include "core/experiment/settings.h"
#include "core/planning/engine_server.h"

namespace mw::jobs {
namespace fs = std::filesystem;
namespace {

// Reads the adapters before the weights, so that a wrong folder is reported early.
std::vector<NamedAdapter> read_adapters(const experiment::Experiment& e, const std::string& model,
                                        const fs::path& weights) {
  std::vector<NamedAdapter> out;
  const auto add = [&](const std::string& name, const fs::path& folder) {
    if (name == model)
      throw Error({.id = "ADAPTER",
                   .message = "the adapter has the same name as its model",
                   .place = "serve.adapters",
                   .found = name,
                   .fix = "rename the adapter"});
    out.push_back({name, train::read_adapter(folder, weights)});
  };
  const Json adapters = e.value("serve.adapters");
  for (const auto& [name, folder] : adapters.items()) {
    const fs::path path = folder.get<std::string>();
    add(name, path.is_absolute() ? path : (e.folder() / path).lexically_normal());
  }
  if (const fs::path tuned = e.path("lora.adapter"); !tuned.empty() && adapters.empty()) add("tuned", tuned);
  return out;
}

std::string served_name(const experiment::Experiment& e, const fs::path& weights) {
  if (const std::string id = e.string("model.id"); !id.empty()) return id;
  std::error_code ec;  // a path that cannot be resolved still has a file name
  const fs::path canonical = fs::weakly_canonical(weights, ec), folder = ec ? weights : canonical;
  return folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
}

}  // namespace

ServedModel load_served(const experiment::Experiment& e, const train::Progress& progress) {
  experiment::check_valid(e);
  train::ModelSettings model = experiment::model_settings(e);
  model.capacity = model.capacity * model.mesh.devices();  // one device with all cores gives the same results
  model.mesh = {};
  model.use = engine::NetworkUse::inference;
  ServedModel out{.model = {},
                  .settings = planning::server_settings(e, formats::read_config(model.path)),
                  .name = served_name(e, model.path)};
  model.context = out.settings.max_model_len;
  out.adapters = read_adapters(e, out.name, model.path);
  out.model = train::load_model(model, progress);
  engine::Network& network = out.model.cluster->network(0);
  const engine::Arena& arena = network.device().arena;
  network.release_step_memory();
  out.settings =
      serve::lay_out_engine_kv(network.config(), out.settings, planning::asked_kv(e), planning::window_kv(e),
                               {planning::inference_model(model), arena.capacity() - arena.use().now.total()});
  out.queue = static_cast<int>(e.integer("serve.queue"));
  return out;
}

Serving load_serving(const experiment::Experiment& e, const train::Progress& progress) {
  ServedModel served = load_served(e, progress);
  Serving out{.model = std::move(served.model),
              .settings = served.settings,
              .executor = nullptr,
              .name = served.name,
              .queue = served.queue};
  out.executor = std::make_unique<serve::EngineExecutor>(out.model.cluster->network(0), out.settings);
  for (const NamedAdapter& a : served.adapters) {
    out.executor->add_adapter(a.name, a.values);
    out.adapters.push_back(a.name);
  }
  return out;
}

}  // namespace mw::jobs
