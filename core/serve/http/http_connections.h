// SPDX-License-Identifier: Apache-2.0
// Connections of an HTTP server: cpp-httplib parses requests, routes and writes answers; accepting, limits, deadlines
// and the strict reading of heads and framing (http_head.h) are here, for it (0.11) has no limit on headers or chunked
// bodies, a backlog of five, select(), no way to notice that a client has gone, and takes what it cannot read for
// something else. A connection holds a thread of the pool while it is open.
#pragma once
#include <httplib.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "core/serve/http/http_head.h"
#include "core/serve/http/worker_pool.h"

namespace mw::serve {

struct ConnectionLimits {
  size_t headers = 64 << 10, body = 32 << 20;     // bytes
  int connections = 1024;                         // and threads; further ones are told 503 and closed
  double idle_s = 75, read_s = 30, write_s = 30;  // between requests; to read a whole one; without progress in writing
};

inline constexpr const char* kContentType = "X-Given-Content-Type";  // a request's, kept from cpp-httplib's own parsers

class HttpConnection;

class HttpConnections : public httplib::Server {
 public:
  explicit HttpConnections(ConnectionLimits limits) : limits_(limits), pool_(limits.connections) {}
  ~HttpConnections() override;
  // Port that was bound, `port` 0 takes a free one. Throws Error LISTEN.
  int bind(const std::string& host, int port);
  void accept_until_stopped();  // blocks
  void finish();  // accepts no more, lets requests in progress end, joins; any thread, once accept has begun

  static const HttpHead& head();    // on the handler's thread: the request's, as it was received
  static bool client_gone();        // on the handler's thread: the client has closed its end
  static void close_after_this();   // on the handler's thread: the request's body is not going to be read
  static bool closes_after_this();  // on the handler's thread: that, or the body could not be read
  static bool body_was_too_long();  // on the handler's thread: why a request could not be read
  int open() const { return pool_.busy(); }

 private:
  void accept_all();
  void serve(int socket);
  bool serve_request(HttpConnection& connection);  // false: the connection is to be closed
  bool receive_head(HttpConnection& connection);

  const ConnectionLimits limits_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::set<int> waiting_;  // sockets that have not sent a whole head
  bool accepting_ = false;
  WorkerPool pool_;  // last: joined first
};

}  // namespace mw::serve
