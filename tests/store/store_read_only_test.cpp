// SPDX-License-Identifier: GPL-3.0-or-later
// A store that may not be written to is listed and read, and refuses to be changed.
#include <gmock/gmock.h>

#include "core/store/store_sqlite.h"
#include "tests/store/store_fixture.h"

namespace mw::store {
namespace {
namespace fs = std::filesystem;
using test::error_id;
using test::fork_child;
using test::metric;
using test::Scratch;
using test::wait_for;

TEST(ReadOnlyStore, OpenModeDependsOnFilesAndPermissions) {
  const DatabaseFiles missing{.folder_writable = true};
  EXPECT_EQ(open_mode(missing), OpenMode::read_write);
  EXPECT_EQ(open_mode({}), OpenMode::read_write) << "creating it then says why it cannot be";
  const DatabaseFiles usual{.file = true, .file_writable = true, .folder_writable = true};
  EXPECT_EQ(open_mode(usual), OpenMode::read_write);
  for (const bool file_writable : {false, true}) {  // a log cannot be made beside a writable file either
    const DatabaseFiles closed{.file = true, .file_writable = file_writable};
    EXPECT_EQ(open_mode(closed), OpenMode::immutable);
    const DatabaseFiles written{.file = true, .file_writable = file_writable, .wal = true, .shm = true};
    EXPECT_EQ(open_mode(written), OpenMode::read_only);
    const DatabaseFiles killed{.file = true, .file_writable = file_writable, .wal = true};
    EXPECT_EQ(open_mode(killed), OpenMode::impossible) << "its last changes are in the log alone";
  }
  const DatabaseFiles only_the_file{.file = true, .folder_writable = true, .wal = true};
  EXPECT_EQ(open_mode(only_the_file), OpenMode::read_only);
}

// Runs `work` in a child that may read everything in `folder` and write nothing; 77: it cannot become such a user.
int as_reader(const fs::path& folder, const std::function<int()>& work) {
  constexpr fs::perms kRead = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                      kEnter = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  const auto set = [&](fs::perms may) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      fs::permissions(entry.path(), entry.is_directory() ? may | kEnter : may);
    fs::permissions(folder, may | kEnter);
  };
  set(kRead);
  const int result = wait_for(fork_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 77;  // to root nothing is unwritable
    return work();
  }));
  set(kRead | fs::perms::owner_write);
  return result;
}

class OpenedReadOnly : public testing::Test {
 protected:
  OpenedReadOnly() { fs::permissions(scratch_.path(), fs::perms::all); }
  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "runs % ? #";
  static void fill(Store& store) {
    const RunId run = store.create(experiment::Experiment(), "first");
    for (long step = 1; step <= 5; ++step) store.append(run, metric(step, 1));
    store.append(run, {6, event::Finished{RunState::done, 5, 50, 6, Bytes(7), "", Json()}});
  }
  int read_it() const {
    const Store store(folder_);
    const auto rows = store.list();
    if (rows.size() != 1 || rows[0].name != "first" || rows[0].state != RunState::done) return 1;
    if (store.events("run-1").size() != 6) return 2;
    return store.experiment("run-1").value("kind").get<std::string>() == "train" ? 0 : 3;
  }
  // Whoever keeps writing elsewhere: it stays open while `work` runs.
  void expect_read(const std::function<int()>& work) const {
    const int result = as_reader(folder_, work);
    if (result == 77) GTEST_SKIP() << "cannot become another user";
    EXPECT_EQ(result, 0);
  }
};

TEST_F(OpenedReadOnly, IsListedAndReadAfterItWasClosed) {
  {
    Store store(folder_);
    fill(store);
  }
  ASSERT_FALSE(fs::exists(folder_ / "runs.sqlite-wal"));
  expect_read([&] { return read_it(); });
  EXPECT_FALSE(fs::exists(folder_ / "runs.sqlite-wal"));
}

TEST_F(OpenedReadOnly, IsReadThroughTheLogOfAProcessThatWrites) {
  Store store(folder_);
  fill(store);
  ASSERT_TRUE(fs::exists(folder_ / "runs.sqlite-wal"));
  expect_read([&] { return read_it(); });
}

TEST_F(OpenedReadOnly, IsReadThroughTheLogOfAProcessThatWasKilled) {
  EXPECT_EQ(wait_for(fork_child([&] {
              auto* store = new Store(folder_);  // never closed
              fill(*store);
              return 0;
            })),
            0);
  ASSERT_TRUE(fs::exists(folder_ / "runs.sqlite-wal"));
  expect_read([&] { return read_it(); });
  fs::remove(folder_ / "runs.sqlite-shm");
  expect_read([&] {
    std::string text;
    const std::string id = error_id([&] { read_it(); }, &text);
    ::dprintf(2, "%s\n", text.c_str());
    return id == "STORE-UNWRITABLE" && text.find("copy the folder") != std::string::npos ? 0 : 1;
  });
}

TEST_F(OpenedReadOnly, RefusesChangesAndNamesTheFolder) {
  {
    Store store(folder_);
    fill(store);
  }
  expect_read([&] {
    Store store(folder_);
    const std::vector<std::function<void()>> changes{[&] { store.create(experiment::Experiment(), ""); },
                                                     [&] { store.append("run-1", metric(1, 1)); },
                                                     [&] { store.rename("run-1", "x"); },
                                                     [&] { store.set_tags("run-1", "x"); },
                                                     [&] { store.rewind("run-1", 0); },
                                                     [&] { store.set_deleted("run-1", Trash::deleted); },
                                                     [&] { store.lock("run-1"); }};
    for (size_t i = 0; i < changes.size(); ++i) {
      std::string text;
      if (error_id(changes[i], &text) != "STORE-UNWRITABLE") return 10 + static_cast<int>(i);
      if (text.find(folder_.string() + ": the run store is read-only") == std::string::npos) return 20;
    }
    return store.recover().empty() ? 0 : 30;
  });
}

TEST_F(OpenedReadOnly, CannotBeCreated) {
  fs::create_directories(folder_);
  expect_read([&] { return error_id([&] { Store store(folder_); }) == "STORE-UNWRITABLE" ? 0 : 1; });
}

}  // namespace
}  // namespace mw::store
