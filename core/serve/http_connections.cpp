// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "core/serve/openai_answer.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBacklog = 1024;
constexpr double kLinger = 2;  // s, that a client may go on sending what nobody wants

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// The socket as cpp-httplib reads and writes it, within limits of bytes and time.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {}
  void begin_request() {
    began_ = Clock::now();
    left_ = limits_.headers;
    in_body_ = broken_ = false;
  }
  void begin_body(std::uint64_t announced) {
    left_ = announced > limits_.body ? 0 : limits_.body;  // refused before it is sent
    in_body_ = true;
  }
  bool body_too_long() const { return in_body_ && left_ == 0; }
  bool buffered() const { return at_ < end_; }
  void give_up() { broken_ = true; }
  bool broken() const { return broken_; }  // it cannot be told where the next request would begin

  bool gone() const {
    pollfd p{.fd = socket_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&p, 1, 0) > 0;
  }
  bool is_readable() const override { return buffered() || ready(POLLIN, limits_.read_s - seconds_since(began_)); }
  bool is_writable() const override { return !gone() && ready(POLLOUT, limits_.write_s); }
  ssize_t read(char* out, size_t size) override {
    size = std::min(size, left_);
    broken_ = broken_ || size == 0 || !is_readable();
    if (broken_) return -1;
    if (!buffered()) {
      const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      broken_ = n <= 0;
      if (broken_) return n;
      at_ = 0;
      end_ = static_cast<size_t>(n);
    }
    const size_t n = std::min(size, end_ - at_);
    std::copy_n(buffer_.data() + at_, n, out);
    at_ += n;
    left_ -= n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* data, size_t size) override {
    if (!ready(POLLOUT, limits_.write_s)) return -1;
    return ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }  // not for select(): any number of connections will do

 private:
  bool ready(short event, double wait_s) const {
    pollfd p{.fd = socket_, .events = event, .revents = 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::max(0.0, wait_s) * 1e3));
    return n > 0 && (p.revents & (event | POLLHUP)) != 0 && (p.revents & (POLLERR | POLLNVAL)) == 0;
  }

  const int socket_;
  const ConnectionLimits& limits_;
  Clock::time_point began_ = Clock::now();
  std::array<char, 8192> buffer_;
  size_t at_ = 0, end_ = 0, left_ = 0;
  bool in_body_ = false, broken_ = false;
};

thread_local Connection* current = nullptr;

// What the library would do of itself with these headers is not wanted: parts of answers, compressing them with much
// work, unpacking bodies of any size, parsing forms, and waiting for the end of a body that nobody sends.
void tame(httplib::Request& request) {
  request.ranges.clear();
  for (const char* header : {"Accept-Encoding", "Content-Encoding"}) request.headers.erase(header);
  const std::string type = request.get_header_value("Content-Type");
  request.headers.erase("Content-Type");
  request.headers.erase(kContentType);
  request.set_header(kContentType, type);
  if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding"))
    request.set_header("Content-Length", "0");
}

void close_gently(int socket) {
  ::shutdown(socket, SHUT_WR);
  // What the client has sent and nobody read would make the close a reset that takes the answer with it.
  std::array<char, 65536> rest;
  for (const auto begun = Clock::now(); seconds_since(begun) < kLinger;) {
    pollfd p{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, 50) <= 0 || ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) break;
  }
  ::close(socket);
}

}  // namespace

HttpConnections::~HttpConnections() {
  if (svr_sock_ >= 0) ::close(svr_sock_.exchange(INVALID_SOCKET));
}

int HttpConnections::bind(const std::string& host, int port) {
  // The default would let two servers share a port (SO_REUSEPORT); this only takes over one that was just left.
  set_socket_options([](socket_t s) {
    const int on = 1;
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound < 0)
    throw Error({.id = "LISTEN",
                 .message = "cannot listen on this address",
                 .found = host + ":" + std::to_string(port),
                 .expected = "an address of this machine and a port that is free",
                 .fix = "choose another port, or 0 for any that is free"});
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
  closed_.notify_all();
}

void HttpConnections::accept_all() {
  while (!stopping_) {
    pollfd p{.fd = svr_sock_, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, 100) <= 0) continue;
    const int socket = ::accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {  // the client has gone again, or descriptors are short: that passes
      if (errno != ECONNABORTED && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    bool room = false;
    {
      const std::lock_guard lock(mutex_);
      room = open_ < limits_.connections;
      open_ += room;
    }
    if (!room) {
      refuse(socket);
      continue;
    }
    try {
      std::thread([this, socket] { serve(socket); }).detach();  // counted in open_, which finish() waits for
    } catch (const std::system_error&) {                        // no more threads
      refuse(socket);
      const std::lock_guard lock(mutex_);
      if (--open_ == 0) closed_.notify_all();
    }
  }
}

void HttpConnections::refuse(int socket) {
  const std::string body = to_json(HttpError{503, "server_error", "too many connections", "", "connections"}).dump();
  const std::string answer =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  [[maybe_unused]] const ssize_t n = ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::close(socket);
}

void HttpConnections::serve(int socket) {
  Connection connection(socket, limits_);
  current = &connection;
  for (bool open = true; open && !stopping_;) {
    if (!connection.buffered()) {
      {
        const std::lock_guard lock(mutex_);
        waiting_.insert(socket);
      }
      pollfd p{.fd = socket, .events = POLLIN, .revents = 0};
      const bool came = !stopping_ && ::poll(&p, 1, static_cast<int>(limits_.idle_s * 1e3)) > 0;
      const std::lock_guard lock(mutex_);
      waiting_.erase(socket);
      if (!came) break;
    }
    connection.begin_request();
    bool close = stopping_;
    bool parsed = false;
    const bool done = process_request(connection, close, close, [&](httplib::Request& request) {
      tame(request);
      connection.begin_body(request.get_header_value<std::uint64_t>("Content-Length"));
      parsed = true;
    });
    open = done && parsed && !close && !connection.broken();
  }
  current = nullptr;
  close_gently(socket);
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) closed_.notify_all();
}

void HttpConnections::finish() {
  stopping_ = true;
  std::unique_lock lock(mutex_);
  for (const int socket : waiting_) ::shutdown(socket, SHUT_RD);
  closed_.wait(lock, [&] { return open_ == 0 && !accepting_; });
  if (svr_sock_ >= 0) ::close(svr_sock_.exchange(INVALID_SOCKET));  // not before: the library breaks off answers then
}

bool HttpConnections::client_gone() {
  return current && current->gone();
}

void HttpConnections::close_after_this() {
  if (current) current->give_up();
}

bool HttpConnections::body_was_too_long() {
  return current && current->body_too_long();
}

int HttpConnections::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

}  // namespace mw::serve
