// SPDX-License-Identifier: Apache-2.0
// One request of a server and its answer as it comes: from the serving thread's tokens to text on the connection's
// thread. Dropping it before its end cancels the request.
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
  // Submits: throws what ServingLoop::submit throws.
  CompletionStream(ServingLoop& live, ServerMetrics& metrics, GenerationRequest ask, IncrementalDetokenizer text);
  ~CompletionStream();
  CompletionStream(const CompletionStream&) = delete;
  CompletionStream& operator=(const CompletionStream&) = delete;

  struct Piece {
    std::string text{};
    std::string finish{};  // "stop", "length"; empty: more will come
    std::string error{};   // the request failed
    bool gone = false;     // the client has left: cancelled
    bool last() const { return !finish.empty() || !error.empty() || gone; }
  };
  // The next token's text, which may be empty; waits for it. `client_gone` is asked now and then.
  Piece next(const std::function<bool()>& client_gone);
  TokenUsage usage() const { return usage_; }  // cached: known at the end

 private:
  struct Inbox {  // shared with the serving thread, which may outlive this
    std::mutex mutex;
    std::condition_variable came;
    std::deque<TokenEvent> answers;
    double last_s;  // of the serving thread
    bool any = false;
  };
  bool take(TokenEvent& answer, const std::function<bool()>& client_gone);  // false: the client has gone
  void await_end();
  Piece end(Piece piece, const std::string& reason);
  Piece end_of(const TokenEvent& answer);

  ServingLoop& live_;
  ServerMetrics& metrics_;
  const double began_s_;
  const int max_new_;
  IncrementalDetokenizer text_;
  TokenUsage usage_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  RequestId id_{};
  bool ended_ = false;
};

}  // namespace mw::serve
