// SPDX-License-Identifier: GPL-3.0-or-later
// The hash chain of events and checkpoints: what changes a record is found and named.
#include "core/store/chain.h"

#include <sqlite3.h>

#include "core/base/files.h"
#include "tests/store/store_fixture.h"

namespace mw::store {
namespace {
using test::metric;
using test::Scratch;

// A finished run of 12 events with checkpoints of steps 2 and 4; `keep` 2.
class Chain : public testing::Test {
 protected:
  Chain() {
    Store store(folder.path());
    run = store.create(experiment::Experiment(), "chained");
    store.append(run, {0, event::Started{Json{{"steps", 4}}}});
    for (long step = 1; step <= 4; ++step) {
      store.append(run, metric(step, 3.0 / static_cast<double>(step)));
      store.append(run, metric(step, step == 3 ? std::nan("") : 0.5, "train/grad_norm"));
      if (step % 2 == 0) add_checkpoint(store, step);
    }
    store.append(run, {5, event::Finished{RunState::done, 4, 100, 5, Bytes(7), "", Json()}});
  }

  std::filesystem::path checkpoint(long step) const {
    return folder.path() / run / ("checkpoint-" + std::to_string(step));
  }
  void add_checkpoint(Store& store, long step) const {
    write_file_atomically(checkpoint(step) / "adapter.safetensors", "weights of step " + std::to_string(step));
    write_file_atomically(checkpoint(step) / "trainer_state.json", "{\"step\": " + std::to_string(step) + "}");
    store.append(run, {static_cast<double>(step), event::Checkpoint{step, checkpoint(step).string()}});
  }
  ChainReport verify() const { return verify_chain(Store(folder.path()), run); }
  void change(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((folder.path() / "runs.sqlite").c_str(), &db), SQLITE_OK);
    char* why = nullptr;
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    sqlite3_close(db);
  }
  void expect_broken(const std::string& item, const std::string& reason) const {
    const ChainReport report = verify();
    EXPECT_EQ(report.state, ChainState::broken);
    EXPECT_EQ(report.broken, item);
    EXPECT_NE(report.reason.find(reason), std::string::npos) << report.reason;
    EXPECT_EQ(to_json(report, run)["first_broken"]["item"], item);
  }

  const Scratch folder;
  RunId run;
};

TEST_F(Chain, OfAnUnchangedRunIsIntact) {
  const ChainReport report = verify();
  EXPECT_EQ(report.state, ChainState::intact) << to_text(report, run);
  EXPECT_EQ(report.events, 12);
  EXPECT_EQ(report.checkpoints, 2);
  EXPECT_EQ(report.files, 4);
  EXPECT_EQ(report.last_link.size(), 64u);
  EXPECT_EQ(to_json(report, run)["first_broken"], nullptr);
}

TEST_F(Chain, FindsAFlippedByteOfAnEvent) {
  change("UPDATE events SET json=replace(json, '1.5', '1.4') WHERE sequence=4");
  expect_broken("event 4", "content");
}

TEST_F(Chain, FindsAChangedColumn) {
  change("UPDATE events SET value=0.25 WHERE sequence=5");
  expect_broken("event 5", "content");
}

TEST_F(Chain, FindsARemovedEvent) {
  change("DELETE FROM events WHERE sequence=7");
  expect_broken("event 7", "1 of 12 events are missing");
}

TEST_F(Chain, FindsSwappedEvents) {
  change(
      "UPDATE events SET sequence=100 WHERE sequence=2; UPDATE events SET sequence=2 WHERE sequence=3;"
      "UPDATE events SET sequence=3 WHERE sequence=100");
  expect_broken("event 2", "place in the record");
}

TEST_F(Chain, FindsATruncatedRecord) {
  change("DELETE FROM events WHERE sequence>10");
  expect_broken("event 11", "2 events at the end");
}

TEST_F(Chain, FindsAddedEvents) {
  change("INSERT INTO events(run, kind, json) SELECT run, kind, json FROM events WHERE sequence=12");
  expect_broken("event 13", "1 events were added");
  change("UPDATE events SET sequence=sequence+100 WHERE sequence>5; UPDATE events SET sequence=6 WHERE sequence=113");
  expect_broken("event 6", "no hash");
}

TEST_F(Chain, FindsAChangedExperiment) {
  change("UPDATE runs SET experiment=replace(experiment, '{', '{\"x\":1,')");
  expect_broken("experiment", "changed");
}

TEST_F(Chain, FindsChangedTruncatedAndMissingCheckpointFiles) {
  const auto file = checkpoint(2) / "adapter.safetensors";
  const std::string bytes = read_file(file);
  std::string flipped = bytes;
  flipped[3] = static_cast<char>(flipped[3] ^ 1);
  write_file_atomically(file, flipped);
  expect_broken("checkpoint at step 2", "content of adapter.safetensors");
  EXPECT_EQ(verify().events, 6);  // up to this checkpoint
  write_file_atomically(file, bytes.substr(1));
  expect_broken("checkpoint at step 2", "bytes");
  std::filesystem::remove(file);
  expect_broken("checkpoint at step 2", "missing");
  write_file_atomically(file, bytes);
  EXPECT_EQ(verify().state, ChainState::intact);
  std::filesystem::remove_all(checkpoint(4));
  expect_broken("checkpoint at step 4", "folder is missing");
}

TEST_F(Chain, AllowsThatOldCheckpointsWereRemovedAsTheSettingSays) {
  Store store(folder.path());
  add_checkpoint(store, 6);
  std::filesystem::remove_all(checkpoint(2));
  const ChainReport report = verify();
  EXPECT_EQ(report.state, ChainState::intact) << to_text(report, run);
  EXPECT_EQ(report.removed, 1);
  EXPECT_EQ(report.checkpoints, 2);
}

TEST_F(Chain, GoesOnAfterARewind) {
  Store store(folder.path());
  EXPECT_TRUE(store.rewind(run, 2));
  EXPECT_EQ(verify().events, 6);
  store.append(run, metric(3, 0.1));
  add_checkpoint(store, 4);
  EXPECT_EQ(verify().state, ChainState::intact) << to_text(verify(), run);
  store.rewind(run, 0);
  EXPECT_EQ(verify().events, 0);
  EXPECT_EQ(verify().state, ChainState::intact);
}

TEST_F(Chain, ARewindDoesNotHideAnEarlierChange) {
  change("UPDATE events SET value=0.25 WHERE sequence=2");
  Store(folder.path()).rewind(run, 4);
  expect_broken("event 2", "content");
}

TEST_F(Chain, HashesOnlyCheckpointsInTheFolderOfTheRun) {
  const Scratch other;
  write_file_atomically(other / "checkpoint-9/secret", "x");
  Store store(folder.path());
  store.append(run, {9, event::Checkpoint{9, (other / "checkpoint-9").string()}});
  EXPECT_EQ(verify().checkpoints, 2);
  EXPECT_EQ(verify().state, ChainState::intact);
}

TEST_F(Chain, OfARunOfAnEarlierVersionIsAbsent) {
  change("DELETE FROM chains");
  EXPECT_EQ(verify().state, ChainState::none);
  Store(folder.path()).append(run, metric(7, 1));  // such a run may be continued
  EXPECT_EQ(verify().state, ChainState::none);
}

TEST_F(Chain, AddsItsColumnsToAStoreOfAnEarlierVersion) {
  change("DROP TABLE chains; ALTER TABLE events DROP COLUMN link");
  EXPECT_EQ(verify().state, ChainState::none);
  Store store(folder.path());
  const RunId fresh = store.create(experiment::Experiment(), "");
  store.append(fresh, metric(1, 1));
  store.flush();
  EXPECT_EQ(verify_chain(store, fresh).events, 1);
  EXPECT_THROW(verify_chain(store, "run-99"), Error);
}

TEST_F(Chain, SurvivesADamagedCheckpointRecord) {
  change("UPDATE events SET json='[]' WHERE sequence=6");
  expect_broken("event 6", "content");
}

}  // namespace
}  // namespace mw::store
