// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/completion_stream.h"

#include <chrono>

namespace mw::serve {

using namespace std::chrono_literals;

CompletionStream::CompletionStream(ServingLoop& loop, ServerMetrics& metrics, GenerationRequest request,
                                   IncrementalDetokenizer text)
    : loop_(loop),
      metrics_(metrics),
      began_s_(loop.now()),
      max_new_tokens_(request.sampling.max_new_tokens),
      text_(std::move(text)) {
  usage_.prompt = static_cast<int>(request.prompt_ids.size());
  queue_->last_token_s = began_s_;
  id_ = loop.submit(std::move(request), [queue = queue_, &loop, &metrics](RequestId, const TokenEvent& event) {
    const std::lock_guard lock(queue->mutex);
    if (queue->is_abandoned) return;
    if (!event.is_last()) {
      const double at_s = loop.now(), seconds = at_s - queue->last_token_s;
      queue->has_token ? metrics.later_token(seconds) : metrics.first_token(seconds);
      queue->has_token = true;
      queue->last_token_s = at_s;
    }
    queue->events.push_back(event);
    queue->changed.notify_one();
  });
}

// The loop cancels at its next step and sends tokens until then.
CompletionStream::~CompletionStream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_abandoned = true;
  }
  if (has_ended_) return;
  loop_.cancel(id_);
  metrics_.finished("abort", loop_.now() - began_s_);
}

bool CompletionStream::take(TokenEvent& event, const std::function<bool()>& is_disconnected) {
  std::unique_lock lock(queue_->mutex);
  while (!queue_->changed.wait_for(lock, 50ms, [&] { return !queue_->events.empty(); })) {
    lock.unlock();
    if (is_disconnected()) return false;
    lock.lock();
  }
  event = std::move(queue_->events.front());
  queue_->events.pop_front();
  return true;
}

void CompletionStream::await_end() {
  TokenEvent event;
  do {
    take(event, [] { return false; });
  } while (!event.is_last());
  usage_.cached = event.timing.cached_tokens;
}

CompletionStream::Piece CompletionStream::finish(Piece piece, const std::string& reason) {
  has_ended_ = true;
  metrics_.finished(reason, loop_.now() - began_s_);
  return piece;
}

CompletionStream::Piece CompletionStream::last_piece(const TokenEvent& event) {
  usage_.cached = event.timing.cached_tokens;
  switch (event.finish_reason) {
    case FinishReason::stop:
      return finish({.text = text_.finish(), .finish_reason = "stop"}, "stop");
    case FinishReason::length:
      return finish({.text = text_.finish(), .finish_reason = "length"}, "length");
    case FinishReason::cancelled:
      return finish({.error = "the server is stopping"}, "abort");
    case FinishReason::failed:
      return finish({.error = event.error.empty() ? "the request failed" : event.error}, "error");
  }
  return {};
}

CompletionStream::Piece CompletionStream::next(const std::function<bool()>& is_disconnected) {
  TokenEvent event;
  if (is_disconnected() || !take(event, is_disconnected)) {
    loop_.cancel(id_);
    return finish({.disconnected = true}, "abort");
  }
  if (event.is_last()) return last_piece(event);
  ++usage_.completion;
  Piece piece{.text = text_.add(event.token)};
  if (text_.stopped()) {
    loop_.cancel(id_);
    await_end();
    piece.finish_reason = "stop";
    return finish(std::move(piece), "stop");
  }
  if (usage_.completion < max_new_tokens_) return piece;
  await_end();  // follows the last token at once; both become one piece
  piece.text += text_.finish();
  piece.finish_reason = text_.stopped() ? "stop" : "length";
  const std::string reason = piece.finish_reason;
  return finish(std::move(piece), reason);
}

}  // namespace mw::serve
