// SPDX-License-Identifier: GPL-3.0-or-later
// Other programs' runs: watched live, and imported from their logs.
#include "core/runs/watched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/runs/import_log.h"
#include "core/runs/run_view.h"
#include "tests/runs/store_test_help.h"

namespace mw::runs {
namespace {
using testing::ElementsAre;

struct Watched : testing::Test {
  test::Scratch folder;
  std::vector<std::string> lines;
  RunView live;
  Outcome run(const std::string& script, std::stop_token stop = {}) {
    return watch(
        {.command = {"sh", "-c", script}, .runs_folder = folder.path()}, [&](const Event& e) { live.feed(e); },
        [&](const std::string& line) { lines.push_back(line); }, std::move(stop));
  }
  RunView stored() const {
    RunView view;
    const Store store(folder.path());
    for (const auto& e : store.events(store.list().at(0).id)) view.feed(e.event);
    return view;
  }
};

TEST_F(Watched, EventLinesBecomeTheRunAndTheRestIsItsLog) {
  const Outcome o = run(R"(
    echo 'loading'
    echo '{"event":"started","steps":2,"name":"elsewhere"}'
    printf '{"event":"metric","name":"train/loss","st'; sleep 0.1; printf 'ep":1,"value":2.5}\n'
    echo '{"event":"metric","name":"train/loss","step":2,"value":2}'
    echo '{"event":"metric","name":'
    echo oops >&2
    echo '{"event":"finished","state":"done","steps":2,"tokens":64,"seconds":1,"peak_bytes":9}')");
  EXPECT_EQ(o.finished.state, RunState::done);
  EXPECT_EQ(o.finished.tokens, 64);
  const RunView view = stored();
  EXPECT_EQ(view, live);
  ASSERT_NE(view.metric("train/loss"), nullptr);
  EXPECT_EQ(view.metric("train/loss")->raw.size(), 2u);
  EXPECT_EQ(view.steps_total(), 2);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("loading", "{\"event\":\"metric\",\"name\":", "oops"));
  EXPECT_EQ(Store(folder.path()).list().at(0).source, "imported");
}

TEST_F(Watched, TheExitCodeDecidesWhereNothingElseDoes) {
  const Outcome bad = run("echo working; exit 3");
  EXPECT_EQ(bad.finished.state, RunState::failed);
  EXPECT_THAT(bad.finished.error, testing::HasSubstr("3"));
  EXPECT_EQ(run("true").finished.state, RunState::done);
}

TEST_F(Watched, AStopEndsTheCommandAndItsChildren) {
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop.request_stop();
  });
  const auto begun = std::chrono::steady_clock::now();
  const Outcome o = run("sleep 60 & sleep 60", stop.get_token());
  EXPECT_EQ(o.finished.state, RunState::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST_F(Watched, WhatCannotStartLeavesNoRun) {
  try {
    watch(
        {.command = {"/no/such/program"}, .runs_folder = folder.path()}, [](const Event&) {}, [](const std::string&) {},
        {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().place, "/no/such/program");
  }
  EXPECT_TRUE(Store(folder.path()).list().empty());
}

TEST(ImportLog, IsAFinishedRunOfItsOwn) {
  const test::Scratch folder;
  Store store(folder.path());
  for (const char* log : {"tensorboardx", "transformers", "wandb"}) {
    const RunId run = import_log(store, formats::read_log(std::filesystem::path(MW_FIXTURES) / "logs" / log));
    RunView view;
    for (const auto& e : store.events(run)) view.feed(e.event);
    EXPECT_EQ(view.state(), RunState::done);
    ASSERT_NE(view.metric("train/loss"), nullptr) << log;
    EXPECT_EQ(view.metric("train/loss")->raw.size(), 9u) << log;
    EXPECT_EQ(view.metric("eval/loss")->raw.size(), 3u) << log;
    EXPECT_EQ(store.find(run)->source, "imported");
  }
}

}  // namespace
}  // namespace mw::runs
