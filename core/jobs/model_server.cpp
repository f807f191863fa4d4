// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/model_server.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/engine/distributed/cluster.h"
#include "core/plan/document/engine_request.h"
#include "core/train/checkpoint.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace {

CountProgress stopping_at(const std::stop_token& stop, const CountProgress& progress) {
  return [&stop, &progress](long done, long total) {
    if (stop.stop_requested()) throw cancelled("loading the model");
    if (progress) progress(done, total);
  };
}

}  // namespace

ModelServer::ModelServer(const experiment::Experiment& experiment, const CountProgress& progress,
                         const std::stop_token& stop)
    : served_(load_served(experiment, stopping_at(stop, progress))),
      chat_(train::chat_template(experiment.config(), served_.model.config().family)),
      executor_(make_executor(served_)),
      loop_(std::make_unique<serve::ServingLoop>(served_.settings, *executor_, served_.queue)) {}

ModelServer::~ModelServer() {
  stop_listening(serve::StopMode::cancel);
}

std::vector<std::string> ModelServer::adapters() const {
  std::vector<std::string> names;
  for (const NamedAdapter& adapter : served_.adapters) names.push_back(adapter.name);
  return names;
}

serve::GenerationRequest ModelServer::request(const std::string& prompt, const options::SampleOptions& sampling) const {
  const data::Tokenizer& tokenizer = *served_.model.tokenizer;
  const bool is_chat = !chat_.is_none();
  serve::GenerationRequest out{.prompt_ids = {tokenizer.bos()}, .sampling = sampling};
  out.sampling.stop_ids = {tokenizer.eos()};
  const std::vector<int> body = tokenizer.encode(is_chat ? data::render_prompt(chat_, {{"user", prompt}}) : prompt);
  out.prompt_ids.insert(out.prompt_ids.end(), body.begin(), body.end());
  if (is_chat)
    if (const int end = tokenizer.find(data::end_of_turn(chat_)); end >= 0) out.sampling.stop_ids.push_back(end);
  const int room = served_.settings.max_model_len - static_cast<int>(out.prompt_ids.size());
  out.sampling.max_new_tokens = std::clamp(sampling.max_new_tokens, 1, std::max(room, 1));
  return out;
}

void ModelServer::listen(const serve::HttpOptions& options) {
  http_ = std::make_unique<serve::HttpServer>(options,
                                              serve::HttpServedModel{.name = served_.name,
                                                                     .adapters = adapters(),
                                                                     .tokenizer = served_.model.tokenizer.get(),
                                                                     .chat = chat_,
                                                                     .max_model_len = served_.settings.max_model_len},
                                              *loop_);
}

std::string ModelServer::curl_command(const std::string& prompt, const std::string& api_key) const {
  const bool is_chat = !chat_.is_none();
  Json body{{"model", served_.name}, {"max_tokens", 64}};
  if (is_chat)
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt}}});
  else
    body["prompt"] = prompt;
  std::string command = "curl " + http_->address() + (is_chat ? "/v1/chat/completions" : "/v1/completions") +
                        " -H 'Content-Type: application/json'";
  if (!api_key.empty()) command += " -H " + shell_quoted("Authorization: Bearer " + api_key);
  return command + " -d " + shell_quoted(body.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void ModelServer::stop_listening(serve::StopMode mode) {
  if (http_) http_->stop(mode);
  http_.reset();
}

namespace fs = std::filesystem;
namespace {

std::vector<std::string> template_warnings(const experiment::BoundExperiment& config, model::Family family) {
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
std::vector<NamedAdapter> read_adapters(const experiment::BoundExperiment& config, const std::string& model) {
  std::vector<NamedAdapter> out;
  const auto add = [&](const std::string& name, const fs::path& folder) {
    if (name == model)
      throw Error("ADAPTER", "the adapter has the same name as its model",
                  {.place = "serve.adapters", .found = name, .fix = "rename the adapter"});
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

ServedModel load_served(const experiment::Experiment& e, const CountProgress& progress) {
  const experiment::BoundExperiment config = e.config();
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
