// SPDX-License-Identifier: GPL-3.0-or-later
// Other programs' runs: watched live, and imported from their logs.
#include "core/import/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/process.h"
#include "core/import/import_files.h"
#include "core/views/run_view.h"
#include "tests/store/store_fixture.h"

namespace mw::importing {
namespace {
using testing::ElementsAre;
using namespace std::string_literals;

struct Watched : testing::Test {
  test::Scratch folder;
  std::vector<std::string> lines;
  views::RunView live;
  store::RunOutcome run(const std::string& script, std::stop_token stop = {}) {
    return watch(
        {.command = {"sh", "-c", script}, .runs_folder = folder.path()}, [&](const Event& e) { live.feed(e); },
        [&](const std::string& line) { lines.push_back(line); }, std::move(stop));
  }
  views::RunView stored() const {
    views::RunView view;
    const store::Store store(folder.path());
    for (const auto& e : store.events(store.list().at(0).id)) view.feed(e.event);
    return view;
  }
};

TEST_F(Watched, RecordsEventLinesAndLogsOtherLines) {
  const store::RunOutcome o = run(R"(
    echo 'loading'
    echo '{"event":"started","steps":2,"name":"elsewhere"}'
    printf '{"event":"metric","name":"train/loss","st'; sleep 0.1; printf 'ep":1,"value":2.5}\n'
    echo '{"event":"metric","name":"train/loss","step":2,"value":2}'
    echo '{"event":"metric","name":'
    echo oops >&2
    echo '{"event":"finished","state":"done","steps":2,"tokens":64,"seconds":1,"peak_bytes":9}')");
  EXPECT_EQ(o.finished.state, RunState::done);
  EXPECT_EQ(o.finished.tokens, 64);
  const views::RunView view = stored();
  EXPECT_EQ(view, live);
  ASSERT_NE(view.metric("train/loss"), nullptr);
  EXPECT_EQ(view.metric("train/loss")->raw.size(), 2u);
  EXPECT_EQ(view.steps_total(), 2);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("loading", "{\"event\":\"metric\",\"name\":", "oops"));
  EXPECT_EQ(store::Store(folder.path()).list().at(0).source, "imported");
}

TEST_F(Watched, ExitCodeDecidesWithoutAFinishedEvent) {
  const store::RunOutcome bad = run("echo working; exit 3");
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
  const store::RunOutcome o = run("sleep 60 & sleep 60", stop.get_token());
  EXPECT_EQ(o.finished.state, RunState::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

std::vector<event::Log> logs_of(const store::Store& store) {
  std::vector<event::Log> logs;
  for (const store::StoredEvent& e : store.events("run-1"))
    if (const auto* log = std::get_if<event::Log>(&e.event.body)) logs.push_back(*log);
  return logs;
}

TEST_F(Watched, LongLinesAreShortenedWithOneWarning) {
  run("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo between; head -c 100000 /dev/zero | tr '\\0' y; echo; "
      "head -c 65536 /dev/zero | tr '\\0' z");
  const auto logs = logs_of(store::Store(folder.path()));
  ASSERT_EQ(logs.size(), 5u);
  EXPECT_EQ(logs[0].level, "warning");
  EXPECT_EQ(logs[0].text, "lines of more than 64 KiB are shortened in this record");
  EXPECT_EQ(logs[1].text, std::string(65536, 'x') + "... (49934464 bytes left out)");
  EXPECT_EQ(logs[2].text, "between");
  EXPECT_EQ(logs[3].text, std::string(65536, 'y') + "... (34464 bytes left out)");
  EXPECT_EQ(logs[4].text, std::string(65536, 'z'));
}

TEST_F(Watched, ReportsEventsThatAreTooLongAndShortensLongMessages) {
  run(R"(printf '{"event":"metric","name":"'; head -c 17000000 /dev/zero | tr '\0' n; echo '","step":1,"value":1}'
    printf '{"event":"log","level":"info","text":"'; head -c 100000 /dev/zero | tr '\0' t; echo '"}')");
  const auto logs = logs_of(store::Store(folder.path()));
  ASSERT_EQ(logs.size(), 4u);
  EXPECT_THAT(logs[0].text, testing::HasSubstr("too long for one; events of at most 16 MiB are read"));
  EXPECT_EQ(logs[2].text.size(), 65536 + std::string("... (16934510 bytes left out)").size());
  EXPECT_EQ(logs[3].text, std::string(65536, 't') + "... (34464 bytes left out)");
}

TEST(ProcessLines, KeepTheBeginningOfALineThatDoesNotEnd) {
  LineSplitter lines;
  std::vector<std::pair<std::string, std::uint64_t>> seen;
  const auto on_line = [&](const std::string& line) { seen.emplace_back(line, lines.dropped_bytes()); };
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) lines.feed(piece, on_line);
  EXPECT_TRUE(seen.empty());
  lines.feed("x\r\nshort\r\n\nlast", on_line);
  lines.finish(on_line);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].first.size(), LineSplitter::kMaxLineBytes);
  EXPECT_EQ(seen[0].second, (40u << 20) + 2 - LineSplitter::kMaxLineBytes);
  EXPECT_EQ(seen[1], std::pair("short"s, std::uint64_t{0}));
  EXPECT_EQ(seen[2], std::pair("last"s, std::uint64_t{0}));
  EXPECT_EQ(lines.consumed_bytes(), (40u << 20) + 2 + 1 + 7 + 1 + 4);
}

TEST_F(Watched, ACommandThatCannotStartLeavesNoRun) {
  try {
    watch(
        {.command = {"/no/such/program"}, .runs_folder = folder.path()}, [](const Event&) {}, [](const std::string&) {},
        {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().place, "/no/such/program");
  }
  EXPECT_TRUE(store::Store(folder.path()).list().empty());
}

TEST(ImportLog, BecomesAFinishedRun) {
  const test::Scratch folder;
  store::Store store(folder.path());
  for (const char* log : {"tensorboardx", "transformers", "wandb"}) {
    const store::RunId run = import_log(store, formats::read_log(std::filesystem::path(MW_FIXTURES) / "logs" / log));
    views::RunView view;
    for (const auto& e : store.events(run)) view.feed(e.event);
    EXPECT_EQ(view.state(), RunState::done);
    ASSERT_NE(view.metric("train/loss"), nullptr) << log;
    EXPECT_EQ(view.metric("train/loss")->raw.size(), 9u) << log;
    EXPECT_EQ(view.metric("eval/loss")->raw.size(), 3u) << log;
    EXPECT_EQ(store.find(run)->source, "imported");
  }
}

}  // namespace
}  // namespace mw::importing
