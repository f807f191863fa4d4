// SPDX-License-Identifier: Apache-2.0
// Runs a Load against any OpenAI-compatible server: streamed completions with ignore_eos, sent at their intended times,
// one thread per request in flight. Timeouts, truncated streams and implausible token counts are failed requests. Reads
// queue and KV cache from /metrics if the server uses vLLM's names. Not thread-safe.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/serve/load/load.h"
#include "core/serve/load/stream_client.h"

namespace mw::serve {

// Sends the requests of a load at their times and collects the completions. Every request in flight has a thread, and
// its body is built in advance so that it leaves on time. Not thread-safe.
struct HttpRequestSource {
  HttpTarget target;
  std::function<std::string(const TimedRequest&)> body;  // called on any thread
  std::function<ExpectedUsage(const TimedRequest&)> expected;
};

class HttpLoadDriver {
 public:
  // `max_in_flight`: users of a closed loop, otherwise the limit of requests in flight.
  HttpLoadDriver(const HttpRequestSource& source, const std::vector<TimedRequest>& requests, options::Arrival arrival,
                 int max_in_flight, std::stop_token stop);
  HttpClock::time_point origin() const { return origin_; }  // time 0 of the requests, shortly after construction
  // Returns one completion for every request, in their order; `stopped` if the stop came first.
  std::vector<StreamedCompletion> run(const LoadBackend::OnProgress& progress);

 private:
  void dispatch(size_t index);
  void work();
  bool take(size_t& index);
  void send(StreamClient& client, size_t index);
  void wait_until(HttpClock::time_point time, const LoadBackend::OnProgress& progress);
  void wait_for_all(const LoadBackend::OnProgress& progress);
  void report(const LoadBackend::OnProgress& progress);

  const HttpRequestSource& source_;
  const std::vector<TimedRequest>& requests_;
  const options::Arrival arrival_;
  const size_t max_in_flight_;
  const std::stop_token stop_;
  const HttpClock::time_point origin_;

  std::mutex mutex_;  // guards due_ to all_dispatched_
  std::condition_variable_any changed_;
  std::deque<size_t> due_;
  size_t idle_ = 0, done_ = 0, reported_ = 0;
  bool all_dispatched_ = false;
  std::vector<StreamedCompletion> completions_;
  std::vector<std::jthread> workers_;
};

// Prompts of about a wanted number of tokens for a server whose tokenizer is unknown: common English words, determined
// by the request's seeds. Immutable; any thread.
class WordPrompts {
 public:
  // Calibrates tokens per word by two calls of `count`, which returns the prompt tokens that the server counts for a
  // text. Throws Error SERVER if the counts do not grow with the text.
  explicit WordPrompts(const std::function<int(const std::string&)>& count);
  std::string text(const TimedRequest& request) const;

 private:
  double words(int tokens) const;
  double per_word_ = 1, fixed_ = 0;  // tokens = fixed + per_word * words
};

struct HttpLoadOptions {
  HttpTarget target;
  // Ids of prompt tokens, [first_id, vocab), without special tokens. vocab 0: the tokenizer is unknown; prompts are
  // then English words, calibrated by the server's own token counts, and a warning says so.
  int first_id = 0, vocab = 0;
  int max_in_flight = 900;  // below the 1024 descriptors that select() in the HTTP library can watch
};

// Throws Error URL, and SERVER if no server answers or it does not have the model.
std::unique_ptr<LoadBackend> make_http_backend(HttpLoadOptions options);

}  // namespace mw::serve
