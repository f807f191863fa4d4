// SPDX-License-Identifier: Apache-2.0
// A model loaded for serving: requests of this process and of clients over HTTP share its weights and its KV cache.
// `meshwright serve` and the Serve page use it. Listen and stop listening on one thread at a time; the other functions
// are thread-safe.
#pragma once
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/serve/http/http_server.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/train/model.h"

namespace mw::jobs {

// Loads the model of an experiment for serving: weights, named adapters and the executor for the scheduler. Not
// thread-safe.
struct NamedAdapter {
  std::string name;
  formats::PeftAdapter values;
};
struct ServedModel {
  train::LoadedModel model;
  serve::SchedulerSettings settings;  // with the engine's KV layout
  std::string name;                   // model name in the API
  std::vector<NamedAdapter> adapters{};
  int queue = 0;
  std::vector<std::string> warnings{};  // the model or an adapter was trained with another chat template
};
// Loads the model on one device of this machine. If serve.max_model_len is not set, it is limited to the positions of
// the model. Throws Error for a missing model, invalid adapters or too little memory.
ServedModel load_served(const experiment::Experiment& experiment, const CountProgress& progress = {});
// The executor of a served model with its adapters; it uses `served.model`.
std::unique_ptr<serve::EngineExecutor> make_executor(const ServedModel& served);

class ModelServer {
 public:
  // Loads the model. Throws what load_served() throws, and Error of kind cancelled.
  explicit ModelServer(const experiment::Experiment& experiment, const CountProgress& progress = {},
                       const std::stop_token& stop = {});
  ~ModelServer();  // cancels all requests
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  const ServedModel& served() const { return served_; }
  std::vector<std::string> adapters() const;
  serve::ServingLoop& loop() { return *loop_; }
  // The user's turn of a chat, or a text to continue if the model has no chat template. The answer is limited to the
  // context of the model.
  serve::GenerationRequest request(const std::string& prompt, const options::SampleOptions& sampling) const;

  void listen(const serve::HttpOptions& options);  // throws Error LISTEN, ALLOW-HOST, ALLOW-ORIGIN
  void stop_listening(serve::StopMode mode);
  // A command line that sends `prompt` to the HTTP server, which must be listening.
  std::string curl_command(const std::string& prompt, const std::string& api_key) const;
  const serve::HttpServer* http() const { return http_.get(); }  // null while not listening

 private:
  ServedModel served_;
  data::ChatTemplate chat_;
  std::unique_ptr<serve::EngineExecutor> executor_;
  std::unique_ptr<serve::ServingLoop> loop_;
  std::unique_ptr<serve::HttpServer> http_;
};

}  // namespace mw::jobs
