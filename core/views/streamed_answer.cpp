// SPDX-License-Identifier: Apache-2.0
#include "core/views/streamed_answer.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace mw::views {

StreamedAnswer::StreamedAnswer(std::shared_ptr<jobs::ModelServer> server, serve::GenerationRequest request)
    : server_(std::move(server)), text_(*server_->served().model.tokenizer, {}), began_s_(server_->loop().now()) {
  id_ = server_->loop().submit(std::move(request), [arrivals = arrivals_, &loop = server_->loop()](
                                                       serve::RequestId, const serve::TokenEvent& event) {
    arrivals->push({event, loop.now()}, Delivery::state);
  });
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

namespace {

constexpr size_t kMostWords = 2000;

// Splits into words and single separators. Bytes of multi-byte characters belong to words.
std::vector<std::string_view> words_of(std::string_view text) {
  const auto separates = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && !std::isalnum(byte);
  };
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (!separates(text[at]) && end < text.size() && !separates(text[end])) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

void add(std::vector<TextPart>& parts, TextPart::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (parts.empty() || parts.back().kind != kind) parts.push_back({kind, {}});
  parts.back().text += text;
}

}  // namespace

std::vector<TextPart> text_difference(std::string_view expected, std::string_view actual) {
  using Kind = TextPart::Kind;
  const auto a = words_of(expected), b = words_of(actual);
  std::vector<TextPart> parts;
  if (a.size() > kMostWords || b.size() > kMostWords) {
    add(parts, expected == actual ? Kind::same : Kind::missing, expected);
    if (expected != actual) add(parts, Kind::extra, actual);
    return parts;
  }
  // common[i][j]: length of the longest common subsequence of a from i and b from j.
  const size_t width = b.size() + 1;
  std::vector<std::uint16_t> common((a.size() + 1) * width);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i] == b[j] ? static_cast<std::uint16_t>(common[(i + 1) * width + j + 1] + 1)
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      add(parts, Kind::same, a[i]), ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      add(parts, Kind::missing, a[i]), ++i;
    } else {
      add(parts, Kind::extra, b[j]), ++j;
    }
  }
  return parts;
}

}  // namespace mw::views
