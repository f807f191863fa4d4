// SPDX-License-Identifier: Apache-2.0
// Submits one request and turns the tokens of the serving thread into text on the thread of the connection. Destroying
// it before the end cancels the request. Use it on one thread.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/serve/http/incremental_detokenizer.h"
#include "core/serve/http/openai_response.h"
#include "core/serve/http/server_metrics.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

class CompletionStream {
 public:
  // Submits the request. Throws what ServingLoop::submit throws.
  CompletionStream(ServingLoop& loop, ServerMetrics& metrics, GenerationRequest request, IncrementalDetokenizer text);
  ~CompletionStream();
  CompletionStream(const CompletionStream&) = delete;
  CompletionStream& operator=(const CompletionStream&) = delete;

  struct Piece {
    std::string text{};
    std::string finish_reason{};  // "stop" or "length"; empty: not finished
    std::string error{};          // set if the request failed
    bool disconnected = false;    // the client has disconnected and the request was cancelled
    bool is_last() const { return !finish_reason.empty() || !error.empty() || disconnected; }
  };
  // Waits for the next token and returns its text, possibly empty. Polls `is_disconnected` while it waits.
  Piece next(const std::function<bool()>& is_disconnected);
  TokenUsage usage() const { return usage_; }  // `cached` is set at the end

 private:
  struct EventQueue {  // shared with the serving thread, which may outlive this object
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<TokenEvent> events;
    double last_token_s = 0;
    bool has_token = false;
    bool is_abandoned = false;  // the stream and its metrics may be gone
  };
  bool take(TokenEvent& event, const std::function<bool()>& is_disconnected);  // returns false if disconnected
  void await_end();
  Piece finish(Piece piece, const std::string& reason);
  Piece last_piece(const TokenEvent& event);

  ServingLoop& loop_;
  ServerMetrics& metrics_;
  const double began_s_;
  const int max_new_tokens_;
  IncrementalDetokenizer text_;
  TokenUsage usage_;
  std::shared_ptr<EventQueue> queue_ = std::make_shared<EventQueue>();
  RequestId id_{};
  bool has_ended_ = false;
};

}  // namespace mw::serve
