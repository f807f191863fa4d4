// SPDX-License-Identifier: GPL-3.0-or-later
// A runs folder that disappears while a run is written: the record continues in a rescue folder, and nothing that
// writes reports success.
#include <gmock/gmock.h>
#include <stdlib.h>

#include "core/base/files.h"
#include "core/import/follow.h"
#include "core/import/import_files.h"
#include "core/jobs/job.h"
#include "core/plan/calibration/plan_context.h"
#include "core/train/checkpoint.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {
namespace fs = std::filesystem;
using test::error_id;
using test::metric;
using test::Scratch;
using testing::HasSubstr;

enum class Loss { deleted, moved, replaced };

void lose(const fs::path& folder, Loss how) {
  if (how == Loss::deleted) fs::remove_all(folder);
  if (how != Loss::deleted) fs::rename(folder, folder.string() + "-moved");
  if (how == Loss::replaced) store::Store(folder).create(experiment::Experiment(), "of the new store");
}

class LostStore : public testing::TestWithParam<Loss> {
 protected:
  Scratch scratch_;
  fs::path folder_ = scratch_ / "runs", rescue_ = scratch_ / "runs-rescued";
  void lose_it() const { lose(folder_, GetParam()); }
  void expect_failed(const event::Finished& finished) const {
    EXPECT_EQ(finished.state, RunState::failed);
    EXPECT_THAT(finished.error, HasSubstr(rescue_.string()));
    EXPECT_THAT(finished.error, HasSubstr(folder_.string() + ": the runs folder was deleted, moved or replaced"));
  }
};
INSTANTIATE_TEST_SUITE_P(Store, LostStore, testing::Values(Loss::deleted, Loss::moved, Loss::replaced));

TEST_P(LostStore, RecordsContinueInARescueFolderAndTheRunHasFailed) {
  store::RunId run;
  {
    store::Store store(folder_);
    const store::RunId other = store.create(experiment::Experiment(), "finished before");
    store.append(other, {1, event::Finished{}});
    run = store.create(experiment::Experiment(), "goes on");
    for (long step = 1; step <= 5; ++step) store.append(run, metric(step, 1));
    store.flush();
    lose_it();
    for (long step = 6; step <= 9; ++step) store.append(run, metric(step, 1));
    store.append(run, {9, event::Log{"info", "committed at once"}});
    ASSERT_TRUE(store.rescue());
    EXPECT_FALSE(store.gone());
    EXPECT_EQ(store.folder(), rescue_);
    EXPECT_EQ(store.run_folder(run), rescue_ / run);
    const auto notice = store.rescue_notice(9);
    ASSERT_TRUE(notice);
    EXPECT_FALSE(store.rescue_notice(9));
    expect_failed(store.finish(run, 10, {}));
    EXPECT_EQ(store::RunLock::try_lock(rescue_ / run), nullptr) << "the run is still this store's";
  }
  store::Store rescued(rescue_);
  ASSERT_EQ(rescued.list().size(), 2u);
  EXPECT_EQ(rescued.find(run)->state, RunState::failed);
  EXPECT_EQ(rescued.events(run).size(), 11u);
  EXPECT_EQ(rescued.find("run-1")->state, RunState::done);
  if (GetParam() == Loss::deleted) {
    EXPECT_FALSE(fs::exists(folder_));
  }
  if (GetParam() == Loss::replaced) {
    EXPECT_EQ(store::Store(folder_).list().size(), 1u);
  }
}

// Telemetry is committed by a thread, which notices first and may not move the store under its owner.
TEST_P(LostStore, TelemetryAloneIsRescuedToo) {
  store::Store store(folder_);
  const store::RunId run = store.create(experiment::Experiment(), "telemetry");
  lose_it();
  for (long step = 1; !store.rescue() && step < 10000; ++step) {
    store.append(run, metric(step, 1));
    ::usleep(1000);
  }
  ASSERT_TRUE(store.rescue());
  store.flush();
  EXPECT_FALSE(store::Store(rescue_).events(run).empty());
}

TEST_P(LostStore, RejectsNewRunsAndChanges) {
  store::Store store(folder_);
  const store::RunId run = store.create(experiment::Experiment(), "");
  lose_it();
  EXPECT_TRUE(store.gone());
  EXPECT_EQ(error_id([&] { store.create(experiment::Experiment(), ""); }), "STORE-GONE");
  EXPECT_EQ(error_id([&] { store.rename(run, "new name"); }), "STORE-GONE");
  EXPECT_EQ(error_id([&] { store.lock(run); }), "STORE-GONE");
  EXPECT_FALSE(store.rescue());
}

TEST_P(LostStore, ATrainingRunKeepsItsLastCheckpointInTheRescueFolder) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/tiny-lora.json");
  experiment::apply_sets(e, {"train.steps=6", "train.answers=0", "train.eval_every=0", "train.sample_every=0",
                             "train.checkpoint_every=2", "target.threads=2"});
  bool lost = false;
  std::vector<std::string> logs;
  const store::RunOutcome o = run_blocking({e, folder_, std::nullopt},
                                           [&](const Event& event) {
                                             if (const auto* log = std::get_if<event::Log>(&event.body))
                                               logs.push_back(log->text);
                                             const auto* m = std::get_if<event::Metric>(&event.body);
                                             if (m && m->step == 3 && !std::exchange(lost, true)) lose_it();
                                           },
                                           {});
  ASSERT_TRUE(lost);
  expect_failed(o.finished);
  EXPECT_EQ(o.finished.steps, 6);
  EXPECT_EQ(o.error, Error::Kind::failed);
  EXPECT_THAT(logs, testing::Contains(HasSubstr(rescue_.string()))) << "said at once, not only at the end";
  EXPECT_TRUE(fs::exists(train::checkpoint_path(rescue_ / "run-1", 6) / "adapter_model.safetensors"));
  if (GetParam() == Loss::deleted) {
    EXPECT_FALSE(fs::exists(folder_));
  }
}

TEST_P(LostStore, ASweepContinuesInTheRescueFolder) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
  experiment::apply_sets(e, {"sweep.input_lens=[512]", "sweep.request_rates=[1,2,4]"});
  long points = 0;
  const store::RunOutcome o =
      run_blocking({.experiment = e, .runs_folder = folder_, .resume = std::nullopt, .context = plan::load_once([] {
                                                                                       return plan::PlanContext::load(
                                                                                           MW_RESOURCES "/hardware");
                                                                                     })},
                   [&](const Event& event) {
                     if (std::get_if<event::ResultPoint>(&event.body) && ++points == 1) lose_it();
                   },
                   {});
  expect_failed(o.finished);
  EXPECT_EQ(points, 3);
  store::Store rescued(rescue_);
  long stored = 0;
  for (const store::StoredEvent& s : rescued.events("run-1"))
    stored += std::holds_alternative<event::ResultPoint>(s.event.body);
  EXPECT_EQ(stored, 3);
}

TEST_P(LostStore, AWatchedProgramsRunContinuesInTheRescueFolder) {
  bool lost = false;
  const store::RunOutcome o = importing::watch(
      {.command = {"sh", "-c", "echo first; sleep 0.3; echo second"}, .runs_folder = folder_}, [](const Event&) {},
      [&](const std::string&) {
        if (!std::exchange(lost, true)) lose_it();
      },
      {});
  ASSERT_TRUE(lost);
  expect_failed(o.finished);
  EXPECT_EQ(o.error, Error::Kind::failed);
  EXPECT_EQ(store::Store(rescue_).list().size(), 1u);
}

TEST_P(LostStore, AnImportFails) {
  store::Store store(folder_);
  const store::RunId run = store.create(experiment::Experiment(), "half imported");
  store.append(run, metric(1, 2));
  lose_it();
  EXPECT_EQ(error_id([&] { importing::finish_recorded(store, run, 1, {}); }), "STORE-GONE");
  EXPECT_EQ(store::Store(rescue_).find(run)->state, RunState::failed);
}

TEST(LostStorePlace, FallsBackToTheUsersStateFolder) {
  const Scratch scratch;
  const std::string state = scratch / "state";
  const char* before = ::getenv("XDG_STATE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_STATE_HOME", state.c_str(), 1);
  store::Store store(scratch / "project/runs");
  const store::RunId run = store.create(experiment::Experiment(), "");
  store.append(run, metric(1, 1));
  fs::remove_all(scratch / "project");
  store.append(run, {1, event::Log{"info", "x"}});
  before ? ::setenv("XDG_STATE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(store.folder(), fs::path(state) / "meshwright/runs-rescued");
  EXPECT_EQ(store::Store(store.folder()).events(run).size(), 2u);
}

// Closing the last connection deletes the log by its path, which by then is the new store's.
TEST(LostStorePlace, ANewStoreInItsPlaceKeepsItsOwnLog) {
  const Scratch scratch;
  const fs::path folder = scratch / "runs";
  auto old = std::make_unique<store::Store>(folder);
  old->append(old->create(experiment::Experiment(), "old"), {0, event::Log{"info", "old"}});
  fs::rename(folder, scratch / "away");
  store::Store fresh(folder);
  const store::RunId run = fresh.create(experiment::Experiment(), "new");
  for (int i = 0; i < 50; ++i) fresh.append(run, {0, event::Log{"info", std::to_string(i)}});
  ASSERT_TRUE(fs::exists(folder / "runs.sqlite-wal"));
  old.reset();
  EXPECT_TRUE(fs::exists(folder / "runs.sqlite-wal"));
  EXPECT_EQ(store::Store(folder).events(run).size(), 50u);
}

}  // namespace
}  // namespace mw::jobs
