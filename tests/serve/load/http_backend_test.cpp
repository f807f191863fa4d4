// SPDX-License-Identifier: GPL-3.0-or-later
// Runs loads against well-behaved and misbehaving servers.
#include "core/serve/load/http_backend.h"

#include <set>

#include "core/serve/http/http_connections.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/metrics_poller.h"
#include "core/serve/load/stream_client.h"
#include "tests/serve/http/server_fixture.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;

Load load_of(int requests, double rate, int input_len = 20, int output_len = 8) {
  options::LoadSettings s;
  s.request_rate = rate;
  s.arrival = options::Arrival::constant;
  s.num_prompts = requests;
  s.input_len = input_len, s.output_len = output_len;
  return make_load(s);
}

TEST(SseReaderTest, ReassemblesEventsFromArbitraryPieces) {
  const std::string stream =
      ": ping\n\ndata: {\"a\":1}\r\n\r\nevent: x\ndata:two\ndata: lines\n\ndata: [DONE]\n\ndata: cut";
  for (size_t step = 1; step < stream.size(); ++step) {
    SseReader reader;
    std::vector<std::string> all;
    for (size_t at = 0; at < stream.size(); at += step)
      for (std::string& e : reader.feed(std::string_view(stream).substr(at, step))) all.push_back(std::move(e));
    EXPECT_EQ(all, (std::vector<std::string>{"{\"a\":1}", "two\nlines", "[DONE]"})) << step;
  }
}

TEST(PrometheusTest, SumsSeriesOfTheSameMetric) {
  const auto m = sum_prometheus_metrics(
      "# HELP x y\nvllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 3.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"q\\\"}\"} 4\nplain 1.5e3 1690000000\nbroken{a=\"b\" 7\nnan "
      "NaN\n");
  EXPECT_EQ(m.at("vllm:num_requests_running"), 7);
  EXPECT_EQ(m.at("plain"), 1500);
}

class OurServerTest : public ServerFixture {
 protected:
  std::unique_ptr<LoadBackend> backend(int vocab = 2000) {
    HttpLoadOptions o;
    o.target.url = server->address() + "/v1/";
    o.first_id = vocab > 0 ? 300 : 0, o.vocab = vocab;
    return make_http_backend(o);
  }
};

TEST_F(OurServerTest, SendsRequestsAtTheirTimes) {
  executor.step_time = 3ms;
  start();
  const Load load = load_of(40, 80);
  long last = 0;
  const auto progress = [&](long done, long total) {
    EXPECT_EQ(total, 40);
    EXPECT_GE(done, last);
    last = done;
  };
  const LoadResult result = backend()->run(load, progress, {});
  EXPECT_EQ(last, 40);
  ASSERT_EQ(result.requests.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    const formats::RequestResult& r = result.requests[i];
    EXPECT_TRUE(r.completed()) << r.error;
    EXPECT_EQ(r.prompt_tokens, 20);
    EXPECT_EQ(r.output_tokens, 8);
    EXPECT_EQ(r.gaps_ms.size(), 7u);
    EXPECT_DOUBLE_EQ(r.intended_s, load.requests[i].at_s);
    EXPECT_GE(r.sent_s, r.intended_s);
    EXPECT_GE(r.first_token_s - r.sent_s, 0.003);
    EXPECT_GE(r.end_s - r.sent_s, 8 * 0.003);  // may be late on a busy machine, but never early
  }
  EXPECT_GE(result.duration_s, 39 / 80.0) << "the last request is sent at its time";
  EXPECT_GE(result.timeline.size(), 1u) << "HttpServer has vLLM's metrics";
  EXPECT_GE(result.prefix_hits, 0);
  EXPECT_EQ(executor.open(), 0u);
}

TEST_F(OurServerTest, SendsThePromptsOfTheLoad) {
  start();
  backend()->run(load_of(1, 10), {}, {});
  EXPECT_EQ(executor.last_request().prompt_ids, prompt_ids(load_of(1, 10).requests[0], 300, 2000));
  EXPECT_TRUE(executor.last_request().sampling.stop_ids.empty()) << "ignore_eos";
}

TEST_F(OurServerTest, WithoutTokenizerSendsWordsOfTheRightLengthAndWarns) {
  start();
  const LoadResult result = backend(0)->run(load_of(20, 200, 300, 2), {}, {});
  ASSERT_EQ(result.requests.size(), 20u);
  double sum = 0;
  std::set<int> lengths;
  for (const auto& r : result.requests) sum += r.prompt_tokens, lengths.insert(r.prompt_tokens);
  EXPECT_NEAR(sum / 20, 300, 15);
  EXPECT_TRUE(std::any_of(result.warnings.begin(), result.warnings.end(),
                          [](const std::string& w) { return w.find("English words") != std::string::npos; }));
}

TEST_F(OurServerTest, ClosedLoopKeepsItsConcurrency) {
  executor.step_time = 1ms;
  start();
  options::LoadSettings s;
  s.arrival = options::Arrival::closed;
  s.concurrency = 3, s.num_prompts = 15, s.input_len = 10, s.output_len = 10;
  const LoadResult result = backend()->run(make_load(s), {}, {});
  EXPECT_EQ(result.requests.size(), 15u);
  EXPECT_LE(executor.largest_step(), 3u);
  for (const auto& r : result.requests) EXPECT_EQ(r.intended_s, r.sent_s);
}

TEST_F(OurServerTest, RejectedRequestsFailWithTheirReason) {
  executor.step_time = 5ms;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 1;
  start(settings, 1);
  options::LoadSettings s;
  s.arrival = options::Arrival::burst;
  s.num_prompts = 12, s.input_len = 8, s.output_len = 20;
  const LoadResult result = backend()->run(make_load(s), {}, {});
  ASSERT_EQ(result.requests.size(), 12u);
  long failed = 0;
  for (const auto& r : result.requests) {
    if (r.completed()) continue;
    ++failed;
    EXPECT_TRUE(r.error.starts_with("HTTP 429")) << r.error;
  }
  EXPECT_GE(failed, 6);
  EXPECT_LE(failed, 10);
  EXPECT_FALSE(result.warnings.empty());
}

TEST_F(OurServerTest, WarnsIfTheClientSendsLate) {
  executor.step_time = 10ms;
  start();
  HttpLoadOptions o;
  o.target.url = server->address();
  o.vocab = 2000, o.first_id = 300, o.max_in_flight = 1;
  const LoadResult result = make_http_backend(o)->run(load_of(10, 50), {}, {});
  EXPECT_TRUE(std::any_of(result.warnings.begin(), result.warnings.end(),
                          [](const std::string& w) { return w.find("sent requests late") != std::string::npos; }));
  EXPECT_GT(result.requests.back().sent_s - result.requests.back().intended_s, 0.1);
}

TEST_F(OurServerTest, StopKeepsCompletedRequests) {
  executor.step_time = 5ms;
  start();
  std::stop_source stop;
  const auto begun = std::chrono::steady_clock::now();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(400ms);
    stop.request_stop();
  });
  const LoadResult result = backend()->run(load_of(500, 20, 20, 8), {}, stop.get_token());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  EXPECT_GE(result.requests.size(), 2u);
  EXPECT_LT(result.requests.size(), 30u);
  for (const auto& r : result.requests) EXPECT_TRUE(r.completed()) << r.error;
  EXPECT_TRUE(becomes_true([&] { return executor.open() == 0; })) << "requests in flight are cancelled";
}

TEST_F(OurServerTest, RejectsMissingModelMissingServerAndInvalidUrls) {
  start();
  HttpLoadOptions o;
  o.target = {.url = server->address(), .model = "gpt-4"};
  EXPECT_THROW(make_http_backend(o), Error);
  server.reset();
  o.target.model.clear();
  try {
    make_http_backend(o);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "SERVER");
  }
  for (const char* url : {"", "localhost:8000", "ftp://x", "http://"}) {
    o.target.url = url;
    EXPECT_THROW(make_http_backend(o), Error) << url;
  }
}

// A server that answers every completion request with the handler of a test.
class BadServer {
 public:
  using Handler = std::function<void(HttpResponse&)>;
  explicit BadServer(Handler complete)
      : http_({}, {.respond_before_body =
                       [](const HttpRequest& request, HttpResponse& r) {
                         if (request.path == "/v1/completions") return false;
                         r.status = request.path == "/v1/models" ? 200 : 404;
                         r.set_body(R"({"data":[{"id":"bad"}]})", "application/json");
                         return true;
                       },
                   .respond = [complete](const HttpRequest&, HttpResponse& r) { complete(r); },
                   .on_response = {}}),
        port_(http_.start("127.0.0.1", 0)) {}
  LoadResult run(int requests, double timeout_s = 5, int output_len = 8) const {
    HttpLoadOptions o;
    o.target = {.url = "http://127.0.0.1:" + std::to_string(port_), .timeout_s = timeout_s};
    o.first_id = 10, o.vocab = 1000;
    return make_http_backend(o)->run(load_of(requests, 200, 20, output_len), {}, {});
  }

 private:
  HttpConnections http_;
  int port_;
};

std::string piece(const std::string& text, bool last = false) {
  const Json choice{{"index", 0}, {"text", text}, {"finish_reason", last ? Json("length") : Json()}};
  return "data: " + Json{{"choices", Json::array({choice})}}.dump() + "\n\n";
}
std::string pieces(int n, const std::string& text = "ab ") {
  std::string out;
  for (int i = 0; i < n; ++i) out += piece(text, i + 1 == n);
  return out;
}
std::string usage(int prompt, int completion) {
  return "data: " +
         Json{{"choices", Json::array()}, {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", completion}}}}
             .dump() +
         "\n\n";
}
const std::string kDone = "data: [DONE]\n\n";

BadServer::Handler stream(const std::string& body) {
  return [body](HttpResponse& r) { r.set_body(body, "text/event-stream"); };
}

struct Misbehaviour {
  std::string name, body, error;  // error: of each request; empty: it completes
  std::string warning{};
};

class MisbehavingServerTest : public testing::TestWithParam<Misbehaviour> {};

TEST_P(MisbehavingServerTest, IsReportedAsErrorOrWarning) {
  const Misbehaviour& m = GetParam();
  const BadServer server(stream(m.body));
  const LoadResult result = server.run(5);
  ASSERT_EQ(result.requests.size(), 5u);
  for (const formats::RequestResult& r : result.requests) {
    EXPECT_EQ(r.completed(), m.error.empty()) << r.error;
    EXPECT_NE(r.error.find(m.error), std::string::npos) << r.error;
    EXPECT_TRUE(r.completed() || r.output_tokens == 0) << "a failed request has no tokens";
  }
  std::string warnings;
  for (const std::string& w : result.warnings) warnings += w + "\n";
  EXPECT_NE(warnings.find(m.warning), std::string::npos) << warnings;
  const formats::BenchPoint point = summarise(load_of(5, 200), result, {});
  EXPECT_EQ(point.completed, m.error.empty() ? 5 : 0);
  EXPECT_EQ(point.failed, m.error.empty() ? 0 : 5);
}

INSTANTIATE_TEST_SUITE_P(
    All, MisbehavingServerTest,
    testing::Values(Misbehaviour{"good", pieces(8) + usage(20, 8) + kDone, ""},
                    Misbehaviour{"reason_in_a_piece_of_its_own", pieces(8) + piece("", true) + usage(20, 8) + kDone,
                                 ""},
                    Misbehaviour{"cut_stream", pieces(8).substr(0, 200), "ended early"},
                    Misbehaviour{"no_token", usage(20, 8) + kDone, "no tokens"},
                    Misbehaviour{"empty_body", "", "ended early"},
                    Misbehaviour{"more_than_asked", pieces(8) + usage(20, 800) + kDone, "at most 8 were requested"},
                    Misbehaviour{"endless", pieces(500) + kDone, "does not stop"},
                    Misbehaviour{"fewer_than_sent", pieces(8) + usage(20, 3) + kDone, "pieces of text"},
                    Misbehaviour{"tokens_without_text", piece("a", true) + usage(20, 8) + kDone, "bytes of text"},
                    Misbehaviour{"prompt_cut", pieces(8) + usage(5, 8) + kDone, "prompt of 20"},
                    Misbehaviour{"error_in_the_stream",
                                 pieces(3) + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n", "out of memory"},
                    Misbehaviour{"no_json", "data: hello\n\n", "not JSON"},
                    Misbehaviour{"html", "<html>welcome</html>", "ended early"},
                    Misbehaviour{"no_usage", pieces(8) + kDone, "", "did not count"},
                    Misbehaviour{"shorter_than_asked", pieces(4) + usage(20, 4) + kDone, "", "too short"},
                    Misbehaviour{"several_tokens_a_piece", pieces(4) + usage(20, 8) + kDone, "", "fewer pieces"}),
    [](const auto& row) { return row.param.name; });

TEST(BadServerTest, ReportsTheMessageOfAnHttpError) {
  const BadServer server([](HttpResponse& r) {
    r.status = 500;
    r.set_body(R"({"error":{"message":"engine died"}})", "application/json");
  });
  for (const auto& r : server.run(5).requests) EXPECT_EQ(r.error, "HTTP 500: engine died");
}

TEST(BadServerTest, TimesOutIfTheServerHangs) {
  std::atomic<bool> over{false};
  for (const bool headers_first : {false, true}) {
    over = false;
    const BadServer server([&](HttpResponse& r) {
      const auto hang = [&] {
        for (int i = 0; i < 500 && !over; ++i) std::this_thread::sleep_for(10ms);
      };
      if (!headers_first) return hang();
      r.next_piece = [hang, is_first = true](std::string& out) mutable {
        if (!std::exchange(is_first, false)) {
          hang();
          return HttpResponse::Piece::failed;
        }
        out = piece("a");
        return HttpResponse::Piece::more;
      };
    });
    const auto begun = std::chrono::steady_clock::now();
    const LoadResult result = server.run(3, 0.3);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
    over = true;
    for (const auto& r : result.requests) EXPECT_EQ(r.error, "not finished within 0.3 s");
  }
}

TEST(BadServerTest, TimesOutIfTheStreamNeverEnds) {
  const BadServer server([](HttpResponse& r) {
    r.next_piece = [](std::string& out) {
      std::this_thread::sleep_for(20ms);
      out = ": ping\n\n";
      return HttpResponse::Piece::more;
    };
  });
  for (const auto& r : server.run(3, 0.4).requests) EXPECT_EQ(r.error, "not finished within 0.4 s");
}

TEST(BadServerTest, ReportsAClosedConnection) {
  const BadServer server([](HttpResponse& r) {
    r.next_piece = [is_first = true](std::string& out) mutable {
      if (!std::exchange(is_first, false)) return HttpResponse::Piece::failed;
      out = pieces(3).substr(0, 100);
      return HttpResponse::Piece::more;
    };
  });
  for (const auto& r : server.run(4).requests) EXPECT_FALSE(r.completed());
}

}  // namespace
}  // namespace mw::serve
