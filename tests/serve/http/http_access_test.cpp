// SPDX-License-Identifier: GPL-3.0-or-later
// Host names, origins, methods and framing, which a server checks before it reads a body.
#include "core/serve/http/http_access.h"

#include <chrono>
#include <thread>

#include "tests/serve/http/raw_client.h"
#include "tests/serve/http/server_fixture.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;
using test::RawClient;

TEST(HttpAccessPolicy, RecognisesLoopbackNames) {
  for (const char* name : {"localhost", "LocalHost", "localhost.", "127.0.0.1", "127.255.3.4", "[::1]", "::1",
                           "localhost:1", "[::1]:8000", "127.0.0.1:65535", "0:0:0:0:0:0:0:1"})
    EXPECT_TRUE(is_loopback(name)) << name;
  for (const char* name :
       {"", "localhost.evil.example", "evil.example", "127.0.0.1.evil.example", "128.0.0.1", "0.0.0.0", "127.1", "::2",
        "[::1", "localhost:x", "localhost@evil", "localhost/", "local host", "::"})
    EXPECT_FALSE(is_loopback(name)) << name;
}

TEST(HttpAccessPolicy, OtherAddressesAcceptAnyNameUnlessSomeAreListed) {
  EXPECT_EQ(HttpAccessPolicy("0.0.0.0", {}, {}).check_host("any.example:80"), HostCheck::allowed);
  const HttpAccessPolicy some("192.168.1.5", {"gpu-box.lan", "::1"}, {});
  for (const char* name : {"GPU-box.lan", "gpu-box.lan:8000", "gpu-box.lan.", "192.168.1.5:8000", "localhost"})
    EXPECT_EQ(some.check_host(name), HostCheck::allowed) << name;
  for (const char* name : {"evil.example", "", "192.168.1.6"})
    EXPECT_EQ(some.check_host(name), HostCheck::refused) << name;
  for (const char* name : {"a b", "a:b", "a/b", "u@gpu-box.lan", "[x]", "a:1:2"})
    EXPECT_EQ(some.check_host(name), HostCheck::malformed) << name;
}

TEST(HttpAccessPolicy, RejectsInvalidOptions) {
  for (const char* name : {"", "http://x", "x:80", "a b", "*", "x/"})
    EXPECT_THROW(HttpAccessPolicy("::1", {name}, {}), Error) << name;
  for (const char* origin : {"", "null", "*", "x.example", "http://", "http://x/path", "http://u@x", "://x"})
    EXPECT_THROW(HttpAccessPolicy("::1", {}, {origin}), Error) << origin;
  const HttpAccessPolicy access("::1", {}, {"HTTP://App.example:80/", "https://x:8443"});
  EXPECT_TRUE(access.allows_origin("http://app.example"));
  EXPECT_TRUE(access.allows_origin("https://x:8443"));
  for (const char* origin : {"https://app.example", "http://app.example:81", "null", "", "https://x"})
    EXPECT_FALSE(access.allows_origin(origin)) << origin;
}

class HttpAccessTest : public ServerFixture {
 protected:
  // Sends the bytes, closes the client's side and returns the whole response.
  std::string answer(const std::string& bytes) {
    RawClient client(server->port());
    client.send(bytes);
    std::string all = client.read(5000, "\r\n\r\n");
    const size_t at = all.find("Content-Length: "), body = all.find("\r\n\r\n");
    if (at == std::string::npos || body == std::string::npos || bytes.starts_with("HEAD")) return all;
    const size_t size = body + 4 + std::stoul(all.substr(at + 16));
    while (all.size() < size && !client.closed()) all += client.read(5000, "}");
    return all;
  }
  std::string get_as(const std::string& host, const std::string& path = "/v1/models", const std::string& more = {}) {
    return answer("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n");
  }
  static int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0;
  }
};

TEST_F(HttpAccessTest, AcceptsOnlyLoopbackAndAllowedNames) {
  options.allow_hosts = {"gpu-box.lan"};
  start();
  for (const char* name : {"localhost", "127.0.0.1:8000", "[::1]", "gpu-box.lan:1234"})
    EXPECT_EQ(status_of(get_as(name)), 200) << name;
  for (const char* path :
       {"/v1/models", "/metrics", "/requests", "/health", "/version", "/nothing", "/v1/models/tiny"}) {
    const std::string rejected = get_as("rebound.evil.example:80", path);
    EXPECT_EQ(status_of(rejected), 403) << path;
    EXPECT_NE(rejected.find("--allow-host"), std::string::npos) << rejected;
    EXPECT_NE(rejected.find("host_not_allowed"), std::string::npos) << rejected;
  }
  EXPECT_EQ(status_of(get_as("a b")), 400);
  EXPECT_EQ(status_of(answer("GET /v1/models HTTP/1.1\r\n\r\n")), 400);
  EXPECT_EQ(status_of(answer("GET /v1/models HTTP/1.0\r\n\r\n")), 400);
  EXPECT_EQ(status_of(answer("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")), 400);
  EXPECT_EQ(status_of(answer("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")), 403);
  EXPECT_EQ(status_of(answer("GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n")), 200)
      << "the Host header of a target in absolute form is ignored";
  RawClient post(server->port());
  post.send(
      "POST /v1/completions HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n"
      "Content-Length: 14\r\n\r\n{\"prompt\":\"x\"}");
  EXPECT_EQ(status_of(post.read(5000)), 403);
  EXPECT_EQ(loop->state().finished, 0);
}

TEST_F(HttpAccessTest, RejectsOtherOriginsWithoutCorsHeaders) {
  start();
  for (const char* origin : {"http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1"}) {
    const std::string rejected = get_as("localhost", "/v1/models", std::string("Origin: ") + origin + "\r\n");
    EXPECT_EQ(status_of(rejected), 403) << origin;
    EXPECT_NE(rejected.find("--allow-origin"), std::string::npos) << rejected;
    EXPECT_EQ(rejected.find("Access-Control"), std::string::npos) << rejected;
  }
  const std::string preflight = answer(
      "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(status_of(preflight), 403);
  EXPECT_EQ(get_as("localhost").find("Access-Control"), std::string::npos);
}

TEST_F(HttpAccessTest, AllowsPagesOfAnAllowedOrigin) {
  options.allow_origins = {"http://localhost:3000"};
  options.api_key = "secret";
  start();
  const std::string origin = "Origin: http://localhost:3000\r\n";
  const std::string preflight =
      answer("OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + origin +
             "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization, x-own\r\n\r\n");
  EXPECT_EQ(status_of(preflight), 204) << preflight;
  for (const char* header :
       {"Access-Control-Allow-Origin: http://localhost:3000\r\n", "Vary: Origin\r\n",
        "Access-Control-Allow-Headers: authorization, x-own\r\n", "Access-Control-Allow-Methods: "})
    EXPECT_NE(preflight.find(header), std::string::npos) << header << preflight;
  const std::string allowed = get_as("localhost", "/v1/models", origin + "Authorization: Bearer secret\r\n");
  EXPECT_EQ(status_of(allowed), 200);
  EXPECT_NE(allowed.find("Access-Control-Allow-Origin: http://localhost:3000\r\n"), std::string::npos) << allowed;
  const std::string without_key = get_as("localhost", "/v1/models", origin);
  EXPECT_EQ(status_of(without_key), 401);
  EXPECT_NE(without_key.find("Access-Control-Allow-Origin"), std::string::npos) << "a page may read the error";
  EXPECT_EQ(status_of(get_as("localhost", "/v1/models", "Origin: http://localhost:3001\r\n")), 403);
}

TEST_F(HttpAccessTest, WrongMethodsGet405WithTheAllowedOnes) {
  start();
  for (const auto& [request, allow] : {std::pair("GET /v1/completions", "Allow: POST, OPTIONS\r\n"),
                                       {"PUT /v1/chat/completions", "Allow: POST, OPTIONS\r\n"},
                                       {"POST /v1/models", "Allow: GET, HEAD, OPTIONS\r\n"},
                                       {"DELETE /v1/models/tiny", "Allow: GET, HEAD, OPTIONS\r\n"},
                                       {"PATCH /metrics", "Allow: GET, HEAD, OPTIONS\r\n"},
                                       {"TRACE /health", "Allow: GET, HEAD, OPTIONS\r\n"}}) {
    const std::string rejected = answer(std::string(request) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(status_of(rejected), 405) << request;
    EXPECT_NE(rejected.find(allow), std::string::npos) << rejected;
    EXPECT_NE(rejected.find("\"error\""), std::string::npos) << rejected;
  }
  EXPECT_EQ(status_of(answer("POST /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")), 404);
  EXPECT_EQ(status_of(answer("OPTIONS /health HTTP/1.1\r\nHost: localhost\r\n\r\n")), 204);
  EXPECT_EQ(status_of(answer("HEAD /v1/models/tiny HTTP/1.1\r\nHost: localhost\r\n\r\n")), 200);
}

TEST_F(HttpAccessTest, DescribesASingleModel) {
  start();
  EXPECT_EQ(get("/v1/models/tiny").json(), get("/v1/models").json()["data"][0]);
  EXPECT_EQ(get("/v1/models/tuned").json()["parent"], "tiny");
  EXPECT_EQ(get("/v1/models/%74iny").json()["id"], "tiny");
  const Answer missing = get("/v1/models/gpt-4");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.json()["error"]["code"], "model_not_found") << missing.text;
  EXPECT_EQ(get("/v1/models/").status, 404);
  EXPECT_EQ(get("/v1/models/" + std::string(8000, 'a')).status, 404);
}

TEST_F(HttpAccessTest, AmbiguousRequestsGet400AndCloseTheConnection) {
  start();
  const std::string body = R"({"prompt":"x","max_tokens":2})", size = std::to_string(body.size());
  const std::vector<std::string> all{"Content-Length: " + size + "\r\nContent-Length: " + size,
                                     "Content-Length: " + size + "\r\nContent-Length: 1",
                                     "Content-Length: " + size + "\r\nTransfer-Encoding: chunked",
                                     "Transfer-Encoding: gzip",
                                     "Content-Length: +" + size,
                                     "Content-Length: -1",
                                     "Content-Length : " + size,
                                     "X: a\r\n b",
                                     "X: a\nY: b",
                                     std::string("X: a\0b", 6)};
  for (const std::string& headers : all) {
    RawClient client(server->port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
                "\r\n\r\n" + body + "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string answer = client.read(5000);
    EXPECT_EQ(status_of(answer), 400) << headers << "\n" << answer;
    EXPECT_NE(answer.find("malformed or unsupported request"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("HTTP/1.1 ", 8), std::string::npos) << "the rest is not parsed as a request: " << answer;
    EXPECT_TRUE(client.closed()) << headers;
  }
  EXPECT_EQ(loop->state().finished, 0);
}

TEST_F(HttpAccessTest, ReadsConnectionAsOneListOfOptions) {
  start();
  for (const auto& [request, closes] : {std::pair<std::string, bool>{"1.1\r\nConnection: close, TE", true},
                                        {"1.1\r\nConnection: TE\r\nConnection: Close", true},
                                        {"1.1\r\nConnection: TE", false},
                                        {"1.1\r\nConnection: keep-alive , x", false},
                                        {"1.0\r\nConnection: keep-alive, TE", false},
                                        {"1.0\r\nConnection: TE", true}}) {
    RawClient client(server->port());
    client.send("GET /health HTTP/" + request + "\r\nHost: localhost\r\n\r\n");
    const std::string answer = client.read(2000, "\r\n\r\n");
    EXPECT_EQ(answer.find("Connection: close") != std::string::npos, closes) << request << "\n" << answer;
  }
}

// A client that stops within its body does not hold the server.
TEST_F(HttpAccessTest, StopsWhileABodyIsIncomplete) {
  start();
  RawClient client(server->port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 100\r\n\r\n{");
  while (server->connections() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "the limit of a body is 30 s";
}

TEST_F(HttpAccessTest, ReadsChunkedBodiesAndRejectsInvalidChunks) {
  start();
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt":"x","max_tokens":2})";  // 29 bytes
  RawClient good(server->port());
  good.send(head + "1D\r\n" + body + "\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(good.read(5000, "}}")), 200);
  for (const char* size : {"0x1D", "+1D", "-1D", " 1D", "1D ", "1Dx", "11111111111111111"}) {
    RawClient bad(server->port());
    bad.send(head + size + "\r\n" + body + "\r\n0\r\n\r\n");
    const std::string answer = bad.read(5000);
    EXPECT_TRUE(status_of(answer) == 400 || status_of(answer) == 413) << size << answer;
    EXPECT_TRUE(bad.closed()) << size;
  }
}

TEST_F(HttpAccessTest, UnreadBodyIsNotParsedAsTheNextRequest) {
  start();
  const std::string hidden = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const char* line : {"GET /health", "GET /nothing", "PUT /health"}) {
    RawClient client(server->port());
    client.send(std::string(line) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(hidden.size()) +
                "\r\n\r\n" + hidden);
    const std::string answer = client.read(5000);
    EXPECT_EQ(answer.find("HTTP/1.1 ", 8), std::string::npos) << line << answer;
    EXPECT_TRUE(client.closed()) << line;
  }
}

TEST_F(HttpAccessTest, StopClosesIdleConnectionsAtOnce) {
  start();
  RawClient idle(server->port()), half(server->port());
  half.send("GET /health HTTP/1.1\r\nHost: loc");
  ASSERT_TRUE(becomes_true([&] { return server->connections() == 2; }));
  server->stop();  // neither waits for the idle time, 75 s, nor for the rest of the request, 30 s
  EXPECT_EQ(server->connections(), 0);
  idle.read(5000);
  half.read(5000);
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(half.closed());
}

TEST_F(HttpAccessTest, ConnectionsOverTheLimitGetRetryAfter) {
  options.limits.connections = 1;
  start();
  RawClient first(server->port());
  ASSERT_TRUE(becomes_true([&] { return server->connections() == 1; }));
  RawClient second(server->port());
  const std::string answer = second.read(5000);
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
}

}  // namespace
}  // namespace mw::serve
