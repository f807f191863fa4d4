// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that die, collide or lock each other out.
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>

#include <set>

#include "core/base/files.h"
#include "core/store/chain.h"
#include "tests/store/store_fixture.h"

namespace mw::store {
namespace {
using test::fork_child;
using test::metric;
using test::Scratch;
using test::wait_for;

// The i-th event of the child's run. Every fifth is no telemetry, so its append commits all before it.
Event numbered(long i) {
  if (i % 5 == 4) return {static_cast<double>(i), event::Log{"info", "line " + std::to_string(i)}};
  return metric(i, static_cast<double>(i) * 0.5);
}

// Appends without end, telling how many events are committed after each commit.
int append_forever(const std::filesystem::path& folder, int report) {
  Store store(folder);
  const RunId run = store.create(experiment::Experiment(), "victim");
  const auto lock = store.lock(run);
  store.append(run, {0, event::Started{Json{{"steps", 1000000}}}});
  for (long i = 0;; ++i) {
    store.append(run, numbered(i));
    if (i % 5 != 4) continue;
    const long committed = i + 2;
    if (::write(report, &committed, sizeof committed) != sizeof committed) return 1;
  }
}

class KilledAt : public testing::TestWithParam<int> {};

TEST_P(KilledAt, KeepsAllEventsUpToTheLastReportedCommit) {
  const Scratch folder;
  int channel[2];
  ASSERT_EQ(::pipe2(channel, O_CLOEXEC), 0);
  const pid_t child = fork_child([&] {
    ::close(channel[0]);
    return append_forever(folder.path(), channel[1]);
  });
  ::close(channel[1]);
  long committed = 0;
  for (int reports = 0; reports < GetParam(); ++reports)
    ASSERT_EQ(::read(channel[0], &committed, sizeof committed), static_cast<ssize_t>(sizeof committed));
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_for(child), -SIGKILL);
  for (long more = 0; ::read(channel[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more);) committed = more;
  ::close(channel[0]);

  Store store(folder.path());
  const auto events = store.events("run-1");
  ASSERT_GE(events.size(), static_cast<size_t>(committed));
  for (size_t i = 1; i < events.size(); ++i)
    ASSERT_EQ(test::fingerprint(events[i].event), test::fingerprint(numbered(static_cast<long>(i) - 1))) << i;
  EXPECT_EQ(store.find("run-1")->state, RunState::running);

  EXPECT_EQ(store.recover(), std::vector<RunId>{"run-1"});
  const RunRow row = *store.find("run-1");
  EXPECT_EQ(row.state, RunState::failed);
  EXPECT_TRUE(row.interrupted());
  EXPECT_TRUE(std::holds_alternative<event::Finished>(store.events("run-1").back().event.body));
  EXPECT_TRUE(store.recover().empty());
  EXPECT_NE(store.lock("run-1"), nullptr);
  EXPECT_EQ(verify_chain(store, "run-1").state, ChainState::intact);

  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
  std::string verdict;
  sqlite3_exec(
      db, "PRAGMA integrity_check",
      [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) = values[0];
        return 0;
      },
      &verdict, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(verdict, "ok");
}

INSTANTIATE_TEST_SUITE_P(Store, KilledAt, testing::Values(1, 2, 3, 10, 57, 200, 731, 2000));

TEST(StoreProcesses, ConcurrentCreatesGetDifferentIds) {
  const Scratch folder;
  constexpr int kChildren = 4, kEach = 25;
  std::vector<pid_t> children;
  for (int c = 0; c < kChildren; ++c)
    children.push_back(fork_child([&] {
      Store store(folder.path());  // all of them create the database, too
      for (int i = 0; i < kEach; ++i) {
        const RunId run = store.create(experiment::Experiment(), "child " + std::to_string(c));
        for (long step = 1; step <= 20; ++step) store.append(run, metric(step, c));
        store.append(run, {1, event::Finished{RunState::done, 20, 1, 1, Bytes(1), "", Json()}});
      }
      return 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  const Store store(folder.path());
  const auto rows = store.list();
  ASSERT_EQ(rows.size(), static_cast<size_t>(kChildren * kEach));
  std::set<RunId> ids;
  for (const RunRow& row : rows) {
    ids.insert(row.id);
    EXPECT_EQ(row.state, RunState::done);
    EXPECT_EQ("child " + std::to_string(static_cast<int>(*row.train_loss)), row.name);
    EXPECT_EQ(store.events(row.id).size(), 21u);
  }
  EXPECT_EQ(ids.size(), rows.size());
  EXPECT_TRUE(ids.contains("run-1"));
  EXPECT_TRUE(ids.contains("run-" + std::to_string(kChildren * kEach)));
}

TEST(StoreProcesses, LockErrorNamesTheOwningProcess) {
  const Scratch folder;
  RunId run;
  {
    Store store(folder.path());
    run = store.create(experiment::Experiment(), "");
    store.append(run, {0, event::Started{}});
  }
  int ready[2], go[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  const pid_t child = fork_child([&] {
    ::close(go[1]);
    Store store(folder.path());
    const auto lock = store.lock(run);
    char byte = 1;
    if (::write(ready[1], &byte, 1) != 1) return 1;
    return ::read(go[0], &byte, 1) == 0 ? 0 : 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  Store store(folder.path());
  std::string text;
  EXPECT_EQ(test::error_id([&] { store.lock(run); }, &text), "RUN-LOCKED");
  EXPECT_NE(text.find("process " + std::to_string(child)), std::string::npos) << text;
  EXPECT_TRUE(store.recover().empty());  // it lives
  EXPECT_EQ(store.find(run)->state, RunState::running);
  ::close(go[1]);
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_NE(store.lock(run), nullptr);
  for (const int fd : {ready[0], ready[1], go[0]}) ::close(fd);
}

TEST(StoreProcesses, TwoLocksInOneProcessConflictToo) {
  const Scratch folder;
  Store a(folder.path()), b(folder.path());
  const RunId run = a.create(experiment::Experiment(), "");
  auto lock = a.lock(run);
  EXPECT_EQ(test::error_id([&] { b.lock(run); }), "RUN-LOCKED");
  lock.reset();
  EXPECT_NE(b.lock(run), nullptr);
}

TEST(StoreProcesses, AFreshlyQueuedRunIsNotMistakenForADeadOne) {
  const Scratch folder;
  Store store(folder.path());
  const RunId young = store.create(experiment::Experiment(), ""), old = store.create(experiment::Experiment(), "");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE runs SET created='2020-01-01T00:00:00Z' WHERE id=2", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(store.recover(), std::vector<RunId>{old});
  EXPECT_EQ(store.find(young)->state, RunState::queued);
}

TEST(StoreProcesses, AWriterWaitsForAnotherWriter) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment::Experiment(), "");
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork_child([&] {
    sqlite3* db = nullptr;
    sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) return 2;
    char byte = 1;
    if (::write(ready[1], &byte, 1) != 1) return 1;
    ::usleep(300000);
    return sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK ? 0 : 3;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  store.append(run, {0, event::Log{"info", "after the other"}});
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(store.events(run).size(), 1u);
  for (const int fd : ready) ::close(fd);
}

}  // namespace
}  // namespace mw::store
