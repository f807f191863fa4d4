// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/completion_reader.h"

#include <utility>

#include "core/data/tokenizer/utf8.h"

namespace mw::serve {
namespace {

constexpr size_t kLongestEvent = 16 << 20;

std::string text_of(const Json& choice) {
  const Json* holder = &choice;
  const char* key = "text";
  if (const auto delta = choice.find("delta"); delta != choice.end()) holder = &*delta, key = "content";
  if (!holder->is_object()) return {};
  const auto text = holder->find(key);
  return text != holder->end() && text->is_string() ? text->get<std::string>() : std::string();
}

int count_of(const Json& usage, const char* key) {
  const auto it = usage.find(key);
  if (it == usage.end() || !it->is_number()) return -1;
  const double n = it->get<double>();
  return n >= 0 && n < 1e9 ? static_cast<int>(n) : -1;
}

}  // namespace

std::string error_message_in(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    const auto error = json.find("error");
    const Json& holder = error != json.end() && error->is_object() ? *error : json;
    if (const auto m = holder.find("message"); m != holder.end() && m->is_string())
      return data::excerpt(m->get<std::string>(), 200);
  }
  return data::excerpt(body, 200);
}

bool CompletionReader::feed(std::string_view bytes) {
  const double at = std::chrono::duration<double>(HttpClock::now() - origin_).count();
  for (const std::string& data : sse_.feed(bytes)) event(data, at);
  return out_.result.error.empty();
}

void CompletionReader::fail(const std::string& why) {
  if (out_.result.error.empty()) out_.result.error = why;
}

void CompletionReader::event(const std::string& data, double at) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) return fail("the server sent an event that is not JSON: " + data::excerpt(data, 80));
  if (const auto error = json.find("error"); error != json.end() && !error->is_null())
    return fail("the server broke off: " + error_message_in(data));
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    completion_ = count_of(*usage, "completion_tokens");
    prompt_ = count_of(*usage, "prompt_tokens");
    if (const auto details = usage->find("prompt_tokens_details"); details != usage->end() && details->is_object())
      out_.result.cached_tokens = std::max(0, count_of(*details, "cached_tokens"));
  }
  const auto choices = json.find("choices");
  if (choices != json.end() && choices->is_array() && !choices->empty() && choices->front().is_object())
    piece(choices->front(), at);
}

void CompletionReader::piece(const Json& choice, double at) {
  formats::RequestResult& r = out_.result;
  if (out_.pieces++ == 0)
    r.first_token_s = at;
  else
    r.gaps_ms.push_back(static_cast<float>((at - last_s_) * 1e3));
  before_last_s_ = std::exchange(last_s_, at);
  const std::string text = text_of(choice);
  last_empty_ = text.empty();
  with_text_ += !text.empty();
  out_.text += text;
  const auto finish = choice.find("finish_reason");
  finished_ = finished_ || (finish != choice.end() && !finish->is_null());
  if (out_.pieces > expected_.output_tokens + 1)
    fail("the server does not stop after the " + std::to_string(expected_.output_tokens) + " tokens it was asked for");
}

// Some servers end with a piece that has the reason alone and no token.
void CompletionReader::drop_empty_last() {
  if (completion_ < 1 || out_.pieces != completion_ + 1 || !last_empty_) return;
  --out_.pieces;
  out_.result.gaps_ms.pop_back();
  last_s_ = before_last_s_;
}

void CompletionReader::conclude() {
  formats::RequestResult& r = out_.result;
  if (!r.error.empty()) return;
  if (!done_ && !finished_) return fail("the answer was cut off after " + std::to_string(out_.pieces) + " pieces");
  if (out_.pieces == 0) return fail("the answer has no token");
  drop_empty_last();
  r.end_s = last_s_;
  out_.usage_said = completion_ >= 0;
  r.output_tokens = out_.usage_said ? completion_ : out_.pieces;
  r.prompt_tokens = std::max(prompt_, 0);
  const auto text = [](auto n) { return std::to_string(n); };
  if (r.output_tokens > expected_.output_tokens)
    fail("the server counts " + text(r.output_tokens) + " tokens where it was asked for " +
         text(expected_.output_tokens) + " at most");
  else if (r.output_tokens < with_text_)
    fail("the server counts " + text(r.output_tokens) + " tokens but sent " + text(with_text_) + " pieces of text");
  else if (r.output_tokens > out_.pieces && out_.text.size() < static_cast<size_t>(r.output_tokens))
    fail("the server counts " + text(r.output_tokens) + " tokens but sent " + text(out_.text.size()) +
         " bytes of text in " + text(out_.pieces) + " pieces");
  else if (prompt_ >= 0 && prompt_ < expected_.prompt_tokens - expected_.prompt_slack)
    fail("the server counts " + text(prompt_) + " tokens of a prompt of " + text(expected_.prompt_tokens));
}

std::vector<std::string> SseReader::feed(std::string_view bytes) {
  std::vector<std::string> out;
  for (const char c : bytes) {
    if (c == '\r') continue;
    if (c != '\n') {
      if (line_.size() < kLongestEvent) line_ += c;
      continue;
    }
    if (line_.empty()) {
      if (any_) out.push_back(std::exchange(data_, {}));
      any_ = false;
    } else if (line_.starts_with("data:") && data_.size() < kLongestEvent) {
      if (any_) data_ += '\n';
      data_ += line_.substr(line_.size() > 5 && line_[5] == ' ' ? 6 : 5);
      any_ = true;
    }  // other fields and comments say nothing here
    line_.clear();
  }
  return out;
}

}  // namespace mw::serve
