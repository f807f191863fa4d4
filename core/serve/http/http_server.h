// SPDX-License-Identifier: Apache-2.0
// Serves a ServingLoop with the OpenAI API over HTTP: /v1/completions, /v1/chat/completions (with streaming),
// /v1/models, /v1/models/NAME, /health, /version, /metrics. A client that disconnects cancels its request. Checks host
// names and origins (http_access.h). Construct and stop it on one thread; handlers run on threads of their own.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/serve/http/answer_reader.h"
#include "core/serve/http/http_access.h"
#include "core/serve/http/http_connections.h"
#include "core/serve/http/openai_protocol.h"
#include "core/serve/http/server_metrics.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

struct HttpServedModel {
  std::string name;                     // of the base model
  std::vector<std::string> adapters{};  // names of adapters, which requests use as model names
  const data::Tokenizer* tokenizer = nullptr;
  data::ChatTemplate chat = options::ChatFormat::none;
  int max_model_len = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;                                          // 0: any free port
  std::string api_key{};                                    // empty: none is required
  std::vector<std::string> allow_hosts{}, allow_origins{};  // see HttpAccessPolicy
  ConnectionLimits limits{};
  // Called after every response, on the thread of its connection.
  std::function<void(const std::string& method, const std::string& path, int status)> on_response{};
};

enum class StopMode { complete, cancel };  // what becomes of requests in progress

class HttpServer {
 public:
  // Starts serving. The loop and the tokenizer must outlive the server. Throws Error LISTEN, ALLOW-HOST, ALLOW-ORIGIN.
  HttpServer(HttpOptions options, HttpServedModel model, ServingLoop& loop);
  ~HttpServer() { stop(); }
  int port() const { return port_; }
  std::string address() const;                      // "http://127.0.0.1:8000"
  int connections() const { return http_.open(); }  // currently open
  // Rejects new requests with 503 and closes. StopMode::complete waits for the requests in progress, including others
  // of the loop, which accepts none afterwards; StopMode::cancel cancels those of the server and leaves the loop as it
  // is.
  void stop(StopMode mode = StopMode::complete);

 private:
  HttpHandlers handlers();
  bool respond_before_body(const HttpRequest& req, HttpResponse& res) const;
  void respond(const HttpRequest& req, HttpResponse& res);
  std::optional<HttpError> check_host_name(const HttpHead& head) const;
  std::optional<HttpError> check_origin(const HttpHead& head) const;
  std::optional<HttpError> check_request(const HttpRequest& req, HttpResponse& res) const;
  std::vector<ModelEntry> models() const;
  void send_model(const std::string& name, HttpResponse& res) const;
  void complete(Endpoint endpoint, const HttpRequest& req, HttpResponse& res);
  std::string find_adapter(const std::string& name) const;
  Error unknown_model(const std::string& name) const;
  std::vector<int> tokenize_prompt(const OpenAiRequest& request, const std::string& text) const;
  std::vector<int> answer_markers(const OpenAiRequest& request) const;
  GenerationRequest make_request(const OpenAiRequest& request, std::vector<int> prompt_ids);
  HttpError to_response(const std::exception& error) const;

  const HttpOptions options_;
  const HttpAccessPolicy access_;
  const HttpServedModel model_;
  const AnswerFormat format_;
  ServingLoop& loop_;
  ServerMetrics metrics_;
  const std::int64_t created_ = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::atomic<std::uint64_t> request_count_{0};
  std::atomic<bool> stopping_{false}, cancelling_{false};
  HttpConnections http_;  // after what its handlers use
  int port_ = 0;
};

}  // namespace mw::serve
