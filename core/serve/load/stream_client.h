// SPDX-License-Identifier: Apache-2.0
// One streamed completion from any OpenAI-compatible server, timed; what a server gets wrong becomes an error of the
// request, never a fast one. One thread for each client; the connection is kept between requests.
#pragma once
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/formats/results/bench_result.h"

namespace mw::serve {

struct HttpTarget {
  std::string url{};       // "http://127.0.0.1:8000", with or without /v1; USER:PASSWORD@ is sent as Basic
  std::string model{};     // empty: the server's first
  std::string api_key{};   // empty: none is sent
  double timeout_s = 600;  // of a whole request
};

using HttpClock = std::chrono::steady_clock;

struct ExpectedUsage {  // what was asked for, to hold the answer against
  int prompt_tokens = 0, output_tokens = 0;
  int prompt_slack = 0;  // by how many prompt tokens the server's count may be lower (text whose tokens are not known)
};

struct StreamedCompletion {
  formats::RequestResult result;  // sent_s .. end_s since `origin`; prompt_tokens 0: not said
  int pieces = 0;                 // events with a choice
  bool usage_said = false, stopped = false;
  std::string text{};
};

class StreamClient {
 public:
  // Throws Error URL.
  explicit StreamClient(const HttpTarget& target);
  ~StreamClient();
  StreamedCompletion complete(const std::string& body, const ExpectedUsage& expected, HttpClock::time_point origin,
                              const std::stop_token& stop);
  struct Got {
    int status = 0;  // 0: no answer
    std::string body, error;
  };
  Got get(const std::string& path);  // 10 s at most
  Got post(const std::string& path, const std::string& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
