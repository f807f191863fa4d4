// SPDX-License-Identifier: Apache-2.0
#include "core/views/streamed_answer.h"

namespace mw::views {

StreamedAnswer::StreamedAnswer(std::shared_ptr<jobs::ModelServer> server, serve::GenerationRequest request)
    : server_(std::move(server)), text_(*server_->served().model.tokenizer, {}), began_s_(server_->loop().now()) {
  id_ = server_->loop().submit(std::move(request), [arrivals = arrivals_, &loop = server_->loop()](
                                                       serve::RequestId, const serve::TokenEvent& event) {
    arrivals->push({event, loop.now()}, Delivery::state);
  });
}

StreamedAnswer::~StreamedAnswer() {
  cancel();
}

void StreamedAnswer::cancel() {
  if (!ended_) server_->loop().cancel(id_);
}

bool StreamedAnswer::drain() {
  const auto arrived = arrivals_->drain();
  for (const Arrival& arrival : arrived.items) {
    if (arrival.event.is_last()) {
      ended_ = arrival.event;
      if (std::string rest = text_.finish(); !rest.empty() && !tokens_.empty()) tokens_.back().text += rest;
      continue;
    }
    (tokens_.empty() ? first_s_ : last_s_) = arrival.at_s;
    add(arrival.event);
  }
  return !arrived.items.empty();
}

void StreamedAnswer::add(const serve::TokenEvent& event) {
  const data::Tokenizer& tokenizer = *server_->served().model.tokenizer;
  AnswerToken token{
      .text = text_.add(event.token), .piece = tokenizer.piece(event.token), .probability = event.probability};
  for (const serve::TokenProbability& other : event.likeliest)
    token.likeliest.push_back({tokenizer.piece(other.token), other.probability});
  tokens_.push_back(std::move(token));
}

std::string StreamedAnswer::text() const {
  std::string all;
  for (const AnswerToken& token : tokens_) all += token.text;
  return all;
}

std::optional<serve::FinishReason> StreamedAnswer::finish_reason() const {
  return ended_ ? std::optional(ended_->finish_reason) : std::nullopt;
}

std::optional<double> StreamedAnswer::first_token_seconds() const {
  return tokens_.empty() ? std::nullopt : std::optional(first_s_ - began_s_);
}

std::optional<double> StreamedAnswer::tokens_per_second() const {
  if (tokens_.size() < 2 || last_s_ <= first_s_) return std::nullopt;
  return static_cast<double>(tokens_.size() - 1) / (last_s_ - first_s_);
}

}  // namespace mw::views
