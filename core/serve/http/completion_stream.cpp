// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/completion_stream.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "core/base/json.h"

namespace mw::serve {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr size_t kMaxHeldTokens = 4;  // bytes of the longest UTF-8 character: more tokens cannot complete one
constexpr size_t kMaxWindow = 64;     // tokens kept as context while no text comes

}  // namespace

std::string IncrementalDetokenizer::decode(bool last) {
  const std::string before = tokenizer_.decode(std::span(ids_).first(decoded_));
  const std::string now = tokenizer_.decode(ids_);
  const bool is_incomplete = now.ends_with(kReplacement) && ids_.size() - decoded_ < kMaxHeldTokens;
  if (is_incomplete && !last) return {};
  // More bytes can invalidate a run of bytes that was valid text. Text that was returned stays; the rest is decoded
  // alone.
  std::string text = valid_utf8(now.starts_with(before) ? now.substr(before.size())
                                                        : tokenizer_.decode(std::span(ids_).subspan(decoded_)));
  // Keeps the last decoded ids, because the text of a token depends on whether text precedes it.
  if (!text.empty() || ids_.size() > kMaxWindow)
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(decoded_));
  decoded_ = ids_.size();
  return text;
}

std::string IncrementalDetokenizer::release(bool last) {
  size_t stop = std::string::npos;
  for (const std::string& s : stops_) stop = std::min(stop, held_.find(s));
  if (stop != std::string::npos) {
    stopped_ = true;
    std::string text = held_.substr(0, stop);
    held_.clear();
    return text;
  }
  size_t keep = 0;  // length of the longest suffix that is a prefix of a stop string
  for (const std::string& s : stops_)
    for (size_t n = std::min(s.size() - 1, held_.size()); n > keep && !last; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) keep = n;
  // Stop strings are valid UTF-8, so this does not split a character.
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return text;
}

std::string IncrementalDetokenizer::add(int token) {
  if (stopped_) return {};
  const bool is_marker = std::find(markers_.begin(), markers_.end(), token) != markers_.end();
  if (is_marker) held_ += decode(true);
  ids_.push_back(token);
  if (is_marker) held_ += tokenizer_.piece(token);
  held_ += decode(false);
  return release(false);
}

std::string IncrementalDetokenizer::finish() {
  if (stopped_) return {};
  if (ids_.size() > decoded_) held_ += decode(true);
  return release(true);
}

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
