// SPDX-License-Identifier: Apache-2.0
// Connections of an HTTP server. cpp-httplib parses requests, routes them and writes responses. This class accepts
// connections, applies limits and deadlines and checks heads and framing (http_head.h), because cpp-httplib 0.11 does
// not limit headers and chunked bodies, has a backlog of five, uses select(), does not notice a client that disconnects
// and accepts malformed requests. An open connection occupies a thread of the pool.
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
  int connections = 1024;                         // and threads; further connections get 503
  double idle_s = 75, read_s = 30, write_s = 30;  // between requests; for reading a whole one; without writing progress
};

class HttpConnection;

class HttpConnections : public httplib::Server {
 public:
  explicit HttpConnections(ConnectionLimits limits) : limits_(limits), pool_(limits.connections) {}
  ~HttpConnections() override;
  // Binds `port`, or a free one for 0, and returns it. Throws Error LISTEN.
  int bind(const std::string& host, int port);
  void accept_until_stopped();  // blocks
  // Stops accepting, waits for requests in progress and joins. Any thread, after accept_until_stopped() has begun.
  void finish();

  // For request handlers, about the request of the calling thread:
  static const HttpHead& head();             // as received, with headers that the library does not get
  static bool is_disconnected();             // the client has closed its end
  static void close_after_this();            // closes the connection after the response, because the body is not read
  static bool closes_after_this();           // after close_after_this(), or because the body could not be read
  static bool is_body_too_long();            // the body exceeded the limit
  int open() const { return pool_.busy(); }  // connections

 private:
  void accept_all();
  void serve(int socket);
  bool serve_request(HttpConnection& connection);  // returns false if the connection must be closed
  bool receive_head(HttpConnection& connection);

  const ConnectionLimits limits_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable accepted_;
  std::set<int> waiting_;  // sockets whose next head is incomplete
  bool accepting_ = false;
  WorkerPool pool_;  // last: joined before the other members are destroyed
};

}  // namespace mw::serve
