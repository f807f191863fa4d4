// SPDX-License-Identifier: GPL-3.0-or-later
// Progress in the record of a run.
#include <gtest/gtest.h>

#include <map>

#include "core/base/event.h"
#include "core/jobs/job.h"
#include "tests/store/store_fixture.h"
#include "tests/train/random_model.h"

namespace mw::jobs {
namespace {

TEST(RunProgress, IsRecordedTenTimesASecondAndAtTheEndOfEachPhase) {
  constexpr long kTrained = 60, kListed = 2000;
  const test::Scratch folder;
  train::test::random_model("gemma3", folder.path());
  std::string rows;
  for (long i = 0; i < kListed; ++i) rows += Json{{"prompt", std::to_string(i)}, {"completion", "it"}}.dump() + "\n";
  write_file_atomically(folder.path() / "rows.jsonl", rows);
  Json e = parse_json(R"({"schema": 1, "lora": {"rank": 2}, "data": {"max_len": 48},
    "train": {"batch": 1, "checkpoint_every": 0, "eval_every": 0, "sample_every": 0}})",
                      "progress");
  e["train"]["steps"] = kTrained;
  e["model"] = {{"path", folder.path().string()}, {"tokenizer", MW_RESOURCES "/base-model"}, {"init", "random"}};
  e["data"]["path"] = (folder.path() / "rows.jsonl").string();
  std::vector<Event> heard;
  run_blocking({experiment::Experiment::from_json(e, folder.path()), folder.path() / "runs", std::nullopt},
               [&](const Event& event) { heard.push_back(event); }, {});
  const store::Store store(folder.path() / "runs");
  std::map<std::string, std::vector<Event>> phases;
  std::map<std::string, long> metrics;
  size_t at = 0;
  store.read_events("run-1", [&](const store::StoredEvent& stored) {
    ASSERT_LT(at, heard.size());
    EXPECT_EQ(to_json(stored.event, "run-1"), to_json(heard[at++], "run-1"));  // the window shows what is recorded
    if (const auto* m = std::get_if<event::Metric>(&stored.event.body)) ++metrics[m->name];
    if (const auto* p = std::get_if<event::Progress>(&stored.event.body)) phases[p->phase].push_back(stored.event);
  });
  EXPECT_EQ(at, heard.size());
  EXPECT_EQ(metrics["train/loss"], kTrained);
  EXPECT_GE(phases.size(), 2u);  // reading the rows, and training
  for (const auto& [phase, events] : phases)
    for (size_t i = 1; i + 1 < events.size(); ++i)
      EXPECT_GE(events[i].time_s - events[i - 1].time_s, ProgressLimit::kSeconds) << phase << " " << i;
  ASSERT_TRUE(phases.contains("training"));
  EXPECT_EQ(std::get<event::Progress>(phases["training"].back().body).done, kTrained);
}

}  // namespace
}  // namespace mw::jobs
