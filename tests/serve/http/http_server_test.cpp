// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI API as clients see it, over a socket.
#include <algorithm>
#include <future>
#include <mutex>

#include "core/data/tokenizer/chat_template.h"
#include "tests/serve/http/server_fixture.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;

class HttpServerTest : public ServerFixture {};

TEST_F(HttpServerTest, CompletionHasTextFinishReasonAndUsage) {
  start();
  const Answer a = complete({{"model", "tiny"}, {"prompt", "Once"}, {"max_tokens", 6}});
  ASSERT_EQ(a.status, 200) << a.text;
  const Json j = a.json();
  EXPECT_EQ(j["object"], "text_completion");
  EXPECT_EQ(j["model"], "tiny");
  EXPECT_EQ(j["choices"][0]["text"], script_text(6));
  EXPECT_EQ(j["choices"][0]["finish_reason"], "length");
  const int prompt = 1 + static_cast<int>(tokenizer->encode("Once").size());
  EXPECT_EQ(j["usage"]["prompt_tokens"], prompt) << "with bos";
  EXPECT_EQ(j["usage"]["completion_tokens"], 6);
  EXPECT_EQ(j["usage"]["total_tokens"], prompt + 6);
  EXPECT_EQ(complete({{"prompt", "Once"}}).json()["usage"]["completion_tokens"], 16) << "the default of the API";
}

TEST_F(HttpServerTest, StreamHasAChunkPerTokenThenUsageThenDone) {
  start();
  const Answer a = complete({{"model", "tiny"},
                             {"prompt", {5, 6, 7}},
                             {"max_tokens", 8},
                             {"stream", true},
                             {"stream_options", {{"include_usage", true}}}});
  ASSERT_EQ(a.status, 200);
  EXPECT_EQ(a.headers.find("Content-Type")->second, "text/event-stream");
  const auto events = a.events();
  ASSERT_EQ(events.size(), 10u) << a.text;
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(a.streamed_text(), script_text(8));
  for (size_t i = 0; i < 8; ++i) {
    const Json e = Json::parse(events[i]);
    EXPECT_EQ(e["choices"].size(), 1u);
    EXPECT_EQ(e["choices"][0]["finish_reason"], i == 7 ? Json("length") : Json());
  }
  const Json usage = Json::parse(events[8]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(usage["usage"]["completion_tokens"], 8);
  EXPECT_EQ(executor.last_request().prompt_ids, (std::vector{5, 6, 7}));
}

TEST_F(HttpServerTest, StreamHasNoUsageByDefault) {
  start();
  const Answer a = complete({{"prompt", "x"}, {"max_tokens", 3}, {"stream", true}});
  EXPECT_EQ(a.events().size(), 4u);
  EXPECT_EQ(a.text.find("usage"), std::string::npos);
}

TEST_F(HttpServerTest, ChatUsesTheTemplateOfTheModel) {
  start();
  const Json body{{"model", "tiny"},
                  {"messages",
                   {{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "Hi"}}}}}}},
                  {"max_completion_tokens", 5}};
  const Answer a = post("/v1/chat/completions", body.dump());
  ASSERT_EQ(a.status, 200) << a.text;
  EXPECT_EQ(a.json()["object"], "chat.completion");
  EXPECT_EQ(a.json()["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(a.json()["choices"][0]["message"]["content"], script_text(5));
  EXPECT_EQ(tokenizer->decode(executor.last_request().prompt_ids, data::Specials::keep),
            "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n");

  Json streaming = body;
  streaming["stream"] = true;
  const Answer s = post("/v1/chat/completions", streaming.dump());
  EXPECT_EQ(s.streamed_text(), script_text(5));
  EXPECT_EQ(Json::parse(s.events()[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_FALSE(Json::parse(s.events()[1])["choices"][0]["delta"].contains("role"));
}

TEST_F(HttpServerTest, StopsAtEndOfTextUnlessIgnored) {
  executor.stop_after = 4;
  start();
  const Answer a = complete({{"prompt", "x"}, {"max_tokens", 10}});
  EXPECT_EQ(a.json()["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(a.json()["choices"][0]["text"], script_text(4));
  EXPECT_EQ(a.json()["usage"]["completion_tokens"], 4);
  EXPECT_EQ(executor.last_request().sampling.stop_ids,
            (std::vector{tokenizer->eos(), tokenizer->find("<end_of_turn>")}));
  const Answer b = complete({{"prompt", "x"}, {"max_tokens", 10}, {"ignore_eos", true}});
  EXPECT_EQ(b.json()["usage"]["completion_tokens"], 10);
  complete({{"prompt", "x"}, {"ignore_eos", true}, {"stop_token_ids", {9}}});
  EXPECT_EQ(executor.last_request().sampling.stop_ids, std::vector{9});
}

TEST_F(HttpServerTest, StopStringEndsTheTextAndReleasesBlocks) {
  executor.step_time = 1ms;
  start();
  for (const bool stream : {false, true}) {
    const Answer a = complete({{"prompt", "x"}, {"max_tokens", 2000}, {"stop", {"zzz", "fox j"}}, {"stream", stream}});
    EXPECT_EQ(stream ? a.streamed_text() : a.json()["choices"][0]["text"].get<std::string>(), "The quick brown ");
    EXPECT_NE(a.text.find(R"("finish_reason":"stop")"), std::string::npos);
    EXPECT_TRUE(becomes_true([&] { return loop->state().scheduler.running == 0; }));
    EXPECT_EQ(executor.open(), 0u);
  }
}

TEST_F(HttpServerTest, DoesNotSplitCharacters) {
  set_script("Grüße 🦊 日本");
  start();
  const int all = static_cast<int>(executor.script.size());
  for (const auto& [tokens, text] : {std::pair(all, "Grüße 🦊 日本"),
                                     {all - 1, "Grüße 🦊 日\uFFFD\uFFFD"},
                                     {6, "Grüß"},
                                     {5, "Grü\uFFFD"},
                                     {4, "Grü"}}) {
    const Answer a = complete({{"prompt", "x"}, {"max_tokens", tokens}, {"stream", true}});
    for (const std::string& e : a.events()) EXPECT_EQ(valid_utf8(e), e);
    EXPECT_EQ(a.streamed_text(), text);
    EXPECT_EQ(a.events().size(), static_cast<size_t>(tokens) + 1) << "one chunk per token, even without text";
    const Answer whole = complete({{"prompt", "x"}, {"max_tokens", tokens}});
    EXPECT_EQ(whole.json()["choices"][0]["text"], text);
  }
}

TEST_F(HttpServerTest, PassesSamplingOptionsOn) {
  start();
  complete({{"prompt", "x"}, {"temperature", 0.5}, {"top_p", 0.9}, {"top_k", 40}, {"seed", 7}, {"model", "tuned"}});
  GenerationRequest p = executor.last_request();
  EXPECT_FLOAT_EQ(p.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(p.sampling.top_p, 0.9f);
  EXPECT_EQ(p.sampling.top_k, 40);
  EXPECT_EQ(p.sampling.seed, 7u);
  EXPECT_EQ(p.adapter, "tuned");
  complete({{"prompt", "x"}});
  p = executor.last_request();
  EXPECT_FLOAT_EQ(p.sampling.temperature, 1);
  EXPECT_EQ(p.adapter, "");
  const std::uint64_t seed = p.sampling.seed;
  complete({{"prompt", "x"}});
  EXPECT_NE(executor.last_request().sampling.seed, seed) << "without a seed, every request has a different one";
}

TEST_F(HttpServerTest, ServesModelsHealthVersionAndMetrics) {
  start();
  const Json models = get("/v1/models").json();
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], 2048);
  EXPECT_EQ(models["data"][1]["id"], "tuned");
  EXPECT_EQ(models["data"][1]["parent"], "tiny");
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/version").json()["version"], MW_VERSION);
  complete({{"prompt", {1, 2, 3}}, {"max_tokens", 6}});
  EXPECT_EQ(get("/requests").json(), (Json{{"requests", Json::array()}}));
  const std::string metrics = get("/metrics").text;
  for (const char* line :
       {"vllm:num_requests_running{model_name=\"tiny\"} 0\n", "vllm:num_requests_waiting{model_name=\"tiny\"} 0\n",
        "vllm:kv_cache_usage_perc{model_name=\"tiny\"} 0\n", "vllm:gpu_cache_usage_perc{model_name=\"tiny\"} 0\n",
        "vllm:prompt_tokens_total{model_name=\"tiny\"} 3\n", "vllm:generation_tokens_total{model_name=\"tiny\"} 6\n",
        "vllm:request_success_total{finished_reason=\"length\",model_name=\"tiny\"} 1\n",
        "vllm:time_to_first_token_seconds_count{model_name=\"tiny\"} 1\n",
        "vllm:time_per_output_token_seconds_count{model_name=\"tiny\"} 5\n",
        "vllm:e2e_request_latency_seconds_bucket{le=\"+Inf\",model_name=\"tiny\"} 1\n",
        "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
}

TEST_F(HttpServerTest, InvalidRequestsNameTheParameter) {
  executor.bad_token = 1999;
  start();
  struct Case {
    const char *body, *param;
    int status = 400;
  };
  const std::string bad_utf8 = "{\"prompt\": \"a\xff\xfe\"}", half_utf8 = "{\"prompt\": \"a\xf0\x9f\"}";
  for (const Case& c : std::vector<Case>{{"", ""},
                                         {"{", ""},
                                         {"[]", ""},
                                         {"{}", "prompt"},
                                         {"{\"prompt\": 1}", "prompt"},
                                         {"{\"prompt\": []}", "prompt"},
                                         {"{\"prompt\": [\"a\", \"b\"]}", "prompt"},
                                         {"{\"prompt\": [1, -2]}", "prompt"},
                                         {"{\"prompt\": [1, 2.5]}", "prompt"},
                                         {"{\"prompt\": [1, 99999999999999]}", "prompt"},
                                         {"{\"prompt\": [1, 2048]}", "prompt"},
                                         {"{\"prompt\": [1999]}", "prompt"},
                                         {"{\"prompt\": \"a\", \"prompt\": \"b\"}", ""},
                                         {"{\"prompt\": \"a\", \"n\": 2}", "n"},
                                         {"{\"prompt\": \"a\", \"logprobs\": 1}", "logprobs"},
                                         {"{\"prompt\": \"a\", \"echo\": true}", "echo"},
                                         {"{\"prompt\": \"a\", \"max_tokens\": 0}", "max_tokens"},
                                         {"{\"prompt\": \"a\", \"max_tokens\": -1}", "max_tokens"},
                                         {"{\"prompt\": \"a\", \"max_tokens\": 1e30}", "max_tokens"},
                                         {"{\"prompt\": \"a\", \"max_tokens\": 2147483647}", ""},
                                         {"{\"prompt\": \"a\", \"max_tokens\": \"5\"}", "max_tokens"},
                                         {"{\"prompt\": \"a\", \"temperature\": -1}", "temperature"},
                                         {"{\"prompt\": \"a\", \"temperature\": \"hot\"}", "temperature"},
                                         {"{\"prompt\": \"a\", \"top_p\": 0}", "top_p"},
                                         {"{\"prompt\": \"a\", \"top_k\": 1.5}", "top_k"},
                                         {"{\"prompt\": \"a\", \"stop\": \"\"}", "stop"},
                                         {"{\"prompt\": \"a\", \"stop\": [1]}", "stop"},
                                         {"{\"prompt\": \"a\", \"stream\": \"yes\"}", "stream"},
                                         {"{\"prompt\": \"a\", \"stream_options\": 1}", "stream_options"},
                                         {"{\"prompt\": \"a\", \"response_format\": {\"type\": 1}}", "response_format"},
                                         {"{\"prompt\": \"a\", \"frequency_penalty\": 1}", "frequency_penalty"},
                                         {"{\"prompt\": \"a\", \"model\": \"other\"}", "", 404},
                                         {bad_utf8.c_str(), ""},
                                         {half_utf8.c_str(), ""}}) {
    const Answer a = post("/v1/completions", c.body);
    EXPECT_EQ(a.status, c.status) << c.body << "\n" << a.text;
    const Json error = a.json().value("error", Json::object());
    EXPECT_EQ(error.value("param", Json()), *c.param ? Json(c.param) : Json()) << c.body << "\n" << a.text;
    EXPECT_FALSE(error.value("message", "").empty()) << c.body;
    EXPECT_EQ(error.value("type", ""), "invalid_request_error") << c.body;
  }
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a", "n": 2})")
                .json()["error"]["message"]
                .get<std::string>()
                .find("n must be 1"),
            0u);
  for (const char* body : {"{}", "{\"messages\": []}", "{\"messages\": [{\"role\": \"user\"}, 5]}",
                           "{\"messages\": [{\"role\": \"robot\", \"content\": \"a\"}]}",
                           "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
                           "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
                           "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [{}]}"})
    EXPECT_EQ(post("/v1/chat/completions", body).status, 400) << body;
  const std::string deep(100000, '[');
  EXPECT_EQ(post("/v1/completions", deep).status, 400);
  EXPECT_EQ(get("/v1/nothing").status, 404);
  EXPECT_TRUE(get("/v1/nothing").json().contains("error"));
  EXPECT_EQ(loop->state().scheduler.waiting + loop->state().scheduler.running, 0);
  EXPECT_EQ(complete({{"prompt", "still there"}}).status, 200);
}

TEST_F(HttpServerTest, PassesToATemplateOnlyWhatItUses) {
  chat = data::ChatTemplate(
      std::make_shared<const data::FolderTemplate>(
          "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.tool_calls[0].function.arguments.a if m.tool_calls "
          "}}{% endfor %}{% if tools %}"
          " You may call one of these {{ tools | length }} tools.{% endif %}{% if enable_thinking %} Think first.{% "
          "endif %}",
          "", Json::object(), "t.jinja"),
      options::ChatFormat::gemma3);
  start();
  const Json messages{{{"role", "user"}, {"content", "Hi"}}};
  const auto ask = [&](Json body) {
    if (!body.contains("messages")) body["messages"] = messages;
    return post("/v1/chat/completions", body.dump());
  };
  const auto prompt_tokens = [&](const Json& body) {
    const Answer a = ask(body);
    EXPECT_EQ(a.status, 200) << a.text;
    return a.json()["usage"]["prompt_tokens"].get<int>();
  };
  const Json tools{{{"type", "function"}, {"function", {{"name", "sum"}}}}}, thinks{{"enable_thinking", true}};
  const int plain = prompt_tokens(Json::object());
  EXPECT_GT(prompt_tokens({{"tools", tools}}), plain);
  EXPECT_EQ(prompt_tokens({{"tools", tools}, {"tool_choice", "none"}}), plain);
  EXPECT_GT(prompt_tokens({{"chat_template_kwargs", thinks}}), plain);
  EXPECT_EQ(prompt_tokens({{"chat_template_kwargs", {{"enable_thinking", false}}}}), plain);
  const auto called = [&](const std::string& arguments) {
    const Json call{{"type", "function"}, {"function", {{"name", "sum"}, {"arguments", arguments}}}};
    return Json{{"messages",
                 {messages[0], {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}}}}};
  };
  EXPECT_GT(prompt_tokens(called("{\"a\": \"a number of many words\"}")), prompt_tokens(called("{\"a\": 1}")));
  EXPECT_EQ(ask(called("{\"a\": ")).status, 400);
  const auto expect_refused = [&](const Json& body, const std::string& place, const std::string& reason) {
    const Answer a = ask(body);
    EXPECT_EQ(a.status, 400) << a.text;
    const Json error = a.json().value("error", Json::object());
    EXPECT_EQ(error.value("param", ""), place);
    EXPECT_NE(error.value("message", "").find(reason), std::string::npos) << a.text;
  };
  expect_refused({{"tools", tools}, {"tool_choice", "required"}}, "tool_choice", "cannot be forced");
  expect_refused({{"chat_template_kwargs", {{"reasoning", "high"}}}}, "chat_template_kwargs.reasoning",
                 "t.jinja does not use reasoning");
  expect_refused({{"chat_template_kwargs", {{"messages", 1}}}}, "chat_template_kwargs.messages", "sets this variable");
  expect_refused({{"messages", {{{"role", "tool"}, {"content", "2"}}}}}, "messages[0].role", "does not use tool");
  server.reset();
  loop.reset();
  chat = options::ChatFormat::gemma3;
  start();
  expect_refused({{"tools", tools}}, "tools", "the built-in chat template gemma3 does not use tools");
  expect_refused({{"chat_template_kwargs", thinks}}, "chat_template_kwargs.enable_thinking", "gemma3 does not use");
}

TEST_F(HttpServerTest, RejectsRequestsBeyondTheContext) {
  start(small_server(512, 100));
  const std::vector<int> prompt(96, 5);
  EXPECT_EQ(complete({{"prompt", prompt}, {"max_tokens", 4}}).status, 200);
  for (const Answer& a :
       {complete({{"prompt", prompt}, {"max_tokens", 5}}), complete({{"prompt", std::vector<int>(101, 5)}})}) {
    EXPECT_EQ(a.status, 400);
    EXPECT_EQ(a.json()["error"]["code"], "context_length_exceeded") << a.text;
    EXPECT_NE(a.json()["error"]["message"].get<std::string>().find("100"), std::string::npos);
  }
  const Json chat_body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  const Answer a = post("/v1/chat/completions", chat_body.dump());
  EXPECT_EQ(a.json()["usage"]["total_tokens"], 100) << "a chat may fill the context";
}

TEST_F(HttpServerTest, FullQueueGives429WithRetryAfter) {
  executor.step_time = 5ms;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 1;
  start(settings, 1);
  std::vector<std::future<Answer>> asked;
  for (int i = 0; i < 8; ++i)
    asked.push_back(std::async(std::launch::async, [&] { return complete({{"prompt", "x"}, {"max_tokens", 40}}); }));
  int served = 0, refused = 0;
  for (auto& f : asked) {
    const Answer a = f.get();
    served += a.status == 200;
    refused += a.status == 429;
    if (a.status != 429) continue;
    EXPECT_EQ(a.headers.find("Retry-After")->second, "1");
    EXPECT_EQ(a.json()["error"]["type"], "rate_limit_error");
  }
  EXPECT_GE(served, 2);
  EXPECT_GE(refused, 1);
  EXPECT_EQ(served + refused, 8);
}

TEST_F(HttpServerTest, RequiresTheKeyUnderV1) {
  options.api_key = "secret";
  start();
  EXPECT_EQ(get("/v1/models").status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer wrong"}}).status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer secretsecret"}}).status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(complete({{"prompt", "x"}}).json()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "x"})", {{"Authorization", "Bearer secret"}}).status, 200);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(HttpServerTest, AcceptsOnlyJsonBodies) {
  start();
  httplib::Client client("127.0.0.1", server->port());
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                           "application/jsonx", "application/json, text/plain"}) {
    const auto r = client.Post("/v1/completions", R"({"prompt": "x"})", type);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->status, 415) << type;
  }
  for (const char* type : {"APPLICATION/JSON", "Application/Json ;charset=\"utf-8\""}) {
    const auto r = client.Post("/v1/completions", R"({"prompt": "x"})", type);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->status, 200) << type;
  }
}

TEST_F(HttpServerTest, EngineFailureGives500AndTheServerContinues) {
  start();
  executor.failing = true;
  EXPECT_EQ(complete({{"prompt", "x"}}).status, 500);
  const Answer stream = complete({{"prompt", "x"}, {"stream", true}});
  EXPECT_NE(stream.text.find("on fire"), std::string::npos);
  EXPECT_EQ(stream.events().back(), "[DONE]");
  executor.failing = false;
  EXPECT_EQ(complete({{"prompt", "x"}}).status, 200);
}

TEST_F(HttpServerTest, StopFinishesRunningRequestsAndRejectsNewOnes) {
  executor.step_time = 5ms;
  start();
  auto running = std::async(std::launch::async, [&] {
    return complete({{"prompt", "x"}, {"max_tokens", 80}, {"stream", true}});
  });
  ASSERT_TRUE(becomes_true([&] { return loop->state().scheduler.running == 1; }));
  auto stopping = std::async(std::launch::async, [&] { server->stop(); });
  ASSERT_TRUE(becomes_true([&] { return get("/health").status == 503; }));
  const Answer refused = complete({{"prompt", "x"}});
  EXPECT_EQ(refused.status, 503) << refused.text;
  const Answer a = running.get();
  EXPECT_EQ(a.streamed_text(), script_text(80));
  EXPECT_EQ(a.events().back(), "[DONE]");
  stopping.get();
  EXPECT_EQ(get("/health").status, 0) << "the port is closed";
}

TEST_F(HttpServerTest, StopCancelsRunningRequestsAndLeavesTheLoop) {
  executor.step_time = 5ms;
  start();
  auto running = std::async(std::launch::async, [&] { return complete({{"prompt", "x"}, {"max_tokens", 2000}}); });
  ASSERT_TRUE(becomes_true([&] { return loop->state().scheduler.running == 1; }));
  server->stop(StopMode::cancel);
  EXPECT_EQ(running.get().status, 503);
  EXPECT_TRUE(becomes_true([&] { return loop->state().cancelled == 1; }));
  std::promise<FinishReason> ended;
  loop->submit({.prompt_ids = {5}, .sampling = {.max_new_tokens = 2}}, [&](RequestId, const TokenEvent& event) {
    if (event.is_last()) ended.set_value(event.finish_reason);
  });
  EXPECT_EQ(ended.get_future().get(), FinishReason::length);
}

TEST_F(HttpServerTest, ResponsesAreReported) {
  std::mutex mutex;
  std::vector<std::string> seen;
  options.on_response = [&](const std::string& method, const std::string& path, int status) {
    const std::lock_guard lock(mutex);
    seen.push_back(method + " " + path + " " + std::to_string(status));
  };
  start();
  complete({{"prompt", "x"}, {"max_tokens", 2}, {"stream", true}});
  get("/nowhere");
  server->stop();
  std::sort(seen.begin(), seen.end());  // the threads of two connections report in any order
  EXPECT_EQ(seen, (std::vector<std::string>{"GET /nowhere 404", "POST /v1/completions 200"}));
}

TEST_F(HttpServerTest, PortInUseIsAnError) {
  start();
  HttpOptions same = options;
  same.port = server->port();
  try {
    const HttpServer second(same, {.name = "x", .tokenizer = tokenizer.get()}, *loop);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "LISTEN");
  }
}

}  // namespace
}  // namespace mw::serve
