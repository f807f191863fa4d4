// SPDX-License-Identifier: Apache-2.0
// What a server says of one streamed completion, out of the bytes of its answer; nothing in them is trusted. One
// thread.
#pragma once
#include "core/serve/load/stream_client.h"

namespace mw::serve {

// Server-sent events out of whatever pieces the network makes of them: the data of each that is complete.
class SseReader {
 public:
  std::vector<std::string> feed(std::string_view bytes);

 private:
  std::string line_, data_;
  bool any_ = false;
};

// What has come of one answer so far.
class CompletionReader {
 public:
  CompletionReader(StreamedCompletion& out, const ExpectedUsage& expected, HttpClock::time_point origin)
      : out_(out), expected_(expected), origin_(origin) {}
  bool feed(std::string_view bytes);  // false: no need to read on
  void conclude();                    // no more will come

 private:
  void fail(const std::string& why);
  void event(const std::string& data, double at);
  void piece(const Json& choice, double at);
  void drop_empty_last();

  StreamedCompletion& out_;
  const ExpectedUsage expected_;
  const HttpClock::time_point origin_;
  SseReader sse_;
  double last_s_ = 0, before_last_s_ = 0;
  int with_text_ = 0, completion_ = -1, prompt_ = -1;
  bool done_ = false, finished_ = false, last_empty_ = false;
};

// A server's own words for what went wrong, as far as it has any.
std::string error_message_in(const std::string& body);

}  // namespace mw::serve
