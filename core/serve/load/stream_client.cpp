// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/stream_client.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <utility>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

constexpr size_t kMaxErrorBytes = 4096;
constexpr double kShortTimeout = 10;  // s, of requests without generation

struct Url {
  std::string origin, base;   // "http://host:port", "" or "/prefix"
  std::string authorization;  // value of the header for USER:PASSWORD@, or empty
};

std::string basic_authorization(const std::string& user_info) {
  const auto decoded = [](const std::string& text) { return httplib::detail::decode_url(text, false); };
  const size_t colon = std::min(user_info.find(':'), user_info.size());
  const std::string password = colon < user_info.size() ? user_info.substr(colon + 1) : "";
  return httplib::make_basic_authentication_header(decoded(user_info.substr(0, colon)), decoded(password)).second;
}

Url parse_url(const std::string& url) {
  const auto reject = [&] {
    throw Error("URL", "invalid server URL",
                {.place = "sweep.url",
                 .found = url.empty() ? "nothing" : url,
                 .expected = "http://host:port or https://host, without '?' and '#'"});
  };
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos || (url.substr(0, scheme) != "http" && url.substr(0, scheme) != "https")) reject();
  if (url.find_first_of("?#") != std::string::npos) reject();
  const size_t slash = url.find('/', scheme + 3);
  Url out{url.substr(0, slash), slash == std::string::npos ? "" : url.substr(slash), {}};
  if (const size_t at = out.origin.rfind('@'); at != std::string::npos) {
    out.authorization = basic_authorization(out.origin.substr(scheme + 3, at - scheme - 3));
    out.origin.erase(scheme + 3, at + 1 - scheme - 3);
  }
  if (out.origin.size() == scheme + 3) reject();
  while (out.base.ends_with('/')) out.base.pop_back();
  if (out.base.ends_with("/v1")) out.base.resize(out.base.size() - 3);
  return out;
}

std::string explain(httplib::Error error) {
  return "no response: " + httplib::to_string(error);
}

}  // namespace

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
    if (r.path.empty()) r.path = "/";
    r.body = std::move(body);
    if (!r.body.empty()) r.set_header("Content-Type", "application/json");
    if (!url.authorization.empty())
      r.set_header("Authorization", url.authorization);
    else if (!target.api_key.empty())
      r.set_header("Authorization", "Bearer " + target.api_key);
    return r;
  }
  Response send(const httplib::Request& request) {
    set_timeout(kShortTimeout, kShortTimeout);
    const httplib::Result r = http.send(request);
    if (!r) return {.status = 0, .body = {}, .error = explain(r.error())};
    return {.status = r->status, .body = r->body, .error = {}};
  }

  const HttpTarget target;
  const Url url;
  httplib::Client http;
};

StreamClient::StreamClient(const HttpTarget& target) : impl_(std::make_unique<Impl>(target)) {
  // The library writes without MSG_NOSIGNAL; a server that closes the connection must not end this process.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}
StreamClient::~StreamClient() = default;

StreamedCompletion StreamClient::complete(const std::string& body, const ExpectedUsage& expected,
                                          HttpClock::time_point origin, const std::stop_token& stop) {
  StreamedCompletion out;
  CompletionReader reader(out, expected, origin);
  const auto since = [&] { return seconds_since(origin); };
  httplib::Request request = impl_->request("POST", "/v1/completions", body);
  std::string error_body;
  int status = 0;
  bool timed_out = false;
  request.response_handler = [&](const httplib::Response& r) {
    status = r.status;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t n, std::uint64_t, std::uint64_t) {
    out.stopped = out.stopped || stop.stop_requested();
    timed_out = since() - out.result.sent_s > impl_->target.timeout_s;
    if (out.stopped || timed_out) return false;
    if (status == 200) return reader.feed({data, n});
    error_body.append(data, std::min(n, kMaxErrorBytes - std::min(kMaxErrorBytes, error_body.size())));
    return true;
  };
  impl_->set_timeout(std::min(30.0, impl_->target.timeout_s), impl_->target.timeout_s);
  const std::stop_callback on_stop(stop, [this] { impl_->http.stop(); });
  out.result.sent_s = since();
  const httplib::Result response = impl_->http.send(request);
  out.stopped = out.stopped || stop.stop_requested();
  std::string& error = out.result.error;
  timed_out = timed_out || since() - out.result.sent_s > 0.98 * impl_->target.timeout_s;  // timers may be early
  if (out.stopped) return out;
  if (timed_out)
    error = "not finished within " + Json(impl_->target.timeout_s).dump() + " s";
  else if (status != 0 && status != 200)
    error = "HTTP " + std::to_string(status) + ": " + error_message_in(error_body);
  else if (!response && status == 0)
    error = explain(response.error());
  reader.conclude();
  if (!error.empty()) {
    const double sent = out.result.sent_s;
    out.result = {.sent_s = sent, .end_s = since(), .error = error};
  }
  return out;
}

StreamClient::Response StreamClient::get(const std::string& path) {
  return impl_->send(impl_->request("GET", path, {}));
}

StreamClient::Response StreamClient::stream(const std::string& path, std::uint64_t from,
                                            const std::function<bool(std::string_view)>& on_bytes,
                                            const std::stop_token& stop) {
  httplib::Request request = impl_->request("GET", path, {});
  if (from > 0) request.set_header("Range", "bytes=" + std::to_string(from) + "-");
  int status = 0;
  std::uint64_t skip = 0;
  request.response_handler = [&](const httplib::Response& r) {
    status = r.status;
    skip = status == 200 ? from : 0;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t n, std::uint64_t, std::uint64_t) {
    if (stop.stop_requested()) return false;
    if (status != 200 && status != 206) return true;
    const auto skipped = static_cast<size_t>(std::min<std::uint64_t>(skip, n));
    skip -= skipped;
    return skipped == n || on_bytes({data + skipped, n - skipped});
  };
  impl_->set_timeout(kShortTimeout, impl_->target.timeout_s);
  const std::stop_callback on_stop(stop, [this] { impl_->http.stop(); });
  const httplib::Result response = impl_->http.send(request);
  if (status != 0) return {.status = status, .body = {}, .error = {}};
  return {.status = 0, .body = {}, .error = response ? "no status" : explain(response.error())};
}

StreamClient::Response StreamClient::post(const std::string& path, const std::string& body) {
  return impl_->send(impl_->request("POST", path, body));
}

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
    fail("the server does not stop after the " + counted(expected_.output_tokens, "token") + " that were requested");
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
  if (!done_ && !finished_) return fail("the stream ended early, after " + counted(out_.pieces, "piece"));
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
