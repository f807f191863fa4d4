// SPDX-License-Identifier: GPL-3.0-or-later
// A client that says what it likes, byte by byte: for servers that must bear it.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace mw::test {

class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  bool connected() const { return connected_; }
  bool send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  void post(const std::string& path, const std::string& body) {
    send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // What comes within `ms` or until the other side closes; at most until `until` has come.
  std::string read(int ms, const std::string& until = {}) {
    std::string out;
    char buffer[4096];
    for (;;) {
      pollfd p{.fd = socket_, .events = POLLIN, .revents = 0};
      if (::poll(&p, 1, ms) <= 0) return out;
      const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
      if (n <= 0) {
        closed_ = true;
        return out;
      }
      out.append(buffer, static_cast<size_t>(n));
      if (!until.empty() && out.find(until) != std::string::npos) return out;
    }
  }
  bool closed() const { return closed_; }  // seen by read()
  void close() {
    if (const int s = std::exchange(socket_, -1); s >= 0) ::close(s);
  }

 private:
  int socket_;
  bool connected_ = false, closed_ = false;
};

}  // namespace mw::test
