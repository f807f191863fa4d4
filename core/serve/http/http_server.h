// SPDX-License-Identifier: Apache-2.0
// The OpenAI protocol over HTTP for what ServingLoop serves: /v1/completions, /v1/chat/completions (whole or streamed),
// /v1/models, /v1/models/NAME, /health, /version, /metrics. A client that goes away cancels its request. Requests under
// other names than allowed and of web pages are refused (http_access.h). Constructed and stopped by one thread;
// handlers have their own.
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
  std::vector<std::string> adapters{};  // further model names
  const data::Tokenizer* tokenizer = nullptr;
  data::ChatFormat chat = data::ChatFormat::none;
  int max_model_len = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;                                          // 0: one that is free
  std::string api_key{};                                    // empty: everybody may ask
  std::vector<std::string> allow_hosts{}, allow_origins{};  // see HttpAccessPolicy
  ConnectionLimits limits{};
};

class HttpServer {
 public:
  // Listens and answers from now on; `live` and the tokenizer outlive it. Throws Error LISTEN, ALLOW-HOST,
  // ALLOW-ORIGIN.
  HttpServer(HttpOptions options, ServedModel model, ServingLoop& live);
  ~HttpServer();
  int port() const;
  std::string address() const;  // "http://127.0.0.1:8000"
  int connections() const;      // open now
  // Refuses new requests with 503, lets those in progress end (also `live`'s), closes.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
