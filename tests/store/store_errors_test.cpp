// SPDX-License-Identifier: GPL-3.0-or-later
// Every way the disk or another program can spoil the store: one clear error, no crash, nothing lost.
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "core/base/files.h"
#include "tests/store/store_fixture.h"

namespace mw::store {
namespace {
namespace fs = std::filesystem;
using test::error_id;
using test::fork_child;
using test::metric;
using test::Scratch;
using test::wait_for;

void sql(const fs::path& folder, const char* statements) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "runs.sqlite").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, statements, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

std::string open_error(const fs::path& folder, std::string* text = nullptr) {
  return error_id([&] { Store store(folder); }, text);
}

TEST(StoreErrors, RejectsAFileThatIsNotADatabaseAndKeepsIt) {
  const Scratch folder;
  const std::string letter(5000, 'x');
  write_file_atomically(folder.path() / "runs.sqlite", letter);
  std::string text;
  EXPECT_EQ(open_error(folder.path(), &text), "STORE-NOT-A-DATABASE");
  EXPECT_NE(text.find("runs.sqlite"), std::string::npos);
  EXPECT_NE(text.find("Fix: "), std::string::npos);
  EXPECT_EQ(read_file(folder.path() / "runs.sqlite"), letter);
}

TEST(StoreErrors, AnotherProgramsDatabaseIsRefused) {
  const Scratch folder;
  sql(folder.path(), "CREATE TABLE bookmarks(x); INSERT INTO bookmarks VALUES(1)");
  EXPECT_EQ(open_error(folder.path()), "STORE-NOT-A-DATABASE");
  sql(folder.path(), "DELETE FROM bookmarks");  // still its own
}

TEST(StoreErrors, ANewerSchemaIsRefusedWithBothVersions) {
  const Scratch folder;
  { Store store(folder.path()); }
  sql(folder.path(), "PRAGMA user_version=99");
  std::string text;
  EXPECT_EQ(open_error(folder.path(), &text), "STORE-NEWER");
  EXPECT_NE(text.find("99"), std::string::npos);
}

TEST(StoreErrors, ReportsADamagedDatabase) {
  const Scratch folder;
  {
    Store store(folder.path());
    const RunId run = store.create(experiment::Experiment(), "");
    for (long i = 0; i < 5000; ++i) store.append(run, metric(i, 1));
  }
  std::string bytes = read_file(folder.path() / "runs.sqlite");
  Rng rng({5});
  for (int trial = 0; trial < 40; ++trial) {
    std::string bad = bytes;
    if (trial % 4 == 0) bad.resize(rng.below(bad.size()));
    for (int i = 0; i < 2000 && !bad.empty(); ++i) bad[rng.below(bad.size())] = static_cast<char>(rng.next());
    write_file_atomically(folder.path() / "runs.sqlite", bad);
    try {
      Store store(folder.path());
      store.events("run-1");
      store.list();
      store.append("run-1", metric(1, 1));
      store.append("run-1", {1, event::Log{"info", "x"}});
    } catch (const Error& e) {
      EXPECT_FALSE(e.problem().message.empty());
    }
    for (const char* extra : {"runs.sqlite-wal", "runs.sqlite-shm"}) fs::remove(folder.path() / extra);
  }
}

TEST(StoreErrors, ReportsAFolderThatCannotBeCreated) {
  const Scratch folder;
  write_file_atomically(folder.path() / "file", "not a folder");
  EXPECT_EQ(open_error(folder.path() / "file" / "runs"), "SYSTEM");
}

TEST(StoreErrors, ReportsAProcessThatLocksTheDatabaseTooLong) {
  const Scratch folder;
  Store store(folder.path(), std::chrono::milliseconds(200));
  const RunId run = store.create(experiment::Experiment(), "");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(error_id([&] { store.append(run, {0, event::Log{"info", "waits"}}); }), "STORE-BUSY");
  ASSERT_EQ(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  store.flush();  // nothing was lost
  EXPECT_EQ(store.events(run).size(), 1u);
}

// Appends until the disk is full, makes room, goes on; true when every event is there in the end.
int fill_and_recover(const fs::path& folder, const char* reason, const std::function<void()>& make_room) {
  long appended = 0;
  RunId run;
  {
    Store store(folder);
    run = store.create(experiment::Experiment(), "full");
    std::string id, text;
    while (id.empty() && appended < 100000) {
      id = error_id(
          [&] {
            store.append(run, {0, event::Log{"info", std::string(2000, 'x') + std::to_string(appended)}});
          },
          &text);
      ++appended;
    }
    ::dprintf(2, "after %ld events: %s\n", appended, text.c_str());
    if (id != "STORE-FULL" && id != "STORE-IO") return 1;
    if (text.find("Fix: ") == std::string::npos || text.find(reason) == std::string::npos) return 2;
    const size_t readable = Store(folder).events(run).size();
    if (readable + 1 != static_cast<size_t>(appended)) return 3;
    if (error_id([&] { store.append(run, {0, event::Log{"info", "again"}}); }).empty()) return 4;
    ++appended;
    make_room();
    store.flush();
  }
  const auto events = Store(folder).events(run);
  return events.size() == static_cast<size_t>(appended) ? 0 : 5;
}

TEST(StoreErrors, AFileSizeLimitIsReportedAndNothingIsLost) {
  const Scratch folder;
  EXPECT_EQ(wait_for(fork_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              rlimit limit{};
              ::getrlimit(RLIMIT_FSIZE, &limit);
              const rlim_t before = limit.rlim_cur;
              limit.rlim_cur = 600000;
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return fill_and_recover(folder.path(), "ulimit -f", [&] {
                limit.rlim_cur = before;
                ::setrlimit(RLIMIT_FSIZE, &limit);
              });
            })),
            0);
}

TEST(StoreErrors, AFullDiskIsReportedAndNothingIsLost) {
  const Scratch folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) GTEST_SKIP() << "may not mount a small disk";
  const std::string ballast(300000, 'b');
  write_file_atomically(folder.path() / "ballast", ballast);
  EXPECT_EQ(fill_and_recover(folder.path() / "store", "space", [&] { fs::remove(folder.path() / "ballast"); }), 0);
  ::umount(folder.path().c_str());
}

TEST(StoreErrors, AFailedCreateLeavesNoFolder) {
  const Scratch folder;
  Store store(folder.path());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT raise(ABORT, 'no'); END", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(error_id([&] { store.create(experiment::Experiment(), ""); }), "STORE");
  EXPECT_FALSE(fs::exists(folder.path() / "run-1"));
  ASSERT_EQ(sqlite3_exec(db, "DROP TRIGGER no", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(store.create(experiment::Experiment(), ""), "run-1");
}

TEST(StoreErrors, AnExperimentWithAWrongTypeCreatesNoRun) {
  const Scratch folder;
  Store store(folder.path());
  const auto broken = experiment::Experiment::from_json(Json{{"schema", 1}, {"train", {{"steps", "many"}}}});
  EXPECT_FALSE(error_id([&] { store.create(broken, ""); }).empty());
  EXPECT_TRUE(store.list().empty());
}

}  // namespace
}  // namespace mw::store
