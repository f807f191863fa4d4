// SPDX-License-Identifier: GPL-3.0-or-later
// A record that breaks off anywhere and is continued is that of a run that never broke off, times and speeds aside.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "core/hardware/catalogue.h"
#include "core/jobs/job.h"
#include "core/store/chain.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {

// Everything but times, speeds and what each process says of itself.
std::vector<std::string> results_of(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const store::StoredEvent& s : store::Store(folder).events("run-1")) {
    Json e = to_json(Event{0, s.event.body}, "");
    const std::string kind = e["event"];
    if (kind == "finished") e.erase("seconds"), e.erase("summary");
    if (kind == "checkpoint") e.erase("path");
    if (kind == "memory") e.erase("bytes");  // of this process: after a resume it holds no buffers of steps yet
    const bool memory = kind == "memory" && e["phase"] != "load";
    if (kind != "metric" && kind != "point" && kind != "checkpoint" && kind != "finished" && !memory) continue;
    if (e.value("name", "") != "train/tokens_per_second") all.push_back(e.dump());
  }
  return all;
}

std::int64_t sequence_of_last(const std::filesystem::path& folder, const std::function<bool(const Event&)>& is) {
  std::int64_t found = 0;
  for (const store::StoredEvent& s : store::Store(folder).events("run-1"))
    if (is(s.event)) found = s.sequence;
  return found;
}

// As a process leaves it that is killed before it stores the event of that number.
void break_off(const std::filesystem::path& folder, std::int64_t sequence) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "runs.sqlite").c_str(), &db), SQLITE_OK);
  const std::string statement = "DELETE FROM events WHERE sequence >= " + std::to_string(sequence);
  ASSERT_EQ(sqlite3_exec(db, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

JobRequest request_of(const experiment::Experiment& e, const std::filesystem::path& folder, bool resumed) {
  return {.experiment = e,
          .runs_folder = folder,
          .resume = resumed ? std::optional<store::RunId>("run-1") : std::nullopt,
          .catalogue = [] { return hardware::Catalogue::load(MW_RESOURCES "/hardware"); }};
}

void expect_done(const experiment::Experiment& e, const std::filesystem::path& folder, bool resumed) {
  const store::RunOutcome o = run_blocking(request_of(e, folder, resumed), [](const Event&) {}, {});
  ASSERT_EQ(o.finished.state, RunState::done) << o.finished.error;
}

TEST(Resume, RecordsACheckpointThatWasOnlyWritten) {
  const test::Scratch folder;
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/tiny-lora.json");
  experiment::apply_sets(e, {"train.steps=4", "train.answers=0", "train.eval_every=2", "train.eval_rows=8",
                             "train.sample_every=0", "train.checkpoint_every=2", "target.threads=2"});
  expect_done(e, folder.path(), false);
  const auto whole = results_of(folder.path());
  for (const long step : {4L, 2L}) {
    break_off(folder.path(), sequence_of_last(folder.path(), [&](const Event& event) {
                const auto* c = std::get_if<event::Checkpoint>(&event.body);
                return c && c->step == step;
              }));
    if (step == 2) std::filesystem::remove_all(folder.path() / "run-1/checkpoint-4");
    expect_done(e, folder.path(), true);
    EXPECT_EQ(results_of(folder.path()), whole) << "broken off at step " << step;
    const store::ChainReport chain = store::verify_chain(store::Store(folder.path()), "run-1");
    EXPECT_EQ(chain.state, store::ChainState::intact) << to_text(chain, "run-1");
    EXPECT_EQ(chain.checkpoints, 2);
  }
}

TEST(Resume, ASweepCountsTheTokensOfAllItsPoints) {
  const test::Scratch folder;
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
  experiment::apply_sets(e, {"sweep.input_lens=[512]", "sweep.request_rates=[1,2,4]", "sweep.prompts=salted"});
  expect_done(e, folder.path(), false);
  const auto whole = results_of(folder.path());
  for (const long points : {0L, 1L, 2L, 3L}) {
    const std::int64_t next = sequence_of_last(folder.path(), [&](const Event& event) {
      const auto* p = std::get_if<event::Point>(&event.body);
      return std::holds_alternative<event::Finished>(event.body) ? points == 3 : p && p->step == points + 1;
    });
    break_off(folder.path(), next);
    expect_done(e, folder.path(), true);
    EXPECT_EQ(results_of(folder.path()), whole) << "broken off after " << points << " points";
  }
}

}  // namespace
}  // namespace mw::jobs
