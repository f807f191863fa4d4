// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/completion_stream.h"

#include <chrono>

namespace mw::serve {

using namespace std::chrono_literals;

CompletionStream::CompletionStream(ServingLoop& live, ServerMetrics& metrics, GenerationRequest ask,
                                   IncrementalDetokenizer text)
    : live_(live), metrics_(metrics), began_s_(live.now()), max_new_(ask.max_new_tokens), text_(std::move(text)) {
  usage_.prompt = static_cast<int>(ask.prompt.ids.size());
  inbox_->last_s = began_s_;
  id_ = live.submit(std::move(ask), [inbox = inbox_, &live, &metrics](RequestId, const TokenEvent& answer) {
    if (answer.token >= 0) {
      const double at = live.now();
      inbox->any ? metrics.later_token(at - inbox->last_s) : metrics.first_token(at - inbox->last_s);
      inbox->any = true;
      inbox->last_s = at;
    }
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->answers.push_back(answer);
    }
    inbox->came.notify_one();
  });
}

CompletionStream::~CompletionStream() {
  if (ended_) return;
  live_.cancel(id_);
  metrics_.finished("abort", live_.now() - began_s_);
}

bool CompletionStream::take(TokenEvent& answer, const std::function<bool()>& client_gone) {
  std::unique_lock lock(inbox_->mutex);
  while (!inbox_->came.wait_for(lock, 50ms, [&] { return !inbox_->answers.empty(); })) {
    lock.unlock();
    if (client_gone()) return false;
    lock.lock();
  }
  answer = std::move(inbox_->answers.front());
  inbox_->answers.pop_front();
  return true;
}

void CompletionStream::await_end() {
  TokenEvent answer;
  do {
    take(answer, [] { return false; });
  } while (answer.token >= 0);
  usage_.cached = answer.timing.cached_tokens;
}

CompletionStream::Piece CompletionStream::end(Piece piece, const std::string& reason) {
  ended_ = true;
  metrics_.finished(reason, live_.now() - began_s_);
  return piece;
}

CompletionStream::Piece CompletionStream::end_of(const TokenEvent& answer) {
  usage_.cached = answer.timing.cached_tokens;
  switch (answer.end) {
    case FinishReason::stop:
      return end({.text = text_.finish(), .finish = "stop"}, "stop");
    case FinishReason::length:
      return end({.text = text_.finish(), .finish = "length"}, "length");
    case FinishReason::cancelled:
      return end({.error = "the server is stopping"}, "abort");
    case FinishReason::failed:
      return end({.error = answer.error.empty() ? "the request failed" : answer.error}, "error");
  }
  return {};
}

CompletionStream::Piece CompletionStream::next(const std::function<bool()>& client_gone) {
  TokenEvent answer;
  if (client_gone() || !take(answer, client_gone)) {
    live_.cancel(id_);
    return end({.gone = true}, "abort");
  }
  if (answer.token < 0) return end_of(answer);
  ++usage_.completion;
  Piece piece{.text = text_.add(answer.token)};
  if (text_.stopped()) {
    live_.cancel(id_);
    await_end();
    piece.finish = "stop";
    return end(std::move(piece), "stop");
  }
  if (usage_.completion < max_new_) return piece;
  await_end();  // comes with the last token: one piece for both
  piece.text += text_.finish();
  piece.finish = text_.stopped() ? "stop" : "length";
  const std::string reason = piece.finish;
  return end(std::move(piece), reason);
}

}  // namespace mw::serve
