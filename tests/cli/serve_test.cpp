// SPDX-License-Identifier: GPL-3.0-or-later
// `serve` with a real model and port, stopped with Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include "core/base/json.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw {
namespace {

using testing::HasSubstr;

const std::string kExample = MW_RESOURCES "/examples/tiny-lora.json";

TEST(ServeCommandTest, MatchesGenerateAndStopsOnCtrlC) {
  const std::string question = "What is 2 plus 3?";
  const test::Result generated =
      test::meshwright({"generate", kExample, "--prompt", question, "--json", "--set", "sample.max_new_tokens=24"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  const std::string expected = Json::parse(generated.out)["text"].get<std::string>();
  ASSERT_FALSE(expected.empty());

  std::string answer, models, one_model;
  const test::Result served = test::meshwright({"serve", kExample, "--port", "0"}, [&](pid_t pid,
                                                                                       const std::string& line) {
    const size_t end = line.find("/v1 serves");
    if (end == std::string::npos) return;
    httplib::Client client(line.substr(0, end));
    client.set_read_timeout(60);
    const Json body{{"messages", {{{"role", "user"}, {"content", question}}}}, {"max_tokens", 24}, {"temperature", 0}};
    if (const auto r = client.Post("/v1/chat/completions", body.dump(), "application/json")) answer = r->body;
    if (const auto r = client.Get("/v1/models")) models = r->body;
    if (const auto r = client.Get("/v1/models/base-model")) one_model = r->body;
    ::kill(pid, SIGINT);
  });
  EXPECT_EQ(served.exit_code, 0) << served.err;
  const Json json = Json::parse(answer, nullptr, false);
  ASSERT_TRUE(json.contains("choices")) << answer << served.err;
  EXPECT_THAT(json["choices"][0]["message"]["content"].get<std::string>(), HasSubstr(expected));
  EXPECT_EQ(Json::parse(models)["data"][0]["id"], "base-model");
  EXPECT_EQ(Json::parse(one_model), Json::parse(models)["data"][0]);
  EXPECT_THAT(served.err, HasSubstr("stopped after 1 answer"));
}

TEST(ServeCommandTest, RejectsUnservableExperiments) {
  for (const auto& [set, error] : {std::pair("model.path=/nowhere", "/nowhere"),
                                   {"serve.max_model_len=100000", "context"},
                                   {"serve.adapters={\"x\":\"/nowhere\"}", "/nowhere"},
                                   {"serve.adapters={\"x\":1}", "serve.adapters"},
                                   {"serve.kv_gib=0.000001", "serve.kv_gib"}}) {
    const test::Result r = test::meshwright({"serve", kExample, "--port", "0", "--set", set});
    EXPECT_EQ(r.exit_code, 2) << set << r.err;
    EXPECT_THAT(r.err, HasSubstr(error)) << set;
    EXPECT_TRUE(r.out.empty()) << r.out;
  }
  EXPECT_EQ(test::meshwright({"serve", kExample, "--port", "99999"}).exit_code, 2);
  EXPECT_EQ(test::meshwright({"serve", kExample, "--port", "0", "--allow-host", "http://x"}).exit_code, 2);
  EXPECT_EQ(test::meshwright({"serve", kExample, "--port", "0", "--allow-origin", "*"}).exit_code, 2);
}

}  // namespace
}  // namespace mw
