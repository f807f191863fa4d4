// SPDX-License-Identifier: Apache-2.0
// Parses and checks the bytes of one streamed completion. The bytes are untrusted. Not thread-safe.
#pragma once
#include "core/serve/load/stream_client.h"

namespace mw::serve {

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
