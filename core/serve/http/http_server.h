// SPDX-License-Identifier: Apache-2.0
// Serves a ServingLoop with the OpenAI API over HTTP: /v1/completions, /v1/chat/completions (with streaming),
// /v1/models, /v1/models/NAME, /health, /version, /metrics. A client that disconnects cancels its request. Checks host
// names and origins (http_access.h). Construct and stop it on one thread; handlers run on threads of their own.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/data/tokenizer/chat.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/serve/http/http_connections.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

struct ServedModel {
  std::string name;                     // of the base model
  std::vector<std::string> adapters{};  // names of adapters, which requests use as model names
  const data::Tokenizer* tokenizer = nullptr;
  data::ChatFormat chat = data::ChatFormat::none;
  int max_model_len = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;                                          // 0: any free port
  std::string api_key{};                                    // empty: none is required
  std::vector<std::string> allow_hosts{}, allow_origins{};  // see HttpAccessPolicy
  ConnectionLimits limits{};
};

class HttpServer {
 public:
  // Starts serving. The loop and the tokenizer must outlive the server. Throws Error LISTEN, ALLOW-HOST, ALLOW-ORIGIN.
  HttpServer(HttpOptions options, ServedModel model, ServingLoop& loop);
  ~HttpServer();
  int port() const;
  std::string address() const;  // "http://127.0.0.1:8000"
  int connections() const;      // currently open
  // Rejects new requests with 503, waits for those in progress, including others of the loop, and closes.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
