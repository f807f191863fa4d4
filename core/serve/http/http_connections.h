// SPDX-License-Identifier: Apache-2.0
// Connections of an HTTP/1 server: accepts them, reads requests strictly (http_head.h) within limits of bytes and time,
// passes them to handlers and writes the responses. An open connection occupies a thread of the pool.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/serve/http/http_head.h"
#include "core/serve/http/openai_protocol.h"

namespace mw::serve {

// Runs tasks that mostly block, each on its own thread. Threads are created on demand up to a limit and reused.
// Thread-safe.
class WorkerPool {
 public:
  using Task = std::function<void()>;  // must not throw
  explicit WorkerPool(int max_threads) : max_threads_(max_threads) {}
  ~WorkerPool() { join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts the task at once. Returns false if all threads are busy, the system cannot create one or join() was called.
  bool run(Task task);
  int busy() const;  // running tasks
  void join();       // waits for all tasks and joins all threads; later tasks are rejected

 private:
  void work();

  const int max_threads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> started_;  // not yet taken by their idle threads
  std::vector<std::thread> threads_;
  int busy_ = 0;
  bool joining_ = false;
};

struct ConnectionLimits {
  size_t headers = 64 << 10, body = 32 << 20;     // bytes
  int connections = 1024;                         // and threads; further connections get 503
  double idle_s = 75, read_s = 30, write_s = 30;  // between requests; for reading a whole one; without writing progress
};

struct HttpRequest {
  HttpHead head;
  std::string path, body;                 // path: HttpHead::path()
  std::function<bool()> is_disconnected;  // the client has closed its end
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers{};  // but those of framing and of the connection
  std::string body{};
  // The body instead, in pieces that are sent as they come: appends one to its argument. Called until it returns
  // `last`; `failed` closes the connection within the response.
  enum class Piece { more, last, failed };
  std::function<Piece(std::string&)> next_piece{};

  void set_header(const std::string& name, const std::string& value) { headers.emplace_back(name, value); }
  void set_body(std::string text, const std::string& content_type);
  void set_json(int of_status, const Json& json);
  void set_error(const HttpError& error);
};

// Called on the threads of the connections. Exceptions end the program.
struct HttpHandlers {
  // Returns whether it has set the response without the body of the request, which is then not read.
  std::function<bool(const HttpRequest&, HttpResponse&)> respond_before_body;
  std::function<void(const HttpRequest&, HttpResponse&)> respond;
  std::function<void(const HttpRequest&, const HttpResponse&)> on_response;  // after the response was sent
};

class HttpConnection;

class HttpConnections {
 public:
  HttpConnections(ConnectionLimits limits, HttpHandlers handlers)
      : limits_(limits), handlers_(std::move(handlers)), pool_(limits.connections) {}
  ~HttpConnections() { finish(); }
  // Listens on `port`, or a free one for 0, accepts connections from then on and returns the port. Throws Error LISTEN.
  int start(const std::string& host, int port);
  // Stops accepting, waits for requests in progress and joins.
  void finish();
  int open() const { return pool_.busy(); }  // connections

 private:
  void accept_until_stopped();
  void serve(int socket);
  bool serve_request(HttpConnection& connection);  // returns false if the connection must be closed
  // Calls `receive`, which finish() interrupts; false if it fails or the server stops.
  bool while_waiting(int socket, const std::function<bool()>& receive);

  const ConnectionLimits limits_;
  const HttpHandlers handlers_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::set<int> waiting_;  // sockets whose next request is incomplete
  int listener_ = -1;
  std::thread accepting_;
  WorkerPool pool_;  // last: joined before the other members are destroyed
};

}  // namespace mw::serve
