// SPDX-License-Identifier: Apache-2.0
#include "core/serve/stream_client.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>

#include <cmath>

#include "core/base/error.h"
#include "core/data/utf8.h"

namespace mw::serve {
namespace {

constexpr size_t kLongestEvent = 16 << 20, kLongestError = 4096;
constexpr double kShortWait = 10;  // s, for what a server answers at once

struct Url {
  std::string origin, base;  // "http://host:port", "" or "/prefix"
};

Url parse_url(const std::string& url) {
  const auto refuse = [&] {
    throw Error({.id = "URL",
                 .message = "this is no address of a server",
                 .place = "sweep.url",
                 .found = url.empty() ? "nothing" : url,
                 .expected = "http://host:port or https://host"});
  };
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos || (url.substr(0, scheme) != "http" && url.substr(0, scheme) != "https")) refuse();
  const size_t slash = url.find('/', scheme + 3);
  Url out{url.substr(0, slash), slash == std::string::npos ? "" : url.substr(slash)};
  if (out.origin.size() == scheme + 3) refuse();
  while (out.base.ends_with('/')) out.base.pop_back();
  if (out.base.ends_with("/v1")) out.base.resize(out.base.size() - 3);
  return out;
}

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

// A server's own words for what went wrong, as far as it has any.
std::string message_of(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    const auto error = json.find("error");
    const Json& holder = error != json.end() && error->is_object() ? *error : json;
    if (const auto m = holder.find("message"); m != holder.end() && m->is_string())
      return data::excerpt(m->get<std::string>(), 200);
  }
  return data::excerpt(body, 200);
}

// What has come of one answer so far.
class Reading {
 public:
  Reading(Streamed& out, const Expected& expected, HttpClock::time_point origin)
      : out_(out), expected_(expected), origin_(origin) {}
  bool feed(std::string_view bytes) {  // false: no need to read on
    const double at = std::chrono::duration<double>(HttpClock::now() - origin_).count();
    for (const std::string& data : sse_.feed(bytes)) event(data, at);
    return out_.result.error.empty();
  }
  void conclude();

 private:
  void fail(const std::string& why) {
    if (out_.result.error.empty()) out_.result.error = why;
  }
  void event(const std::string& data, double at);
  void piece(const Json& choice, double at);
  void drop_empty_last();

  Streamed& out_;
  const Expected expected_;
  const HttpClock::time_point origin_;
  SseReader sse_;
  double last_s_ = 0, before_last_s_ = 0;
  int with_text_ = 0, completion_ = -1, prompt_ = -1;
  bool done_ = false, finished_ = false, last_empty_ = false;
};

void Reading::event(const std::string& data, double at) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) return fail("the server sent an event that is not JSON: " + data::excerpt(data, 80));
  if (const auto error = json.find("error"); error != json.end() && !error->is_null())
    return fail("the server broke off: " + message_of(data));
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

void Reading::piece(const Json& choice, double at) {
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
void Reading::drop_empty_last() {
  if (completion_ < 1 || out_.pieces != completion_ + 1 || !last_empty_) return;
  --out_.pieces;
  out_.result.gaps_ms.pop_back();
  last_s_ = before_last_s_;
}

void Reading::conclude() {
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

std::string explain(httplib::Error error) {
  return "no answer: " + httplib::to_string(error);
}

}  // namespace

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

struct StreamClient::Impl {
  explicit Impl(const HttpTarget& t) : target(t), url(parse_url(t.url)), http(url.origin) {
    if (!http.is_valid()) parse_url("");
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);
    http.set_decompress(false);
    set_timeout(std::min(30.0, target.timeout_s), target.timeout_s);
  }
  void set_timeout(double connect_s, double read_s) {
    const auto ms = [](double s) { return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1e3)); };
    http.set_connection_timeout(ms(connect_s));
    http.set_read_timeout(ms(read_s));
    http.set_write_timeout(ms(std::min(30.0, read_s)));
  }
  httplib::Request request(const char* method, const std::string& path, std::string body) const {
    httplib::Request r;
    r.method = method;
    r.path = url.base + path;
    r.body = std::move(body);
    if (!r.body.empty()) r.set_header("Content-Type", "application/json");
    if (!target.api_key.empty()) r.set_header("Authorization", "Bearer " + target.api_key);
    return r;
  }
  Got ask(const httplib::Request& request) {
    set_timeout(kShortWait, kShortWait);
    const httplib::Result r = http.send(request);
    if (!r) return {.status = 0, .body = {}, .error = explain(r.error())};
    return {.status = r->status, .body = r->body, .error = {}};
  }

  const HttpTarget target;
  const Url url;
  httplib::Client http;
};

StreamClient::StreamClient(const HttpTarget& target) : impl_(std::make_unique<Impl>(target)) {
  // A server that closes while it is written to must not end this process; the library writes without MSG_NOSIGNAL.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}
StreamClient::~StreamClient() = default;

Streamed StreamClient::complete(const std::string& body, const Expected& expected, HttpClock::time_point origin,
                                const std::stop_token& stop) {
  Streamed out;
  Reading reading(out, expected, origin);
  const auto since = [&] { return std::chrono::duration<double>(HttpClock::now() - origin).count(); };
  httplib::Request request = impl_->request("POST", "/v1/completions", body);
  std::string refusal;
  int status = 0;
  bool late = false;
  request.response_handler = [&](const httplib::Response& r) {
    status = r.status;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t n, std::uint64_t, std::uint64_t) {
    out.stopped = out.stopped || stop.stop_requested();
    late = since() - out.result.sent_s > impl_->target.timeout_s;
    if (out.stopped || late) return false;
    if (status == 200) return reading.feed({data, n});
    refusal.append(data, std::min(n, kLongestError - std::min(kLongestError, refusal.size())));
    return true;
  };
  impl_->set_timeout(std::min(30.0, impl_->target.timeout_s), impl_->target.timeout_s);
  const std::stop_callback on_stop(stop, [this] { impl_->http.stop(); });
  out.result.sent_s = since();
  const httplib::Result answer = impl_->http.send(request);
  out.stopped = out.stopped || stop.stop_requested();
  std::string& error = out.result.error;
  late = late || since() - out.result.sent_s > 0.98 * impl_->target.timeout_s;  // a timer may be early
  if (out.stopped) return out;
  if (late)
    error = "no end within " + Json(impl_->target.timeout_s).dump() + " s";
  else if (status != 0 && status != 200)
    error = "HTTP " + std::to_string(status) + ": " + message_of(refusal);
  else if (!answer && status == 0)
    error = explain(answer.error());
  reading.conclude();
  if (!error.empty()) {
    const double sent = out.result.sent_s;
    out.result = {.sent_s = sent, .end_s = since(), .error = error};
  }
  return out;
}

StreamClient::Got StreamClient::get(const std::string& path) {
  return impl_->ask(impl_->request("GET", path, {}));
}

StreamClient::Got StreamClient::post(const std::string& path, const std::string& body) {
  return impl_->ask(impl_->request("POST", path, body));
}

}  // namespace mw::serve
