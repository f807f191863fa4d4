// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_connections.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::serve {

bool WorkerPool::run(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (joining_ || busy_ >= max_threads_) return false;
    if (static_cast<size_t>(busy_) == threads_.size()) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        return false;
      }
    }
    ++busy_;
    started_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return joining_ || !started_.empty(); });
    if (started_.empty()) return;
    {
      const Task task = std::move(started_.front());
      started_.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
    --busy_;
  }
}

int WorkerPool::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void WorkerPool::join() {
  std::vector<std::thread> all;
  {
    const std::lock_guard lock(mutex_);
    joining_ = true;
    all.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : all) thread.join();
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBacklog = 1024;
constexpr double kLinger = 2;  // s for draining unread input before closing

const char* reason_phrase(int status) {
  constexpr std::pair<int, const char*> kReasons[] = {{200, "OK"},
                                                      {204, "No Content"},
                                                      {400, "Bad Request"},
                                                      {401, "Unauthorized"},
                                                      {403, "Forbidden"},
                                                      {404, "Not Found"},
                                                      {405, "Method Not Allowed"},
                                                      {408, "Request Timeout"},
                                                      {413, "Payload Too Large"},
                                                      {415, "Unsupported Media Type"},
                                                      {429, "Too Many Requests"},
                                                      {431, "Request Header Fields Too Large"},
                                                      {503, "Service Unavailable"}};
  for (const auto& [known, reason] : kReasons)
    if (known == status) return reason;
  return "Internal Server Error";
}

// A socket that listens; -1 if no address of `host` can be bound.
int listen_on(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (socket < 0) continue;
    const int on = 1, off = 0;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket, a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0) return socket;
    ::close(socket);
  }
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

void HttpResponse::set_body(std::string text, const std::string& content_type) {
  body = std::move(text);
  set_header("Content-Type", content_type);
}

void HttpResponse::set_json(int of_status, const Json& json) {
  status = of_status;
  set_body(dump_utf8(json), "application/json");
}

void HttpResponse::set_error(const HttpError& error) {
  if (error.status == 429 || error.status == 503) set_header("Retry-After", "1");
  set_json(error.status, to_json(error));
}

// A connected socket, with limits of bytes and time.
class HttpConnection {
 public:
  HttpConnection(int socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {}

  // Waits for a request and reads its head. Returns false if the client closed the connection or timed out, or if the
  // request is invalid: then rejection() is set.
  bool receive_head(HttpHead& head);
  // Returns false and sets rejection() if the body is invalid, too long or incomplete.
  bool receive_body(const HttpHead& head, std::string& body);
  const std::optional<HttpError>& rejection() const { return rejection_; }
  // Returns false if the response was not sent to its end.
  bool send(const HttpHead& request, const HttpResponse& response, bool closes);

  int descriptor() const { return socket_; }
  bool is_disconnected() const {
    pollfd p{.fd = socket_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&p, 1, 0) > 0;
  }

 private:
  double remaining_s() const { return limits_.read_s - seconds_since(began_); }
  bool receive_more(double wait_s);
  bool receive_rest();
  bool ready(short event, double wait_s) const {
    pollfd p{.fd = socket_, .events = event, .revents = 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::max(0.0, wait_s) * 1e3));
    return n > 0 && (p.revents & (event | POLLHUP)) != 0 && (p.revents & (POLLERR | POLLNVAL)) == 0;
  }
  bool send(std::string_view bytes);
  bool send_pieces(const HttpResponse& response, bool chunked);

  const int socket_;
  const ConnectionLimits& limits_;
  Clock::time_point began_ = Clock::now();
  std::string received_;  // and not yet read
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

// More of a request that has begun.
bool HttpConnection::receive_rest() {
  if (receive_more(remaining_s())) return true;
  if (remaining_s() <= 0)
    rejection_ = {408, "invalid_request_error",
                  "the request did not arrive within " + std::to_string(static_cast<int>(limits_.read_s)) + " s"};
  return false;
}

bool HttpConnection::receive_head(HttpHead& head) try {
  if (received_.empty() && !receive_more(limits_.idle_s)) return false;
  began_ = Clock::now();
  size_t scanned = 0, size = 0;
  while ((size = head_size(received_, scanned)) == 0) {
    if (received_.size() >= limits_.headers) {
      rejection_ = {431, "invalid_request_error", "the headers exceed " + std::to_string(limits_.headers) + " bytes"};
      return false;
    }
    if (!receive_rest()) return false;
  }
  head = parse_head(std::string_view(received_).substr(0, size));
  received_.erase(0, size);
  return true;
} catch (const Error& error) {
  rejection_ = {400, "invalid_request_error", error.what()};
  return false;
}

bool HttpConnection::receive_body(const HttpHead& head, std::string& body) try {
  ChunkedBodyReader chunks;
  const std::uint64_t length = head.content_length.value_or(0);
  const bool asks = lower_case(head.find("expect").value_or("")) == "100-continue";
  if (asks && received_.empty() && length <= limits_.body) send("HTTP/1.1 100 Continue\r\n\r\n");
  for (std::uint64_t read = 0; head.chunked ? !chunks.has_ended() : read < length;) {
    if (std::max(read, length) > limits_.body) {  // read: with the framing of chunks
      rejection_ = {413, "invalid_request_error", "the body exceeds " + std::to_string(limits_.body >> 20) + " MiB"};
      return false;
    }
    if (received_.empty() && !receive_rest()) {
      if (!rejection_) rejection_ = {400, "invalid_request_error", "the request ends within its body"};
      return false;
    }
    size_t n = received_.size();
    if (head.chunked) {
      n = chunks.read(received_, body);
    } else {
      n = static_cast<size_t>(std::min<std::uint64_t>(length - read, n));
      body.append(received_, 0, n);
    }
    received_.erase(0, n);
    read += n;
  }
  return true;
} catch (const Error& error) {
  rejection_ = {400, "invalid_request_error", error.what()};
  return false;
}

bool HttpConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!ready(POLLOUT, limits_.write_s)) return false;
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool HttpConnection::send_pieces(const HttpResponse& response, bool chunked) {
  for (;;) {
    std::string piece;
    const HttpResponse::Piece state = response.next_piece(piece);
    if (state == HttpResponse::Piece::failed) return false;
    if (chunked && !piece.empty()) {
      std::array<char, 16> size;
      const char* const end = std::to_chars(size.data(), size.data() + size.size(), piece.size(), 16).ptr;
      piece.insert(0, std::string(size.data(), static_cast<size_t>(end - size.data())) + "\r\n");
      piece += "\r\n";
    }
    if (chunked && state == HttpResponse::Piece::last) piece += "0\r\n\r\n";
    if (is_disconnected() || !send(piece)) return false;
    if (state == HttpResponse::Piece::last) return true;
  }
}

bool HttpConnection::send(const HttpHead& request, const HttpResponse& response, bool closes) {
  const bool has_pieces = static_cast<bool>(response.next_piece), chunked = has_pieces && request.minor_version > 0;
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " " + reason_phrase(response.status) + "\r\n";
  const auto add = [&](const std::string& name, const std::string& value) { out += name + ": " + value + "\r\n"; };
  for (const auto& [name, value] : response.headers) add(name, value);
  if (chunked)
    add("Transfer-Encoding", "chunked");
  else if (!has_pieces && response.status != 204)
    add("Content-Length", std::to_string(response.body.size()));
  if (closes)
    add("Connection", "close");
  else
    add("Keep-Alive", "timeout=" + std::to_string(static_cast<int>(limits_.idle_s)));
  if (!closes && request.minor_version == 0) add("Connection", "keep-alive");
  out += "\r\n";
  if (request.method == "HEAD") return send(out);
  return send(out + response.body) && (!has_pieces || send_pieces(response, chunked));
}

namespace {

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

// Answers bytes that are no request, or a connection too many. The caller closes the connection afterwards.
void send_rejection(HttpConnection& connection, const HttpError& error) {
  HttpResponse response;
  response.set_error(error);
  connection.send({}, response, true);
}

// The options of all Connection headers are one list (RFC 9110, 7.6.1).
bool keeps_alive(const HttpHead& head) {
  bool closes = false, keeps = head.minor_version > 0;
  for (const auto& [name, value] : head.headers) {
    if (name != "connection") continue;
    std::istringstream options(lower_case(value));
    for (std::string option; std::getline(options, option, ',');) {
      closes = closes || trim(option) == "close";
      keeps = keeps || trim(option) == "keep-alive";
    }
  }
  return keeps && !closes;
}

}  // namespace

int HttpConnections::start(const std::string& host, int port) {
  listener_ = listen_on(host, port);
  if (listener_ < 0)
    throw Error("LISTEN", "cannot listen on the address",
                {.found = host + ":" + std::to_string(port),
                 .expected = "an address of this machine and a free port",
                 .fix = "choose another port, or 0 for any free one"});
  accepting_ = std::thread([this] { accept_until_stopped(); });
  return port_of(listener_);
}

void HttpConnections::accept_until_stopped() {
  while (!stopping_) {
    pollfd p{.fd = listener_, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, 100) <= 0) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {  // the client disconnected or descriptors are exhausted: both pass
      if (errno != ECONNABORTED && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (pool_.run([this, socket] { serve(socket); })) continue;
    HttpConnection connection(socket, limits_);
    send_rejection(connection, {503, "server_error", "too many connections", "", "connections"});
    ::close(socket);
  }
}

void HttpConnections::serve(int socket) {
  HttpConnection connection(socket, limits_);
  while (serve_request(connection)) {
  }
  close_gently(socket);
}

bool HttpConnections::while_waiting(int socket, const std::function<bool()>& receive) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    waiting_.insert(socket);
  }
  const bool received = receive();
  const std::lock_guard lock(mutex_);
  waiting_.erase(socket);
  return received;
}

bool HttpConnections::serve_request(HttpConnection& connection) {
  HttpRequest request;
  request.is_disconnected = [&] { return connection.is_disconnected(); };
  const HttpHead& head = request.head;
  if (!while_waiting(connection.descriptor(), [&] { return connection.receive_head(request.head); })) {
    if (connection.rejection()) send_rejection(connection, *connection.rejection());
    return false;
  }
  request.path = head.path();
  HttpResponse response;
  const bool responded = handlers_.respond_before_body(request, response);
  // Only bodies of POST are read; any other body would be parsed as the next request.
  bool closes = stopping_ || !keeps_alive(head) || (head.has_body() && (responded || head.method != "POST"));
  if (!responded) {
    const auto receive = [&] { return connection.receive_body(head, request.body); };
    if (head.method != "POST" || while_waiting(connection.descriptor(), receive)) {
      handlers_.respond(request, response);
    } else {
      response.set_error(connection.rejection() ? *connection.rejection()
                                                : HttpError{503, "server_error", "the server is stopping"});
      closes = true;
    }
  }
  closes = closes || (response.next_piece && head.minor_version == 0);  // the end of the connection ends the body
  const bool sent = connection.send(head, response, closes);
  if (handlers_.on_response) handlers_.on_response(request, response);
  return sent && !closes;
}

void HttpConnections::finish() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : waiting_) ::shutdown(socket, SHUT_RD);
  }
  if (accepting_.joinable()) accepting_.join();
  pool_.join();
  if (const int socket = std::exchange(listener_, -1); socket >= 0) ::close(socket);
}

}  // namespace mw::serve
