// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/stream_client.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>

#include "core/base/elapsed.h"
#include "core/base/error.h"
#include "core/serve/load/completion_reader.h"

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
    throw Error({.id = "URL",
                 .message = "invalid server URL",
                 .place = "sweep.url",
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

}  // namespace mw::serve
