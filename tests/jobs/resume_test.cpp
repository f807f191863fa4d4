// SPDX-License-Identifier: GPL-3.0-or-later
// A record that breaks off anywhere and is continued is that of a run that never broke off, times and speeds aside.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <tuple>

#include "core/formats/logs/run_log.h"
#include "core/jobs/job.h"
#include "core/plan/calibration/plan_context.h"
#include "core/store/chain.h"
#include "core/train/checkpoint.h"
#include "tests/jobs/quick_experiment.h"
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
          .context = plan::load_once([] { return plan::PlanContext::load(MW_RESOURCES "/hardware"); })};
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

Json summary_of(const std::filesystem::path& folder) {
  const auto events = store::Store(folder).events("run-1");
  return std::get<event::Finished>(events.back().event.body).summary;
}

// As a process leaves the run that is killed after it wrote the checkpoint of that step.
void kill_after_checkpoint(const std::filesystem::path& folder, long step) {
  break_off(folder, 1 + sequence_of_last(folder, [&](const Event& event) {
                      const auto* c = std::get_if<event::Checkpoint>(&event.body);
                      return c && c->step == step;
                    }));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run-1"))
    if (const std::string name = entry.path().filename().string(); name.starts_with("checkpoint-"))
      if (std::stol(name.substr(11)) > step) std::filesystem::remove_all(entry.path());
}

void expect_results(const std::filesystem::path& folder, const std::vector<std::string>& whole, long step) {
  const std::vector<std::string> found = results_of(folder);
  ASSERT_EQ(found.size(), whole.size()) << "killed after the checkpoint of step " << step;
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(found[i], whole[i]) << "killed after the checkpoint of step " << step;
}

// Values, not memory: a resumed process has not had the largest batch yet.
void expect_same_bits(const test::Scratch& folder, const experiment::Experiment& e) {
  const auto results = [&] {
    const store::Store runs(folder.path());
    const std::filesystem::path last = train::checkpoint_path(folder.path() / "run-1", 15);
    return std::tuple(runs.metric("run-1", "train/loss"), runs.metric("run-1", "train/grad_norm"),
                      runs.metric("run-1", "eval/loss"), read_file(last / "adapter_model.safetensors"),
                      read_file(last / "trainer_state.safetensors"));
  };
  expect_done(e, folder.path(), false);
  const auto whole = results();
  for (const long step : {10L, 5L}) {
    kill_after_checkpoint(folder.path(), step);
    expect_done(e, folder.path(), true);
    EXPECT_TRUE(results() == whole) << "killed after the checkpoint of step " << step;
  }
}

TEST(Resume, TrainsDoraOnAMeshToTheSameBits) {
  const test::Scratch folder;
  expect_same_bits(folder, test::quick_experiment(folder.path(), {"train.steps=15", "lora.dora=true",
                                                                  "lora.plus_ratio=4", "mesh.fsdp=2", "mesh.tp=2"}));
}

// More steps than an epoch has.
TEST(Resume, TrainsWithoutDuplicatesToTheSameBits) {
  const test::Scratch folder;
  const experiment::Experiment e =
      test::quick_experiment(folder.path(), {"train.steps=15", "data.dedup=true", "data.packing=true"});
  const std::string rows = read_file(folder.path() / "rows.jsonl");
  write_file_atomically(folder.path() / "rows.jsonl", rows + rows);
  expect_same_bits(folder, e);
  const auto events = store::Store(folder.path()).events("run-1");
  const auto started = std::find_if(events.begin(), events.end(), [](const store::StoredEvent& s) {
    return std::holds_alternative<event::Started>(s.event.body);
  });
  ASSERT_NE(started, events.end());
  const Json data = std::get<event::Started>(started->event.body).info.at("data");
  EXPECT_GT(data.at("dropped_repeated").get<int>(), 0);
  EXPECT_GT(data.at("dropped_held_out").get<int>(), 0);
  EXPECT_EQ(
      data.at("kept").get<int>() + data.at("dropped_repeated").get<int>() + data.at("dropped_held_out").get<int>(), 80);
}

TEST(Resume, KeepsTheBestCheckpointAndThePatience) {
  const test::Scratch folder;
  const std::filesystem::path run = folder.path() / "run-1";
  const experiment::Experiment e =
      test::quick_experiment(folder.path(), {"train.keep_best=eval_loss", "train.patience=2", "train.sample_every=0"});
  expect_done(e, folder.path(), false);
  const auto whole = results_of(folder.path());
  const Json stop = summary_of(folder.path())["early_stop"], best = summary_of(folder.path())["best"];
  ASSERT_TRUE(stop.is_object() && best.is_object()) << summary_of(folder.path());
  const long best_step = best["step"], last_step = stop["step"];
  EXPECT_EQ(last_step, best_step + 2 * 3) << "two evaluations without a better one";
  EXPECT_EQ(train::chosen_checkpoint(run, train::CheckpointChoice::best), train::checkpoint_path(run, best_step));
  EXPECT_EQ(train::latest_checkpoint(run), train::checkpoint_path(run, last_step));
  std::vector<long> steps;
  for (const store::StoredEvent& s : store::Store(folder.path()).events("run-1"))
    if (const auto* c = std::get_if<event::Checkpoint>(&s.event.body)) steps.push_back(c->step);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    kill_after_checkpoint(folder.path(), *step);
    std::filesystem::remove(run / "best_checkpoint.json");
    expect_done(e, folder.path(), true);
    expect_results(folder.path(), whole, *step);
    EXPECT_EQ(summary_of(folder.path())["early_stop"], stop);
    EXPECT_EQ(summary_of(folder.path())["best"], best);
    EXPECT_EQ(train::read_best_checkpoint(run)->step, best_step);
  }
}

TEST(Resume, RepeatsAnEvaluationThatAStopInterrupted) {
  const test::Scratch whole, stopped;
  const experiment::Experiment e =
      test::quick_experiment(whole.path(), {"train.keep_best=eval_loss", "train.patience=2"});
  expect_done(e, whole.path(), false);
  std::stop_source stop;
  const EventSink stop_before_evaluation = [&](const Event& event) {
    const auto* m = std::get_if<event::Metric>(&event.body);
    if (m && m->name == "train/loss" && m->step == 6) stop.request_stop();
  };
  const auto outcome = run_blocking(request_of(e, stopped.path(), false), stop_before_evaluation, stop.get_token());
  ASSERT_EQ(outcome.finished.state, RunState::cancelled);
  expect_done(e, stopped.path(), true);
  for (const char* name : {"eval/loss", "train/loss"})
    EXPECT_EQ(store::Store(stopped.path()).metric("run-1", name), store::Store(whole.path()).metric("run-1", name));
  EXPECT_EQ(summary_of(stopped.path())["early_stop"], summary_of(whole.path())["early_stop"]);
  EXPECT_EQ(summary_of(stopped.path())["best"], summary_of(whole.path())["best"]);
}

TEST(Resume, WritesCurvesThatGoOnInAnotherFile) {
  const test::Scratch folder;
  const std::filesystem::path curves = folder.path() / "curves" / "run-1";
  const experiment::Experiment e = test::quick_experiment(
      folder.path(), {"train.steps=10", "train.tensorboard=" + (folder.path() / "curves").string()});
  expect_done(e, folder.path(), false);
  const auto losses = store::Store(folder.path()).metric("run-1", "train/loss");
  std::vector<std::pair<long, double>> written;
  for (const formats::Scalar& s : formats::read_log(curves).scalars)
    if (s.name == "train/loss") written.emplace_back(s.step, s.value);
  ASSERT_EQ(written.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(written[i].second, losses[i].second, 1e-6 * losses[i].second);
  kill_after_checkpoint(folder.path(), 5);
  expect_done(e, folder.path(), true);
  const std::filesystem::directory_iterator files(curves);
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST(Resume, TrainsOnIfCurvesCannotBeWritten) {
  const test::Scratch folder;
  write_file_atomically(folder.path() / "curves", "a file");
  const experiment::Experiment e = test::quick_experiment(
      folder.path(), {"train.steps=2", "train.tensorboard=" + (folder.path() / "curves").string()});
  expect_done(e, folder.path(), false);
  int warnings = 0;
  for (const store::StoredEvent& s : store::Store(folder.path()).events("run-1"))
    if (const auto* log = std::get_if<event::Log>(&s.event.body))
      warnings += log->level == "warning" && log->text.find("TensorBoard") != std::string::npos;
  EXPECT_EQ(warnings, 1);
}

TEST(Resume, ASweepCountsTheTokensOfAllItsPoints) {
  const test::Scratch folder;
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
  experiment::apply_sets(e, {"sweep.input_lens=[512]", "sweep.request_rates=[1,2,4]", "sweep.prompts=salted"});
  expect_done(e, folder.path(), false);
  const auto whole = results_of(folder.path());
  for (const long points : {0L, 1L, 2L, 3L}) {
    const std::int64_t next = sequence_of_last(folder.path(), [&](const Event& event) {
      const auto* p = std::get_if<event::ResultPoint>(&event.body);
      return std::holds_alternative<event::Finished>(event.body) ? points == 3 : p && p->step == points + 1;
    });
    break_off(folder.path(), next);
    expect_done(e, folder.path(), true);
    EXPECT_EQ(results_of(folder.path()), whole) << "broken off after " << points << " points";
  }
}

}  // namespace
}  // namespace mw::jobs
