// SPDX-License-Identifier: GPL-3.0-or-later
// A complete server on a free port with a scripted executor and the tokenizer of the shipped model.
#pragma once
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <thread>

#include "core/serve/http/http_server.h"
#include "tests/serve/scheduling/scripted_executor.h"

namespace mw::serve {

// cpp-httplib initialises static tables in the first request with guards that the thread sanitizer does not see. Runs
// one chunked request and joins its threads before other threads share these tables.
inline void initialise_http_tables() {
  static const bool made = [] {
    httplib::Server server;
    server.Get("/", [](const httplib::Request&, httplib::Response& r) {
      r.set_chunked_content_provider("text/plain", [](size_t, httplib::DataSink& sink) {
        sink.done();
        return true;
      });
    });
    const int port = server.bind_to_any_port("127.0.0.1");
    std::thread listening([&] { server.listen_after_bind(); });
    const bool answered = static_cast<bool>(httplib::Client("127.0.0.1", port).Get("/"));
    server.stop();
    listening.join();
    return answered;
  }();
  EXPECT_TRUE(made);
}

class ServerFixture : public testing::Test {
 protected:
  ServerFixture() {
    initialise_http_tables();
    set_script("The quick brown fox jumps. ");
  }
  ~ServerFixture() override {
    server.reset();
    loop.reset();
  }
  void set_script(const std::string& text) { executor.script = tokenizer->encode(text); }
  void start(SchedulerSettings settings = small_server(), int max_queued = 64) {
    loop = std::make_unique<ServingLoop>(settings, executor, max_queued);
    options.port = 0;
    server = std::make_unique<HttpServer>(options,
                                          HttpServedModel{.name = "tiny",
                                                          .adapters = {"tuned"},
                                                          .tokenizer = tokenizer.get(),
                                                          .chat = chat,
                                                          .max_model_len = settings.max_model_len},
                                          *loop);
  }
  struct Answer {
    int status = 0;
    httplib::Headers headers;
    std::string text;
    Json json() const { return Json::parse(text, nullptr, false); }
    // Data of the events of a stream, including [DONE].
    std::vector<std::string> events() const {
      std::vector<std::string> out;
      for (size_t at = 0, end; (end = text.find("\n\n", at)) != std::string::npos; at = end + 2)
        out.push_back(text.substr(at + 6, end - at - 6));
      return out;
    }
    std::string streamed_text() const {
      std::string out;
      for (const std::string& e : events()) {
        const Json j = Json::parse(e, nullptr, false);
        if (!j.is_object() || !j.contains("choices") || j["choices"].empty()) continue;
        const Json& c = j["choices"][0];
        out += c.contains("delta") ? c["delta"].value("content", "") : c.value("text", "");
      }
      return out;
    }
  };
  Answer post(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) {
    httplib::Client client("127.0.0.1", server->port());
    client.set_read_timeout(20);
    return of(client.Post(path, headers, body, "application/json"));
  }
  Answer complete(const Json& body) { return post("/v1/completions", body.dump()); }
  Answer get(const std::string& path, const httplib::Headers& headers = {}) {
    httplib::Client client("127.0.0.1", server->port());
    return of(client.Get(path, headers));
  }
  std::string script_text(int tokens) const {
    std::vector<int> ids;
    for (int i = 0; i < tokens; ++i) ids.push_back(executor.script[static_cast<size_t>(i) % executor.script.size()]);
    return tokenizer->decode(ids);
  }

  std::unique_ptr<data::Tokenizer> tokenizer = data::load_tokenizer(MW_RESOURCES "/base-model");
  data::ChatTemplate chat = options::ChatFormat::gemma3;
  ScriptedExecutor executor;
  HttpOptions options;
  std::unique_ptr<ServingLoop> loop;
  std::unique_ptr<HttpServer> server;

 private:
  static Answer of(const httplib::Result& r) {
    if (!r) return {.status = 0, .headers = {}, .text = httplib::to_string(r.error())};
    return {r->status, r->headers, r->body};
  }
};

}  // namespace mw::serve
