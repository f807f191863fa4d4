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
#include <vector>

#include "core/data/tokenizer/tokenizer.h"
#include "core/serve/http/openai_protocol.h"
#include "core/serve/http/server_metrics.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

// Converts the tokens of one completion to text as they arrive. Holds back incomplete characters and text that may turn
// out to be part of a stop string. Not thread-safe.
class IncrementalDetokenizer {
 public:
  // `markers`: special tokens that are part of the text, which has no others.
  IncrementalDetokenizer(const data::Tokenizer& tokenizer, std::vector<std::string> stops,
                         std::vector<int> markers = {})
      : tokenizer_(tokenizer), stops_(std::move(stops)), markers_(std::move(markers)) {}
  std::string add(int token);                // returns new text as valid UTF-8, possibly empty
  std::string finish();                      // returns the text held back; incomplete characters become U+FFFD
  bool stopped() const { return stopped_; }  // the text ended before a stop string

 private:
  std::string decode(bool last);
  std::string release(bool last);

  const data::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int> markers_;
  std::vector<int> ids_;
  size_t decoded_ = 0;  // leading ids_ whose text has been decoded; kept as context for the next ones
  std::string held_;    // decoded text that has not been returned
  bool stopped_ = false;
};

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
