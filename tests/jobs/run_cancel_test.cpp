// SPDX-License-Identifier: GPL-3.0-or-later
// A thousand runs on a mesh, each stopped somewhere between its first instant and its steps: no thread, lock, open file
// or memory is left of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/rng.h"
#include "core/jobs/job.h"
#include "tests/store/store_fixture.h"
#include "tests/train/random_model.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;

long entries(const char* folder) {
  const fs::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}
long threads() {
  return entries("/proc/self/task");
}
long open_files() {
  return entries("/proc/self/fd");
}
// Anonymous memory that is in use, in bytes: arenas are mapped, so that what a run forgot would stand here.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  return -1;
}

experiment::Experiment experiment_in(const fs::path& folder) {
  train::test::random_model("gemma3", folder);
  std::string rows;
  for (int i = 0; i < 24; ++i)
    rows += Json{{"prompt", "What is " + std::to_string(i) + "?"}, {"completion", "it"}}.dump() + "\n";
  write_file_atomically(folder / "rows.jsonl", rows);
  Json e = parse_json(R"({"schema": 1, "mesh": {"fsdp": 2, "tp": 2}, "lora": {"rank": 2},
    "data": {"max_len": 48, "eval_fraction": 0.1},
    "train": {"steps": 1000, "batch": 4, "checkpoint_every": 0, "eval_every": 3, "sample_every": 0}})",
                      "cancel");
  e["model"] = {{"path", folder.string()}, {"tokenizer", MW_RESOURCES "/base-model"}, {"init", "random"}};
  e["data"]["path"] = (folder / "rows.jsonl").string();
  return experiment::Experiment::from_json(e, folder);
}

TEST(MeshRuns, StartsAndCancelsLeaveNothingBehind) {
  const int kRuns = test::kInstrumented ? 60 : std::getenv("MESHWRIGHT_LONG_TESTS") ? 1000 : 200, kWarm = kRuns / 5;
  const test::Scratch folder;
  const experiment::Experiment experiment = experiment_in(folder.path());
  const fs::path runs = folder.path() / "runs";
  { store::Store store(runs); }
  Rng rng{1};
  long stepped = 0, early = 0, files = 0, threads_before = threads();
  std::int64_t bytes = 0;
  for (int i = 0; i < kRuns; ++i) {
    if (i == kWarm) threads_before = threads(), files = open_files(), bytes = anonymous_bytes();
    std::atomic<int> events{0}, steps{0};
    std::atomic<bool> ended{false};
    RunState state = RunState::queued;
    // Stopped at one of the run's first events, whatever that is, or somewhere in its first steps.
    const auto at = static_cast<int>(rng.below(i % 2 ? 12 : 160));
    Job* running = nullptr;
    std::atomic<bool> made{false};
    {
      Job job({experiment, runs, std::nullopt}, [&](const Event& e) {
        while (!made) std::this_thread::yield();
        if (std::holds_alternative<event::StepTraffic>(e.body)) ++steps;
        if (const auto* f = std::get_if<event::Finished>(&e.body)) state = f->state, ended = true;
        if (events++ == at) running->stop();
      });
      running = &job;
      made = true;
      while (!ended) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ASSERT_EQ(state, RunState::cancelled) << "run " << i;
    ++(steps > 0 ? stepped : early);
  }
  EXPECT_GT(stepped, kRuns / 10);
  EXPECT_GT(early, kRuns / 10);
  EXPECT_EQ(threads(), threads_before);
  EXPECT_EQ(open_files(), files);
  // A run's devices hold some 3 MiB: a few hundred forgotten ones would be far more than what heaps keep for later.
  const std::int64_t grown = anonymous_bytes() - bytes;
  EXPECT_TRUE(test::kInstrumented || grown < std::int64_t{24} << 20) << grown;
  store::Store store(runs);
  const auto all = store.list();
  EXPECT_EQ(all.size(), static_cast<size_t>(kRuns));
  for (const store::RunRow& row : all) {
    EXPECT_EQ(row.state, RunState::cancelled);
    EXPECT_NO_THROW(store.lock(row.id)) << "somebody still has " << row.id;
  }
}

}  // namespace
}  // namespace mw::jobs
