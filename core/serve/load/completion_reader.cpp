// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/completion_reader.h"

#include <utility>

#include "core/base/elapsed.h"
#include "core/base/utf8.h"

namespace mw::serve {
namespace {

constexpr size_t kMaxEventBytes = 16 << 20;

std::string choice_text(const Json& choice) {
  const Json* holder = &choice;
  const char* key = "text";
  if (const auto delta = choice.find("delta"); delta != choice.end()) holder = &*delta, key = "content";
  const Json* text = find_member(*holder, key);
  return text && text->is_string() ? text->get<std::string>() : std::string();
}

int token_count(const Json& usage, const char* key) {
  const Json* count = find_member(usage, key);
  if (!count || !count->is_number()) return -1;
  const double n = count->get<double>();
  return n >= 0 && n < 1e9 ? static_cast<int>(n) : -1;
}

}  // namespace

std::string error_message_in(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    const auto error = json.find("error");
    const Json& holder = error != json.end() && error->is_object() ? *error : json;
    if (const auto m = holder.find("message"); m != holder.end() && m->is_string())
      return excerpt(m->get<std::string>(), 200);
  }
  return excerpt(body, 200);
}

bool CompletionReader::feed(std::string_view bytes) {
  const double at_s = seconds_since(origin_);
  for (const std::string& data : sse_.feed(bytes)) read_event(data, at_s);
  return out_.result.error.empty();
}

void CompletionReader::fail(const std::string& why) {
  if (out_.result.error.empty()) out_.result.error = why;
}

void CompletionReader::read_event(const std::string& data, double at_s) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) return fail("the server sent an event that is not JSON: " + excerpt(data, 80));
  if (find_member(json, "error")) return fail("the server reported an error: " + error_message_in(data));
  if (const Json* usage = find_member(json, "usage"); usage && usage->is_object()) {
    completion_tokens_ = token_count(*usage, "completion_tokens");
    prompt_tokens_ = token_count(*usage, "prompt_tokens");
    if (const Json* details = find_member(*usage, "prompt_tokens_details"); details && details->is_object())
      out_.result.cached_tokens = std::max(0, token_count(*details, "cached_tokens"));
  }
  const Json* choices = find_member(json, "choices");
  if (choices && choices->is_array() && !choices->empty() && choices->front().is_object())
    read_choice(choices->front(), at_s);
}

void CompletionReader::read_choice(const Json& choice, double at_s) {
  formats::RequestResult& r = out_.result;
  if (out_.pieces++ == 0)
    r.first_token_s = at_s;
  else
    r.gaps_ms.push_back(static_cast<float>((at_s - last_s_) * 1e3));
  before_last_s_ = std::exchange(last_s_, at_s);
  const std::string text = choice_text(choice);
  last_is_empty_ = text.empty();
  pieces_with_text_ += !text.empty();
  out_.text += text;
  finished_ = finished_ || find_member(choice, "finish_reason");
  if (out_.pieces > expected_.output_tokens + 1)
    fail("the server does not stop after the " + std::to_string(expected_.output_tokens) +
         " tokens that were requested");
}

// Some servers end with a piece that has a finish_reason but no token.
void CompletionReader::drop_empty_last_piece() {
  if (completion_tokens_ < 1 || out_.pieces != completion_tokens_ + 1 || !last_is_empty_) return;
  --out_.pieces;
  out_.result.gaps_ms.pop_back();
  last_s_ = before_last_s_;
}

void CompletionReader::conclude() {
  formats::RequestResult& r = out_.result;
  if (!r.error.empty()) return;
  if (!done_ && !finished_) return fail("the stream ended early, after " + std::to_string(out_.pieces) + " pieces");
  if (out_.pieces == 0) return fail("the completion has no tokens");
  drop_empty_last_piece();
  r.end_s = last_s_;
  out_.has_usage = completion_tokens_ >= 0;
  r.output_tokens = out_.has_usage ? completion_tokens_ : out_.pieces;
  r.prompt_tokens = std::max(prompt_tokens_, 0);
  const auto text = [](auto n) { return std::to_string(n); };
  if (r.output_tokens > expected_.output_tokens)
    fail("the server counts " + text(r.output_tokens) + " output tokens; at most " + text(expected_.output_tokens) +
         " were requested");
  else if (r.output_tokens < pieces_with_text_)
    fail("the server counts " + text(r.output_tokens) + " tokens but sent " + text(pieces_with_text_) +
         " pieces of text");
  else if (r.output_tokens > out_.pieces && out_.text.size() < static_cast<size_t>(r.output_tokens))
    fail("the server counts " + text(r.output_tokens) + " tokens but sent " + text(out_.text.size()) +
         " bytes of text in " + text(out_.pieces) + " pieces");
  else if (prompt_tokens_ >= 0 && prompt_tokens_ < expected_.prompt_tokens - expected_.prompt_slack)
    fail("the server counts " + text(prompt_tokens_) + " tokens in a prompt of " + text(expected_.prompt_tokens));
}

std::vector<std::string> SseReader::feed(std::string_view bytes) {
  std::vector<std::string> out;
  for (const char c : bytes) {
    if (c == '\r') continue;
    if (c != '\n') {
      if (line_.size() < kMaxEventBytes) line_ += c;
      continue;
    }
    if (line_.empty()) {
      if (has_data_) out.push_back(std::exchange(data_, {}));
      has_data_ = false;
    } else if (line_.starts_with("data:") && data_.size() < kMaxEventBytes) {
      if (has_data_) data_ += '\n';
      data_ += line_.substr(line_.size() > 5 && line_[5] == ' ' ? 6 : 5);
      has_data_ = true;
    }  // other fields and comments are ignored
    line_.clear();
  }
  return out;
}

}  // namespace mw::serve
