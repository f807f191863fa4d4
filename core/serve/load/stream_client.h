// SPDX-License-Identifier: Apache-2.0
// Streams completions from an OpenAI-compatible server and times them. A malformed or implausible response becomes an
// error of its request. The connection is kept between requests. Not thread-safe: use one client per thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
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

struct ExpectedUsage {  // token counts that the response must agree with
  int prompt_tokens = 0, output_tokens = 0;
  int prompt_slack = 0;  // by how much the server may count fewer prompt tokens, for prompts of unknown token count
};

struct StreamedCompletion {
  formats::RequestResult result;  // times in seconds since `origin`; prompt_tokens 0: not reported
  int pieces = 0;                 // events with a choice
  bool has_usage = false, stopped = false;
  std::string text{};
};

class StreamClient {
 public:
  // Throws Error URL.
  explicit StreamClient(const HttpTarget& target);
  ~StreamClient();
  StreamedCompletion complete(const std::string& body, const ExpectedUsage& expected, HttpClock::time_point origin,
                              const std::stop_token& stop);
  struct Response {
    int status = 0;  // 0: none, see `error`
    std::string body, error;
  };
  Response get(const std::string& path);  // waits at most 10 s, like post()
  // Passes the body of a GET from byte `from` on as it arrives, however long that takes; `on_bytes` ends it by
  // returning false. A server without byte ranges sends the bytes before `from` again, which are skipped.
  Response stream(const std::string& path, std::uint64_t from, const std::function<bool(std::string_view)>& on_bytes,
                  const std::stop_token& stop);
  Response post(const std::string& path, const std::string& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses and checks the bytes of one streamed completion. The bytes are untrusted. Not thread-safe.

// Splits a byte stream into server-sent events.
class SseReader {
 public:
  std::vector<std::string> feed(std::string_view bytes);  // the data of every event that is complete now

 private:
  std::string line_, data_;
  bool has_data_ = false;
};

class CompletionReader {
 public:
  CompletionReader(StreamedCompletion& out, const ExpectedUsage& expected, HttpClock::time_point origin)
      : out_(out), expected_(expected), origin_(origin) {}
  bool feed(std::string_view bytes);  // returns false once the completion has failed
  void conclude();                    // call it at the end of the stream: checks and completes the result

 private:
  void fail(const std::string& why);
  void read_event(const std::string& data, double at_s);
  void read_choice(const Json& choice, double at_s);
  void drop_empty_last_piece();

  StreamedCompletion& out_;
  const ExpectedUsage expected_;
  const HttpClock::time_point origin_;
  SseReader sse_;
  double last_s_ = 0, before_last_s_ = 0;
  int pieces_with_text_ = 0, completion_tokens_ = -1, prompt_tokens_ = -1;  // tokens as the server counts, -1: unknown
  bool done_ = false, finished_ = false, last_is_empty_ = false;
};

// The error message in a response of a server, or an excerpt of the response.
std::string error_message_in(const std::string& body);

}  // namespace mw::serve
