// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/store.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/files.h"
#include "core/store/run_settings.h"
#include "tests/base/file_faults.h"
#include "tests/store/store_fixture.h"

namespace mw::store {
namespace {
using test::metric;
using test::Scratch;

experiment::Experiment experiment(int steps) {
  experiment::Experiment e;
  e.set("train.steps", std::to_string(steps));
  e.set("lora.rank", "8");
  e.set("model.id", "gemma3-270m");
  return e;
}

TEST(Store, KeepsTheFrozenExperimentWithUnknownKeysAndItsFolder) {
  const Scratch folder;
  const experiment::Experiment frozen = experiment::Experiment::from_json(
      parse_json(R"({"schema":1,"model":{"path":"m"},"future":{"z":1,"a":[2.5,null]}})", "t"), "/some/where");
  RunId run;
  {
    Store store(folder.path() / "deep" / "store");
    run = store.create(frozen, "first");
  }
  const Store store(folder.path() / "deep" / "store");
  EXPECT_EQ(run, "run-1");
  EXPECT_EQ(store.experiment(run).json().dump(), frozen.json().dump());
  EXPECT_EQ(store.experiment(run).path("model.path"), "/some/where/m");
  EXPECT_TRUE(std::filesystem::is_directory(store.run_folder(run)));
}

TEST(Store, RandomEventsRoundTrip) {
  const Scratch folder;
  std::vector<std::string> expected;
  RunId run;
  {
    Store store(folder.path());
    run = store.create(experiment(10), "");
    const RunId other = store.create(experiment(10), "");
    Rng rng({2024});
    for (int i = 0; i < 3000; ++i) {
      const Event e = test::random_event(rng);
      store.append(run, e);
      expected.push_back(test::fingerprint(e));
      if (i % 3 == 0) store.append(other, metric(i, 1));
    }
  }
  const Store store(folder.path());
  const auto events = store.events(run);
  ASSERT_EQ(events.size(), expected.size());
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(test::fingerprint(events[i].event), expected[i]) << i;
    ASSERT_TRUE(i == 0 || events[i].sequence > events[i - 1].sequence);
  }
  const auto tail = store.events(run, events[2990].sequence);
  ASSERT_EQ(tail.size(), 9u);
  EXPECT_EQ(test::fingerprint(tail[0].event), expected[2991]);
}

TEST(Store, RowIsComputedFromExperimentAndEvents) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(30), "mine");
  RunRow row = *store.find(run);
  EXPECT_EQ(row.name, "mine");
  EXPECT_EQ(row.model, "gemma3-270m");
  EXPECT_EQ(row.method, "lora r8");
  EXPECT_EQ(row.source, "measured");
  EXPECT_EQ(row.state, RunState::queued);
  EXPECT_EQ(row.steps_total, 30);
  EXPECT_EQ(row.created.size(), 20u);
  EXPECT_FALSE(row.train_loss);

  store.append(run, {0, event::Started{Json{{"steps", 25}}}});
  store.append(run, metric(3, 2.5));
  store.append(run, metric(3, 2.75, "eval/loss"));
  Ledger ledger;
  ledger[MemoryCategory::weights] = Bytes(1000);
  store.append(run, {4, event::Memory{0, 3, "backward", ledger, Bytes(1500)}});
  row = *store.find(run);
  EXPECT_EQ(row.state, RunState::running);
  EXPECT_EQ(row.steps_total, 25);
  EXPECT_EQ(row.steps_done, 3);
  EXPECT_EQ(row.train_loss, 2.5);
  EXPECT_EQ(row.eval_loss, 2.75);
  EXPECT_EQ(row.peak, Bytes(1500));
  EXPECT_EQ(row.seconds, 4);

  store.append(run, {5, event::StateChanged{RunState::paused}});
  EXPECT_EQ(store.find(run)->state, RunState::paused);
  store.append(run, metric(4, std::nan("")));
  EXPECT_FALSE(store.find(run)->train_loss);  // the last one is no number
  store.append(run, {9, event::Finished{RunState::failed, 4, 777, 8.5, Bytes(1600), "loss is NaN", Json()}});
  row = *store.find(run);
  EXPECT_EQ(row.state, RunState::failed);
  EXPECT_EQ(row.tokens, 777);
  EXPECT_EQ(row.peak, Bytes(1600));
  EXPECT_EQ(row.error, "loss is NaN");
}

TEST(Store, TelemetryIsCommittedWithoutFurtherEvents) {
  const Scratch folder;
  Store writer(folder.path());
  const RunId run = writer.create(experiment(5), "");
  Store reader(folder.path());
  double slowest = 0;
  for (int i = 0; i < 5; ++i) {
    writer.append(run, metric(i, 1));
    const auto start = std::chrono::steady_clock::now();
    std::chrono::duration<double> waited{};
    while (reader.events(run).size() != static_cast<size_t>(i + 1) && waited.count() < 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      waited = std::chrono::steady_clock::now() - start;
    }
    slowest = std::max(slowest, waited.count());
  }
  EXPECT_GT(slowest, 0.05);                           // it is batched
  EXPECT_LT(slowest, test::kInstrumented ? 5 : 0.5);  // 0.2 s promised; the machine may be busy
}

TEST(Store, OtherEventsCommitAtOnceWithAllEarlierTelemetry) {
  const Scratch folder;
  Store writer(folder.path());
  const RunId run = writer.create(experiment(5), "");
  Store reader(folder.path());
  writer.append(run, metric(1, 1));
  writer.append(run, {1, event::Checkpoint{1, "c"}});
  EXPECT_EQ(reader.events(run).size(), 2u);
  writer.append(run, metric(2, 1));
  writer.flush();
  EXPECT_EQ(reader.events(run).size(), 3u);
}

TEST(Store, AppendingCostsFarBelowAMillisecondAndLoadingIsQuick) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(5), "");
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < 100000; ++i) store.append(run, metric(i, 1.0 / static_cast<double>(i + 1)));
  store.flush();
  const std::chrono::duration<double> written = std::chrono::steady_clock::now() - start;
  const auto again = std::chrono::steady_clock::now();
  const auto events = store.events(run);
  const std::chrono::duration<double> loaded = std::chrono::steady_clock::now() - again;
  EXPECT_EQ(events.size(), 100000u);
  RecordProperty("append_us", std::to_string(written.count() / 100000 * 1e6));
  RecordProperty("load_100k_s", std::to_string(loaded.count()));
  std::printf("append %.1f us each, loading 100k events %.2f s\n", written.count() * 10, loaded.count());
  if (test::kInstrumented) return;
  EXPECT_LT(written.count() / 100000, 0.0005);
  EXPECT_LT(loaded.count(), 3);  // 0.5 s on an idle machine
}

TEST(Store, RewindRemovesTheLaterPartAndReopensTheRun) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(10), "");
  const RunId other = store.create(experiment(10), "");
  store.append(run, {0, event::Started{Json{{"steps", 10}}}});
  for (long step = 1; step <= 8; ++step) {
    store.append(run, metric(step, static_cast<double>(step)));
    store.append(other, metric(step, 1));
    if (step == 5) store.append(run, {5, event::Checkpoint{5, "c5"}});
    if (step == 5) store.append(run, {5, event::Log{"info", "saved"}});
  }
  store.append(run, {8, event::Log{"error", "power failed"}});
  store.append(run, {8, event::Finished{RunState::failed, 8, 80, 8, Bytes(9), "interrupted", Json()}});
  const auto last = store.events(run).back().sequence;
  store.rewind(run, 5);
  const auto left = store.events(run);
  ASSERT_EQ(left.size(), 7u);  // started, five metrics, checkpoint; what came after it is made again
  EXPECT_TRUE(std::holds_alternative<event::Checkpoint>(left.back().event.body));
  const RunRow row = *store.find(run);
  EXPECT_EQ(row.state, RunState::running);
  EXPECT_EQ(row.steps_done, 5);
  EXPECT_EQ(row.train_loss, 5);
  EXPECT_EQ(row.error, "");
  EXPECT_EQ(store.events(other).size(), 8u);
  store.append(run, metric(6, 0.5));
  EXPECT_GT(store.events(run).back().sequence, last);  // never used again
}

TEST(Store, RewindToTheLastStepRemovesOnlyTheFinishedEvent) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(10), "");
  for (long step = 1; step <= 4; ++step) store.append(run, metric(step, 1));
  store.append(run, {4, event::Finished{RunState::cancelled, 4, 1, 4, Bytes(1), "", Json()}});
  store.rewind(run, 4);
  EXPECT_EQ(store.events(run).size(), 4u);
  store.rewind(run, 100);
  EXPECT_EQ(store.events(run).size(), 4u);
  store.rewind(run, 0);
  EXPECT_TRUE(store.events(run).empty());
}

TEST(Store, RewindToTheStartRemovesEventsOfStepZero) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(10), "");
  store.append(run, {0, event::Started{Json{{"steps", 10}}}});
  store.append(run, metric(0, 2.5, "eval/loss"));
  store.append(run, metric(1, 2));
  EXPECT_TRUE(store.rewind(run, 0));
  EXPECT_TRUE(store.events(run).empty());
  EXPECT_FALSE(store.find(run)->eval_loss);
  EXPECT_EQ(store.find(run)->state, RunState::running);
}

TEST(Store, RewindReturnsWhetherTheRecordHasTheCheckpoint) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(10), "");
  for (long step = 1; step <= 4; ++step) store.append(run, metric(step, 1));
  EXPECT_FALSE(store.rewind(run, 3));
  EXPECT_EQ(store.events(run).size(), 3u);
  store.append(run, {3, event::Checkpoint{3, "c3"}});
  EXPECT_TRUE(store.rewind(run, 3));
}

TEST(Store, RenameTagsAndDeletionAreUndoable) {
  const Scratch folder;
  Store store(folder.path());
  const RunId a = store.create(experiment(1), "a"), b = store.create(experiment(1), "b");
  store.append(a, metric(1, 1));
  store.rename(a, "a '); DROP TABLE runs; --");
  store.set_tags(a, "good, \xC3\xA4");
  EXPECT_EQ(store.list().front().id, b);  // newest first
  store.set_deleted(a, Trash::deleted);
  EXPECT_EQ(store.list().size(), 1u);
  ASSERT_EQ(store.list(Trash::deleted).size(), 1u);
  EXPECT_EQ(store.list(Trash::deleted)[0].tags, "good, \xC3\xA4");
  EXPECT_EQ(store.events(a).size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(store.run_folder(a)));
  store.set_deleted(a, Trash::kept);
  ASSERT_EQ(store.list().size(), 2u);
  EXPECT_EQ(store.list()[1].name, "a '); DROP TABLE runs; --");
}

TEST(Store, VersionFollowsTheChangesOfEveryStore) {
  const Scratch folder;
  Store store(folder.path()), other(folder.path());
  const RunId run = store.create(experiment(1), "one");
  const auto before = store.version();
  ASSERT_TRUE(before);
  store.list();
  EXPECT_EQ(store.version(), before);
  store.rename(run, "two");
  const auto renamed = store.version();
  EXPECT_NE(renamed, before);
  other.append(run, metric(1, 2));
  other.flush();
  EXPECT_NE(store.version(), renamed);
  const auto after = store.version();
  EXPECT_EQ(store.version(), after);
}

TEST(Store, DeletedRunsMoveToTheTrashFolderAndArePurgedFromThere) {
  const Scratch folder;
  Store store(folder.path());
  const RunId a = store.create(experiment(1), "a"), b = store.create(experiment(1), "b");
  store.append(a, metric(1, 1));
  write_file_atomically(store.run_folder(a) / "weights", "w");
  EXPECT_EQ(test::error_id([&] { store.purge(a); }), "RUN-KEPT");
  {
    const auto held = store.lock(a);
    EXPECT_EQ(test::error_id([&] { store.set_deleted(a, Trash::deleted); }), "RUN-LOCKED");
  }
  store.set_deleted(a, Trash::deleted);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / a));
  EXPECT_EQ(read_file(folder.path() / "trash" / a / "weights"), "w");
  EXPECT_EQ(read_file(store.run_folder(a) / "weights"), "w");
  EXPECT_EQ(store.create(experiment(1), "c"), "run-3");  // never the id of a deleted run
  store.set_deleted(a, Trash::kept);
  EXPECT_EQ(read_file(folder.path() / a / "weights"), "w");
  store.set_deleted(a, Trash::deleted);
  store.purge(a);
  EXPECT_TRUE(store.list(Trash::deleted).empty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "trash" / a));
  EXPECT_EQ(test::error_id([&] { store.events(a); }), "RUN-UNKNOWN");
  EXPECT_EQ(store.list().size(), 2u);
}

TEST(Store, DeletesManyRunsUpToOneThatIsLocked) {
  const Scratch folder;
  Store store(folder.path());
  std::vector<RunId> runs;
  for (int i = 0; i < 230; ++i) runs.push_back(store.create(experiment(1), "a"));
  const std::unique_ptr<RunLock> held = store.lock(runs[210]);
  EXPECT_EQ(test::error_id([&] { store.set_deleted(runs, Trash::deleted); }), "RUN-LOCKED");
  EXPECT_EQ(store.list(Trash::deleted).size(), 210u);
  EXPECT_EQ(store.list().size(), 20u);
  for (size_t i = 0; i < runs.size(); ++i)
    EXPECT_EQ(std::filesystem::exists(folder.path() / "trash" / runs[i]), i < 210) << runs[i];
  EXPECT_TRUE(store.recover().empty());
  EXPECT_EQ(store.list(Trash::deleted).size(), 210u);
}

// Whatever happens in the middle of a deletion, the run is listed once, with its record and its files.
TEST(Store, DeletionInterruptedAtAnyChangeLosesNothing) {
  const auto check = [](const std::filesystem::path& folder) {
    Store store(folder);
    store.recover();
    const bool deleted = store.list().empty();
    ASSERT_EQ(store.list().size() + store.list(Trash::deleted).size(), 1u);
    EXPECT_EQ(store.events("run-1").size(), 1u);
    EXPECT_EQ(read_file(store.run_folder("run-1") / "weights"), "w");
    EXPECT_EQ(std::filesystem::exists(folder / "run-1"), !deleted);
    EXPECT_EQ(std::filesystem::exists(folder / "trash" / "run-1"), deleted);
  };
  test::try_every_fault(
      {.prepare =
           [](const auto& folder) {
             Store store(folder);
             store.create(experiment(1), "a");
             store.append("run-1", {1, event::Finished{RunState::done, 1, 1, 1, Bytes(), "", Json()}});
             write_file_atomically(store.run_folder("run-1") / "weights", "w");
           },
       .write = [](const auto& folder) { Store(folder).set_deleted("run-1", Trash::deleted); },
       .check_written =
           [&](const auto& folder) {
             check(folder);
             EXPECT_TRUE(Store(folder).list().empty());
           },
       .check_unwritten = check});
}

TEST(RunSettings, EqualNamesAreToldApartByTheSettingsThatDiffer) {
  const auto run = [](const RunId& id, const char* rank, const char* seed) {
    experiment::Experiment e = experiment(1);
    e.set("lora.rank", rank);
    e.set("train.seed", seed);
    return NamedRun{id, "tiny", settings_of(e)};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(distinct_names({run("run-1", "8", "0"), run("run-2", "16", "0")}), (Names{"tiny r8", "tiny r16"}));
  EXPECT_EQ(distinct_names({run("run-1", "8", "0"), run("run-2", "8", "1"), run("run-3", "16", "1")}),
            (Names{"tiny r8, seed 0", "tiny r8, seed 1", "tiny r16, seed 1"}));
  EXPECT_EQ(distinct_names({run("run-1", "8", "0"), run("run-2", "8", "0")}), (Names{"tiny (run-1)", "tiny (run-2)"}));
  EXPECT_EQ(distinct_names({run("run-1", "8", "0"), {.id = "run-2", .name = "big"}}), (Names{"tiny", "big"}));
  const Scratch folder;
  Store store(folder.path());
  store.create(experiment(1), "a");
  store.create(experiment(2), "a");
  EXPECT_EQ(distinct_name(store, "run-1"), "a steps 1");
  for (int i = 0; i < 100; ++i) store.create(experiment(3), "a");
  EXPECT_EQ(distinct_name(store, "run-1"), "a (run-1)");  // too many to compare
  const auto changes = setting_changes(settings_of(experiment(1)), settings_of(experiment(2)));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].key + changes[0].before + changes[0].after, "train.steps12");
}

TEST(Store, CountsTheAnswersAfterTheLastStep) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(1), "a");
  EXPECT_FALSE(store.last_answers(run));
  const auto sample = [&](long step, const char* prompt, const char* verdict) {
    store.append(run,
                 {1, event::Sample{.step = step, .prompt = prompt, .text = "t", .expected = "e", .verdict = verdict}});
  };
  sample(0, "a", "wrong");
  sample(9, "a", "wrong");
  sample(9, "b", "right");
  sample(9, "a", "right");  // answered again after the same step
  sample(9, "c", "wrong");
  EXPECT_EQ(*store.last_answers(run), (ScoredAnswers{9, 2, 3}));
  EXPECT_EQ(to_text(*store.last_answers(run)), "2 of 3");
  const auto [low, high] = ScoredAnswers{0, 49, 60}.interval();  // Wilson: 0.7008, 0.8934
  EXPECT_NEAR(low, 0.7008, 5e-4);
  EXPECT_NEAR(high, 0.8944, 2e-3);
}

TEST(Store, UnknownRunsAreRejected) {
  const Scratch folder;
  Store store(folder.path());
  for (const char* run : {"run-7", "run-", "run-0", "run--1", "", "../../etc", "run-1x", "run-99999999999999999999"}) {
    EXPECT_EQ(test::error_id([&] { store.append(run, metric(1, 1)); }), "RUN-UNKNOWN") << run;
    EXPECT_EQ(test::error_id([&] { store.rename(run, "x"); }), "RUN-UNKNOWN") << run;
    EXPECT_EQ(test::error_id([&] { store.events(run); }), "RUN-UNKNOWN") << run;
    EXPECT_EQ(test::error_id([&] { store.experiment(run); }), "RUN-UNKNOWN") << run;
    EXPECT_EQ(test::error_id([&] { store.lock(run); }), "RUN-UNKNOWN") << run;
    EXPECT_EQ(test::error_id([&] { store.rewind(run, 1); }), "RUN-UNKNOWN") << run;
    EXPECT_FALSE(store.find(run));
  }
  EXPECT_EQ(test::error_id([&] { store.run_folder("../../etc"); }), "RUN-UNKNOWN");
}

TEST(Store, NewRunNeverReusesTheFolderOfAnOldRun) {
  const Scratch folder;
  std::filesystem::create_directories(folder.path() / "run-1");
  std::filesystem::create_directories(folder.path() / "run-2");
  Store store(folder.path());
  EXPECT_EQ(store.create(experiment(1), ""), "run-3");
  EXPECT_EQ(store.create(experiment(1), ""), "run-4");
}

TEST(Store, InvalidUtf8FromAModelIsKeptAsReplacementCharacters) {
  const Scratch folder;
  Store store(folder.path());
  const RunId run = store.create(experiment(1), "");
  store.append(run, {1, event::Sample{1, "p", "half \xE6\x97", "", ""}});
  const auto events = store.events(run);
  EXPECT_EQ(std::get<event::Sample>(events.at(0).event.body).text, "half \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(DefaultFolder, FollowsTheEnvironment) {
  const auto with = [](const char* chosen, const char* data, const char* home) {
    const auto set = [](const char* name, const char* value) {
      if (value)
        ::setenv(name, value, 1);
      else
        ::unsetenv(name);
    };
    set("MESHWRIGHT_RUNS", chosen);
    set("XDG_DATA_HOME", data);
    set("HOME", home);
    return default_folder();
  };
  const std::string home = ::getenv("HOME") ? ::getenv("HOME") : "/";
  EXPECT_EQ(with("/r", "/d", "/h"), "/r");
  EXPECT_EQ(with(nullptr, "/d", "/h"), "/d/meshwright");
  EXPECT_EQ(with(nullptr, "relative", "/h"), "/h/.local/share/meshwright");
  EXPECT_EQ(with(nullptr, nullptr, "/h"), "/h/.local/share/meshwright");
  EXPECT_EQ(with(nullptr, nullptr, ""), "");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  EXPECT_EQ(with(nullptr, nullptr, "relative"), "");
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace mw::store
