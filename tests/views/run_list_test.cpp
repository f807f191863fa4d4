// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/run_list.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "core/base/files.h"
#include "tests/base/scratch.h"

namespace mw::views {
namespace {

store::RunId add(store::Store& store, const char* rank) {
  experiment::Experiment e;
  e.set("name", "tiny");
  e.set("lora.rank", rank);
  return store.create(e, "tiny");
}

TEST(RunList, NamesChangesAndTargetsOfEqualNames) {
  const test::Scratch folder;
  store::Store store(folder.path());
  add(store, "8");
  add(store, "16");
  const auto runs = RunList().read(store, store::Trash::kept);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].shown_name, "tiny r16");
  EXPECT_EQ(runs[0].changed, "r16");
  EXPECT_EQ(runs[0].previous, "run-1");
  EXPECT_EQ(runs[1].target, "cpu");
}

// Changes the records as no store does.
void execute(const test::Scratch& folder, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

TEST(RunList, ListsTheOthersBesideARunWithADamagedDocument) {
  const test::Scratch folder;
  store::Store store(folder.path());
  add(store, "8");
  add(store, "16");
  execute(folder, "UPDATE runs SET experiment='{\"lora\"' WHERE id=1");
  const auto runs = RunList().read(store, store::Trash::kept);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].target, "cpu");
  EXPECT_EQ(runs[1].id, "run-1");
  EXPECT_EQ(runs[1].target, "");
}

TEST(RunList, ListsTheTrainedParametersOfStartedRuns) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = add(store, "8");
  add(store, "16");
  RunList list;
  EXPECT_FALSE(list.read(store, store::Trash::kept)[1].trainable);
  const train::Trainable trained{.params = 1000, .of = 100000, .file = Bytes(4096)};
  store.append(run, {0, event::Started{{{"trainable", to_json(trained)}}}});
  const auto runs = list.read(store, store::Trash::kept);
  EXPECT_FALSE(runs[0].trainable);
  EXPECT_EQ(runs[1].trainable, trained);
}

TEST(RunList, ReadsDetailsAgainThatCouldNotBeRead) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = add(store, "8");
  const train::Trainable trained{.params = 1000, .of = 100000, .file = Bytes(4096)};
  store.append(run, {0, event::Started{{{"trainable", to_json(trained)}}}});
  execute(folder, "ALTER TABLE events RENAME TO hidden");
  RunList list;
  EXPECT_FALSE(list.read(store, store::Trash::kept)[0].trainable);
  EXPECT_EQ(list.missing(10).size(), 1U);
  execute(folder, "ALTER TABLE hidden RENAME TO events");
  EXPECT_TRUE(list.read(store, store::Trash::kept)[0].trainable);
  EXPECT_TRUE(list.missing(10).empty());
}

TEST(RunList, TakesTheDetailsThatAnotherReaderHasRead) {
  const test::Scratch folder;
  store::Store store(folder.path());
  for (const char* rank : {"4", "8", "16"}) add(store, rank);
  RunList list;
  const auto first = list.read(store, store::Trash::kept, 1);
  EXPECT_EQ(first[0].target, "cpu");
  EXPECT_EQ(first[2].target, "");
  EXPECT_EQ(first[2].shown_name, "tiny");
  EXPECT_EQ(first[1].previous, "run-1");
  const auto missing = list.missing(RunList::kAll);
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_EQ(missing[0].row.id, "run-2");
  list.add(read_details(store::Store(folder.path()), missing, nullptr));
  EXPECT_TRUE(list.missing(RunList::kAll).empty());
  const auto all = list.read(store, store::Trash::kept, 0);
  EXPECT_EQ(all, RunList().read(store, store::Trash::kept));
  EXPECT_EQ(all[1].changed, "r8");
  store.append("run-1", {1, event::StateChanged{RunState::running}});
  list.read(store, store::Trash::kept, 0);
  ASSERT_EQ(list.missing(RunList::kAll).size(), 1U);
  EXPECT_FALSE(list.missing(RunList::kAll)[0].with_settings);
}

TEST(RunList, SizesOfArtefactsIncludeFolders) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = add(store, "8");
  make_folders(store.run_folder(run) / "checkpoint");
  write_file_atomically(store.run_folder(run) / "checkpoint" / "a", "12345");
  write_file_atomically(store.run_folder(run) / "b.txt", "123");
  const auto preview = run_preview(store, RunList().read(store, store::Trash::kept)[0]);
  ASSERT_EQ(preview.artefacts.size(), 2U);
  EXPECT_EQ(preview.artefacts[0].size.value, 3);
  EXPECT_EQ(preview.artefacts[1].size.value, 5);
}

}  // namespace
}  // namespace mw::views
