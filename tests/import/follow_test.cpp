// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that another program is making, followed in a growing file, a pipe, over HTTP and in log folders.
#include "core/import/follow.h"

#include <gmock/gmock.h>
#include <httplib.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "core/base/files.h"
#include "core/views/run_view.h"
#include "tests/store/store_fixture.h"

namespace mw::importing {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

const fs::path kFollowedLogs = fs::path(MW_FIXTURES) / "logs";

std::string loss_line(int step) {
  return R"({"event":"metric","name":"train/loss","step":)" + std::to_string(step) + R"(,"value":2.5,"time_s":)" +
         std::to_string(step) + "}\n";
}
const std::string kFinishedLine = R"({"event":"finished","state":"done","steps":3,"seconds":4})"
                                  "\n";

struct Follow : testing::Test {
  test::Scratch scratch;
  std::stop_source stop;
  views::RunView live;
  FollowRequest request(const std::string& source, double idle_s = 0) {
    return {.source = source, .runs_folder = scratch.path() / "runs", .poll_s = 0.01, .idle_s = idle_s};
  }
  store::RunOutcome follow_now(const FollowRequest& request) {
    return follow(
        request, [&](const Event& e) { live.feed(e); }, [](const std::string&) {}, stop.get_token());
  }
  std::future<store::RunOutcome> start(const FollowRequest& request) {
    return std::async(std::launch::async, [this, request] { return follow_now(request); });
  }
  views::RunView stored() const {
    views::RunView view;
    const store::Store store(scratch.path() / "runs");
    for (const auto& e : store.events(store.list().at(0).id)) view.feed(e.event);
    return view;
  }
  static size_t losses(const views::RunView& view) {
    return view.metric("train/loss") ? view.metric("train/loss")->raw.size() : 0;
  }
};

TEST_F(Follow, RecordsAFileThatGrows) {
  const fs::path file = scratch.path() / "events.jsonl";
  write_file_atomically(file, R"({"event":"started","steps":3,"name":"elsewhere"})"
                              "\n" +
                                  loss_line(1));
  auto outcome = start(request(file.string()));
  std::ofstream more(file, std::ios::app);
  const std::string second = loss_line(2);
  for (const std::string& part : {second.substr(0, 20), second.substr(20), std::string("loading\n"), loss_line(3)}) {
    std::this_thread::sleep_for(30ms);
    more << part << std::flush;
  }
  EXPECT_EQ(outcome.wait_for(100ms), std::future_status::timeout);
  more << kFinishedLine << std::flush;
  EXPECT_EQ(outcome.get().finished.state, RunState::done);
  const views::RunView view = stored();
  EXPECT_EQ(losses(view), 3u);
  EXPECT_EQ(view.steps_total(), 3);
  EXPECT_EQ(view, live);
}

TEST_F(Follow, AFileThatShrinksOrFallsSilentFails) {
  const fs::path file = scratch.path() / "events.jsonl";
  write_file_atomically(file, loss_line(1) + loss_line(2));
  const store::RunOutcome silent = follow_now(request(file.string(), 0.1));
  EXPECT_EQ(silent.finished.state, RunState::failed);
  EXPECT_THAT(silent.finished.error, testing::HasSubstr("nothing new came"));
  auto outcome = start(request(file.string()));
  std::this_thread::sleep_for(100ms);
  fs::resize_file(file, 10);
  EXPECT_THAT(outcome.get().finished.error, testing::HasSubstr("shorter"));
}

TEST_F(Follow, AStopEndsTheRecordAndKeepsIt) {
  const fs::path file = scratch.path() / "events.jsonl";
  write_file_atomically(file, loss_line(1));
  auto outcome = start(request(file.string()));
  std::this_thread::sleep_for(100ms);
  stop.request_stop();
  EXPECT_EQ(outcome.get().finished.state, RunState::cancelled);
  EXPECT_EQ(losses(stored()), 1u);
}

TEST_F(Follow, RecordsAPipeUntilItIsClosed) {
  const fs::path pipe = scratch.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto outcome = start(request(pipe.string()));
  std::this_thread::sleep_for(50ms);  // without a writer it waits
  EXPECT_EQ(outcome.wait_for(0ms), std::future_status::timeout);
  {
    std::ofstream out(pipe);
    out << loss_line(1) << loss_line(2) << std::flush;
  }
  const store::RunOutcome o = outcome.get();
  EXPECT_EQ(o.finished.state, RunState::failed);
  EXPECT_THAT(o.finished.error, testing::HasSubstr("the pipe ended before the run did"));
  EXPECT_EQ(losses(stored()), 2u);
}

// A server that sends a growing file, with and without byte ranges, and one that ends its answer in the middle.
TEST_F(Follow, RecordsWhatAUrlSends) {
  for (const bool ranges : {true, false}) {
    SCOPED_TRACE(ranges);
    std::mutex mutex;
    std::string body = loss_line(1);
    httplib::Server server;
    server.Get("/run/events.jsonl", [&](const httplib::Request& q, httplib::Response& r) {
      const std::lock_guard lock(mutex);
      const auto from = ranges && !q.ranges.empty() ? static_cast<size_t>(q.ranges.front().first) : 0;
      r.set_content(body, "application/jsonl");
      if (!ranges || from >= body.size()) const_cast<httplib::Request&>(q).ranges.clear();
      if (ranges && from >= body.size()) r.status = 416, r.set_content("", "text/plain");
    });
    const int port = server.bind_to_any_port("127.0.0.1");
    std::jthread serving([&] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::sleep_for(1ms);
    auto outcome = start(request("http://127.0.0.1:" + std::to_string(port) + "/run/events.jsonl"));
    std::this_thread::sleep_for(50ms);
    {
      const std::lock_guard lock(mutex);
      body += loss_line(2) + loss_line(3);
    }
    std::this_thread::sleep_for(50ms);
    {
      const std::lock_guard lock(mutex);
      body += kFinishedLine;
    }
    EXPECT_EQ(outcome.get().finished.state, RunState::done);
    server.stop();
  }
  const store::Store store(scratch.path() / "runs");
  for (const store::RunRow& row : store.list()) {
    views::RunView view;
    for (const auto& e : store.events(row.id)) view.feed(e.event);
    EXPECT_EQ(losses(view), 3u);
  }
}

TEST_F(Follow, RecordsTheMetricsOfAVllmServer) {
  httplib::Server server;
  std::atomic<int> asked = 0;
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& r) {
    r.set_content("vllm:num_requests_running{engine=\"0\"} " + std::to_string(++asked) + "\n", "text/plain");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::jthread serving([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::sleep_for(1ms);
  auto outcome = start(request("http://127.0.0.1:" + std::to_string(port) + "/metrics"));
  while (asked < 4) std::this_thread::sleep_for(5ms);
  server.stop();
  EXPECT_EQ(outcome.get().finished.state, RunState::done);
  EXPECT_GE(stored().metric("serve/running")->raw.size(), 3u);
}

// The files are copied in two parts, the first of which ends within a record.
TEST_F(Follow, RecordsGrowingLogFolders) {
  for (const auto& [name, file] :
       {std::pair{"tensorboardx", "events.out.tfevents.1795302143.vm"}, std::pair{"wandb", "run-fixture.wandb"}}) {
    SCOPED_TRACE(name);
    const fs::path folder = scratch.path() / name;
    fs::create_directories(folder);
    auto outcome = start(request(folder.string(), 0.5));
    std::this_thread::sleep_for(50ms);
    const std::string bytes = read_file(kFollowedLogs / name / file);
    std::ofstream out(folder / file, std::ios::binary);
    out << bytes.substr(0, bytes.size() / 2 + 3) << std::flush;
    std::this_thread::sleep_for(100ms);
    out << bytes.substr(bytes.size() / 2 + 3) << std::flush;
    EXPECT_EQ(outcome.get().finished.state, RunState::done);
  }
  const store::Store store(scratch.path() / "runs");
  ASSERT_EQ(store.list().size(), 2u);
  for (const store::RunRow& row : store.list()) {
    views::RunView view;
    for (const auto& e : store.events(row.id)) view.feed(e.event);
    EXPECT_EQ(losses(view), 9u);
    EXPECT_EQ(view.metric("eval/loss")->raw.size(), 3u);
  }
}

TEST_F(Follow, RefusesWhatIsNoSourceWithoutMakingARun) {
  for (const std::string& source : {std::string(), (scratch.path() / "nothing").string(),
                                    std::string("http://127.0.0.1:1/events"), std::string("ftp://x/y")})
    EXPECT_THROW(follow_now(request(source)), Error) << source;
  EXPECT_FALSE(fs::exists(scratch.path() / "runs"));
}

}  // namespace
}  // namespace mw::importing
