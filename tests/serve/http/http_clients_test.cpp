// SPDX-License-Identifier: GPL-3.0-or-later
// Clients that disconnect, stall, or send wrong lengths or endless requests must not hold blocks or delay others.
#include <future>

#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;
using test::RawClient;

class HttpClientsTest : public ServerFixture {
 protected:
  bool all_free() {
    const SchedulerState s = loop->state().scheduler;
    return s.running == 0 && s.waiting == 0 && s.kv_used == 0 && executor.open() == 0;
  }
};

TEST_F(HttpClientsTest, DisconnectReleasesBlocks) {
  executor.step_time = 2ms;
  start();
  for (const char* stream : {"true", "false"}) {
    RawClient client(server->port());
    client.post("/v1/completions", std::string(R"({"prompt": "x", "max_tokens": 2000, "stream": )") + stream + "}");
    ASSERT_TRUE(becomes_true([&] { return loop->state().scheduler.running == 1; }));
    EXPECT_FALSE(all_free());
    client.close();
    EXPECT_TRUE(becomes_true([&] { return all_free(); }));
  }
  EXPECT_EQ(loop->state().cancelled, 2);
  EXPECT_NE(get("/metrics").text.find("finished_reason=\"abort\",model_name=\"tiny\"} 2"), std::string::npos);
}

TEST_F(HttpClientsTest, DisconnectRemovesAWaitingRequest) {
  executor.step_time = 2ms;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 1;
  start(settings);
  RawClient first(server->port()), second(server->port());
  first.post("/v1/completions", R"({"prompt": "x", "max_tokens": 2000})");
  ASSERT_TRUE(becomes_true([&] { return loop->state().scheduler.running == 1; }));
  second.post("/v1/completions", R"({"prompt": "y", "max_tokens": 2000})");
  ASSERT_TRUE(becomes_true([&] { return loop->state().scheduler.waiting == 1; }));
  second.close();
  EXPECT_TRUE(becomes_true([&] { return loop->state().scheduler.waiting == 0; }));
  EXPECT_EQ(loop->state().scheduler.running, 1);
}

TEST_F(HttpClientsTest, ClientThatDoesNotReadIsClosedWithoutDelayingOthers) {
  options.limits.write_s = 2;
  start(small_server(8192, 100000));
  RawClient slow(server->port(), 4096);
  slow.post("/v1/completions", R"({"prompt": "x", "max_tokens": 60000, "stream": true})");
  ASSERT_TRUE(becomes_true([&] { return loop->state().output_tokens > 100; }));
  EXPECT_EQ(complete({{"prompt", "y"}, {"max_tokens", 50}}).status, 200);
  EXPECT_GT(server->connections(), 0) << "others are served before the slow connection is closed";
  EXPECT_TRUE(becomes_true([&] { return all_free() && server->connections() == 0; }))
      << "connections: " << server->connections();
}

TEST_F(HttpClientsTest, TooLongBodiesGet413) {
  options.limits.body = 10000;
  start();
  const std::string text(20000, 'a');
  RawClient counted(server->port());
  counted.post("/v1/completions", "{\"prompt\": \"" + text + "\"}");
  EXPECT_TRUE(counted.read(2000, "}}").starts_with("HTTP/1.1 413"));
  RawClient chunked(server->port());
  chunked.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n");
  for (int i = 0; i < 4; ++i) chunked.send("1388\r\n" + std::string(5000, 'a') + "\r\n");
  EXPECT_TRUE(chunked.read(2000, "}}").starts_with("HTTP/1.1 413"));
  RawClient endless(server->port());
  endless.send("GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
  for (int i = 0; i < 100 && endless.send(std::string(4096, 'x')); ++i) {
  }
  endless.read(2000);
  EXPECT_TRUE(endless.closed());
  EXPECT_EQ(complete({{"prompt", "x"}}).status, 200);
}

TEST_F(HttpClientsTest, MalformedRequestsAreRejectedAndClosed) {
  start();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8) + "\r\n\r\n", std::string("GET\r\n\r\n"),
        std::string("POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string(20000, '/') + "\r\n\r\n"}) {
    RawClient client(server->port());
    client.send(bytes);
    const std::string answer = client.read(1000);
    EXPECT_TRUE(client.closed());
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
  }
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(HttpClientsTest, EndlessRequestsAreClosed) {
  options.limits.read_s = 0.3;
  start();
  RawClient headers(server->port()), body(server->port());
  headers.send("POST /v1/completions HTTP/1.1\r\nHost");
  body.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "100\r\n\r\n{\"pro");
  for (RawClient* client : {&headers, &body}) {
    client->read(1500);
    EXPECT_TRUE(client->closed());
  }
  EXPECT_TRUE(becomes_true([&] { return server->connections() == 0; }));
}

TEST_F(HttpClientsTest, OneConnectionServesManyRequestsAndPostsWithoutBody) {
  start();
  RawClient client(server->port());
  for (int i = 0; i < 20; ++i) {
    client.post("/v1/completions", R"({"prompt": "x", "max_tokens": 2})");
    EXPECT_TRUE(client.read(2000, "}}").starts_with("HTTP/1.1 200"));
  }
  client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n");
  EXPECT_TRUE(client.read(2000, "}}").starts_with("HTTP/1.1 400"));
  EXPECT_EQ(server->connections(), 1);
}

TEST_F(HttpClientsTest, RejectsConnectionsOverTheLimit) {
  options.limits.connections = 3;
  start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<RawClient>(server->port()));
  ASSERT_TRUE(becomes_true([&] { return server->connections() == 3; }));
  RawClient fourth(server->port());
  EXPECT_TRUE(fourth.read(2000).starts_with("HTTP/1.1 503"));
  clients.clear();
  ASSERT_TRUE(becomes_true([&] { return server->connections() == 0; }));
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(HttpClientsTest, ServesTwoHundredConcurrentClients) {
  executor.step_time = 200us;
  start(small_server(), 1000);
  std::vector<std::future<Answer>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(std::async(std::launch::async, [&] {
      return complete({{"prompt", "x"}, {"max_tokens", 20}, {"stream", true}});
    }));
  for (auto& f : all) {
    const Answer a = f.get();
    EXPECT_EQ(a.status, 200) << a.text;
    EXPECT_EQ(a.streamed_text(), script_text(20));
  }
  EXPECT_TRUE(becomes_true([&] { return all_free(); }));
}

}  // namespace
}  // namespace mw::serve
