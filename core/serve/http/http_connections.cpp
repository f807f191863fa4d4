// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/elapsed.h"
#include "core/base/error.h"
#include "core/serve/http/openai_response.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBacklog = 1024;
constexpr double kLinger = 2;  // s for draining unread input before closing

}  // namespace

// The stream that cpp-httplib reads and writes, with limits of bytes and time.
class HttpConnection : public httplib::Stream {
 public:
  HttpConnection(int socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {}

  // Waits for a request and reads its head. Returns false if the client closed the connection or timed out, or if the
  // request is invalid: then rejection() is set.
  bool receive_head();
  const std::optional<HttpError>& rejection() const { return rejection_; }
  const HttpHead& head() const { return head_; }
  void begin_body() {
    left_ = head_.content_length.value_or(0) > limits_.body ? 0 : limits_.body;  // rejected before it is sent
    in_body_ = true;
  }
  bool is_body_too_long() const { return in_body_ && left_ == 0; }
  void mark_broken() { broken_ = true; }
  bool is_broken() const { return broken_; }  // the start of the next request is unknown

  int descriptor() const { return socket_; }
  bool is_disconnected() const {
    pollfd p{.fd = socket_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&p, 1, 0) > 0;
  }
  bool is_readable() const override { return at_ < received_.size() || ready(POLLIN, remaining_s()); }
  bool is_writable() const override { return !is_disconnected() && ready(POLLOUT, limits_.write_s); }
  ssize_t read(char* out, size_t size) override;
  ssize_t write(const char* data, size_t size) override {
    if (!ready(POLLOUT, limits_.write_s)) return -1;
    return ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }  // unused: the library would call select(), which limits descriptors

 private:
  double remaining_s() const { return limits_.read_s - seconds_since(began_); }
  bool receive_more(double wait_s);
  bool ready(short event, double wait_s) const {
    pollfd p{.fd = socket_, .events = event, .revents = 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::max(0.0, wait_s) * 1e3));
    return n > 0 && (p.revents & (event | POLLHUP)) != 0 && (p.revents & (POLLERR | POLLNVAL)) == 0;
  }

  const int socket_;
  const ConnectionLimits& limits_;
  Clock::time_point began_ = Clock::now();
  std::string received_;  // bytes from at_ on have not been read by the library
  size_t at_ = 0, left_ = 0;
  bool in_body_ = false, broken_ = false;
  HttpHead head_;
  ChunkedBodyValidator framing_;
  std::optional<HttpError> rejection_;
};

bool HttpConnection::receive_more(double wait_s) {
  if (!ready(POLLIN, wait_s)) return false;
  std::array<char, 8192> buffer;
  const ssize_t n = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  received_.append(buffer.data(), static_cast<size_t>(n));
  return true;
}

bool HttpConnection::receive_head() try {
  received_.erase(0, std::exchange(at_, 0));
  in_body_ = broken_ = false;
  framing_ = {};
  if (received_.empty() && !receive_more(limits_.idle_s)) return false;
  began_ = Clock::now();
  size_t scanned = 0;
  while ((left_ = head_size(received_, scanned)) == 0) {
    const bool too_long = received_.size() >= limits_.headers;
    if (!too_long && receive_more(remaining_s())) continue;
    if (too_long)
      rejection_ = {431, "invalid_request_error", "the headers exceed " + std::to_string(limits_.headers) + " bytes"};
    else if (remaining_s() <= 0)
      rejection_ = {408, "invalid_request_error",
                    "the request did not arrive within " + std::to_string(static_cast<int>(limits_.read_s)) + " s"};
    return false;
  }
  head_ = parse_head(std::string_view(received_).substr(0, left_));
  return true;
} catch (const Error& error) {
  rejection_ = {400, "invalid_request_error", error.what()};
  return false;
}

ssize_t HttpConnection::read(char* out, size_t size) try {
  size = std::min(size, left_);
  broken_ = broken_ || size == 0;
  if (!broken_ && at_ == received_.size()) {
    received_.clear();
    at_ = 0;
    broken_ = !receive_more(remaining_s());
  }
  if (broken_) return -1;
  const size_t n = std::min(size, received_.size() - at_);
  const std::string_view bytes(received_.data() + at_, n);
  if (in_body_ && head_.chunked) framing_.check(bytes);
  std::copy(bytes.begin(), bytes.end(), out);
  at_ += n;
  left_ -= n;
  return static_cast<ssize_t>(n);
} catch (const Error&) {  // broken framing
  broken_ = true;
  return -1;
}

namespace {

thread_local HttpConnection* current = nullptr;

// Hides headers that the library would act on: ranges, compression, decompression of unlimited size, forms. Without a
// length it would wait for a body that never comes.
void hide_library_features(httplib::Request& request) {
  request.ranges.clear();
  for (const char* header : {"Accept-Encoding", "Content-Encoding", "Content-Type"}) request.headers.erase(header);
  if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding"))
    request.set_header("Content-Length", "0");
}

void close_gently(int socket) {
  ::shutdown(socket, SHUT_WR);
  // Closing with unread input would reset the connection and discard the response.
  std::array<char, 65536> rest;
  for (const auto start_time = Clock::now(); seconds_since(start_time) < kLinger;) {
    pollfd p{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, 50) <= 0 || ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) break;
  }
  ::close(socket);
}

const char* reason_phrase(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

// Responds to a request that the library has not seen. The caller closes the connection afterwards.
void send_rejection(int socket, const HttpError& error) {
  const std::string body = to_json(error).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string response =
      "HTTP/1.1 " + std::to_string(error.status) + " " + reason_phrase(error.status) +
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      (error.status == 503 ? "\r\nRetry-After: 1" : "") + "\r\n\r\n" + body;
  [[maybe_unused]] const ssize_t n = ::send(socket, response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

HttpConnections::~HttpConnections() {
  if (svr_sock_ >= 0) ::close(svr_sock_.exchange(INVALID_SOCKET));
}

int HttpConnections::bind(const std::string& host, int port) {
  // The library's default, SO_REUSEPORT, would let two servers share a port.
  set_socket_options([](socket_t s) {
    const int on = 1;
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound < 0)
    throw Error({.id = "LISTEN",
                 .message = "cannot listen on the address",
                 .found = host + ":" + std::to_string(port),
                 .expected = "an address of this machine and a free port",
                 .fix = "choose another port, or 0 for any free one"});
  ::listen(svr_sock_, kBacklog);
  return bound;
}

void HttpConnections::accept_until_stopped() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = true;
  }
  accept_all();
  const std::lock_guard lock(mutex_);
  accepting_ = false;
  accepted_.notify_all();
}

void HttpConnections::accept_all() {
  while (!stopping_) {
    pollfd p{.fd = svr_sock_, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, 100) <= 0) continue;
    const int socket = ::accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {  // the client disconnected or descriptors are exhausted: both pass
      if (errno != ECONNABORTED && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (pool_.run([this, socket] { serve(socket); })) continue;
    send_rejection(socket, {503, "server_error", "too many connections", "", "connections"});
    ::close(socket);
  }
}

void HttpConnections::serve(int socket) {
  HttpConnection connection(socket, limits_);
  current = &connection;
  while (serve_request(connection)) {
  }
  current = nullptr;
  close_gently(socket);
}

bool HttpConnections::receive_head(HttpConnection& connection) {
  const int socket = connection.descriptor();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    waiting_.insert(socket);
  }
  const bool received = connection.receive_head();
  const std::lock_guard lock(mutex_);
  waiting_.erase(socket);
  return received;
}

bool HttpConnections::serve_request(HttpConnection& connection) {
  if (!receive_head(connection)) {
    if (connection.rejection()) send_rejection(connection.descriptor(), *connection.rejection());
    return false;
  }
  bool close = stopping_;
  bool parsed = false;
  const bool done = process_request(connection, close, close, [&](httplib::Request& request) {
    hide_library_features(request);
    connection.begin_body();
    parsed = true;
  });
  return done && parsed && !close && !connection.is_broken();
}

void HttpConnections::finish() {
  stopping_ = true;
  {
    std::unique_lock lock(mutex_);
    for (const int socket : waiting_) ::shutdown(socket, SHUT_RD);
    accepted_.wait(lock, [&] { return !accepting_; });
  }
  pool_.join();
  if (svr_sock_ >= 0)
    ::close(svr_sock_.exchange(INVALID_SOCKET));  // only now: the library aborts responses of a closed server
}

const HttpHead& HttpConnections::head() {
  return current->head();
}

bool HttpConnections::is_disconnected() {
  return current && current->is_disconnected();
}

void HttpConnections::close_after_this() {
  if (current) current->mark_broken();
}

bool HttpConnections::closes_after_this() {
  return current && current->is_broken();
}

bool HttpConnections::is_body_too_long() {
  return current && current->is_body_too_long();
}

}  // namespace mw::serve
