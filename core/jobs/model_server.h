// SPDX-License-Identifier: Apache-2.0
// A model loaded for serving: requests of this process and of clients over HTTP share its weights and its KV cache.
// `meshwright serve` and the Serve page use it. Listen and stop listening on one thread at a time; the other functions
// are thread-safe.
#pragma once
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/jobs/serving.h"
#include "core/serve/http/http_server.h"

namespace mw::jobs {

class ModelServer {
 public:
  // Loads the model. Throws what load_served() throws, and Error of kind cancelled.
  explicit ModelServer(const experiment::Experiment& experiment, const train::Progress& progress = {},
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
