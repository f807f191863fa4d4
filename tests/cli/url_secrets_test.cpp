// SPDX-License-Identifier: GPL-3.0-or-later
// User and password of a URL reach only the server: not the run store, files or printed text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "hunter2secret";

// An OpenAI-compatible server that requires a user and a password.
class GuardedServer {
 public:
  GuardedServer() {
    http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      using R = httplib::Server::HandlerResponse;
      const auto expected = httplib::make_basic_authentication_header("me@work", kSecret).second;
      if (request.get_header_value("Authorization") == expected) return R::Unhandled;
      ++refused_;
      response.status = 401;
      return R::Handled;
    });
    http_.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"data":[{"id":"guarded"}]})", "application/json");
    });
    http_.Post("/v1/completions", [](const httplib::Request& request, httplib::Response& response) {
      const Json asked = parse_json(request.body, "request");
      const long tokens = asked["max_tokens"].get<long>();
      std::string text;
      for (long i = 1; i <= tokens; ++i)
        text += "data: " +
                Json{{"choices",
                      {{{"index", 0}, {"text", "a "}, {"finish_reason", i == tokens ? Json("length") : Json()}}}}}
                    .dump() +
                "\n\n";
      const Json usage{{"prompt_tokens", asked["prompt"].size()}, {"completion_tokens", tokens}};
      text += "data: " + Json{{"choices", Json::array()}, {"usage", usage}}.dump() + "\n\ndata: [DONE]\n\n";
      response.set_content(text, "text/event-stream");
    });
    port_ = http_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { http_.listen_after_bind(); });
  }
  ~GuardedServer() {
    http_.stop();
    thread_.join();
  }
  std::string url(const std::string& user_info) const {
    return "http://" + user_info + "127.0.0.1:" + std::to_string(port_);
  }
  int refused() const { return refused_; }

 private:
  httplib::Server http_;
  std::atomic<int> refused_{0};
  int port_ = 0;
  std::thread thread_;
};

void expect_no_secret_in(const fs::path& folder) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) {
      ++files;
      EXPECT_EQ(read_file(entry.path()).find(kSecret), std::string::npos) << entry.path();
    }
  EXPECT_GT(files, 0) << folder;
}

std::vector<std::string> sweep_of(const Project& p, const std::string& url, const fs::path& out) {
  return p.command("sweep", {"--backend", "http", "--url", url, "--out", out.string(), "--set",
                             "serve.max_model_len=128", "--set", "sweep.request_rates=[50]", "--set",
                             "sweep.input_lens=[16]", "--set", "sweep.num_prompts=4", "--set", "sweep.output_len=4"});
}

TEST(Sweep, SaysThatTheCacheOfAServerOverHttpIsNotEmptied) {
  const Project p;
  const GuardedServer server;
  std::vector<std::string> command = sweep_of(p, server.url("me%40work:" + kSecret + "@"), p.folder / "points");
  EXPECT_THAT(meshwright(command).err, HasSubstr("prefix cache is not emptied: every rate draws other prompts"));
  command.insert(command.end(), {"--set", "sweep.prompts=replayed"});
  EXPECT_THAT(meshwright(command).err,
              HasSubstr("prefix cache is not emptied: every length and repeat draws other prompts"));
}

TEST(UrlSecrets, AreSentToTheServerOnly) {
  const Project p;
  const GuardedServer server;
  const fs::path out = p.folder / "points";
  const Result r = meshwright(sweep_of(p, server.url("me%40work:" + kSecret + "@"), out));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(server.refused(), 0);
  EXPECT_EQ(parse_json(r.out, "standard output")["points"][0]["completed"], 4) << r.err;
  expect_no_secret_in(p.runs);
  expect_no_secret_in(out);
  for (const std::string& text : {r.out, r.err, meshwright({"runs", "--runs-dir", p.runs.string(), "--json"}).out})
    EXPECT_THAT(text, Not(HasSubstr(kSecret)));

  // Resuming needs them again, and accepts them for the same server only.
  const std::vector<std::string> resume{"sweep", "--resume", "run-1", "--runs-dir", p.runs.string(), "--json"};
  const auto resume_with = [&](const std::string& url) {
    std::vector<std::string> command = resume;
    command.insert(command.end(), {"--url", url});
    return meshwright(command).exit_code;
  };
  EXPECT_NE(meshwright(resume).exit_code, 0);
  EXPECT_EQ(resume_with(server.url("me%40work:" + kSecret + "@")), 0);
  EXPECT_EQ(resume_with("http://other:80"), 2);
  expect_no_secret_in(p.runs);
}

TEST(UrlSecrets, AreNotInErrorsOrFailedRuns) {
  const Project p;
  const GuardedServer server;
  for (const std::string& url : {server.url("me:" + kSecret + "@"), "http://me:" + kSecret + "@127.0.0.1:1",
                                 "ftp://me:" + kSecret + "@127.0.0.1", "http://me:" + kSecret + "@127.0.0.1/?x=1"}) {
    const Result r = meshwright(sweep_of(p, url, p.folder / "points"));
    EXPECT_NE(r.exit_code, 0) << url;
    EXPECT_THAT(r.out + r.err, Not(HasSubstr(kSecret)));
  }
  expect_no_secret_in(p.runs);
}

TEST(UrlSecrets, AreNotInTheRecordOfAWatchedCommand) {
  const Project p;
  const std::string url = "http://me:" + kSecret + "@127.0.0.1";
  const Result r = meshwright({"watch", "--name", "copy of " + url, "--runs-dir", p.runs.string(), "--json", "--", "sh",
                               "-c", "echo fetching $0; echo again $0 >&2", url});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, Not(HasSubstr(kSecret)));
  expect_no_secret_in(p.runs);
  EXPECT_THAT(meshwright({"runs", "--runs-dir", p.runs.string()}).out, HasSubstr("copy of http://127.0.0.1"));
}

}  // namespace
}  // namespace mw::test
