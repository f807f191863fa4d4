// SPDX-License-Identifier: Apache-2.0
// Connections of an HTTP server: cpp-httplib reads requests, routes and writes answers; accepting, limits and deadlines
// are here, for it (0.11) has none on headers or chunked bodies, a backlog of five, select() and no way to notice that
// a client has gone. A thread for each connection.
#pragma once
#include <httplib.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

namespace mw::serve {

struct ConnectionLimits {
  size_t headers = 64 << 10, body = 32 << 20;     // bytes
  int connections = 1024;                         // further ones are told 503 and closed
  double idle_s = 75, read_s = 30, write_s = 30;  // between requests; to read a whole one; without progress in writing
};

inline constexpr const char* kContentType = "X-Given-Content-Type";  // a request's, kept from cpp-httplib's own parsers

class HttpConnections : public httplib::Server {
 public:
  explicit HttpConnections(ConnectionLimits limits) : limits_(limits) {}
  ~HttpConnections() override;
  // Port that was bound, `port` 0 takes a free one. Throws Error LISTEN.
  int bind(const std::string& host, int port);
  void accept_until_stopped();  // blocks
  void finish();  // accepts no more, lets requests in progress end, joins; any thread, once accept has begun

  static bool client_gone();        // on the handler's thread: the client has closed its end
  static void close_after_this();   // on the handler's thread: the request's body is not going to be read
  static bool body_was_too_long();  // on the handler's thread: why a request could not be read
  int open() const;

 private:
  void accept_all();
  void serve(int socket);
  void refuse(int socket);

  const ConnectionLimits limits_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable closed_;
  std::set<int> waiting_;  // sockets between two requests
  int open_ = 0;
  bool accepting_ = false;
};

}  // namespace mw::serve
