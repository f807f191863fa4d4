// SPDX-License-Identifier: GPL-3.0-or-later
// Logs of tensorboardX, tensorboard, wandb and transformers (scripts/fixtures/run_logs.py), and damaged ones.
#include "core/formats/logs/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/files.h"
#include "core/base/rng.h"
#include "core/formats/logs/tensorboard.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {
namespace fs = std::filesystem;

const fs::path kLogs = fs::path(MW_FIXTURES) / "logs";

std::map<long, double> series(const RunLog& log, const std::string& name) {
  std::map<long, double> values;
  for (const Scalar& s : log.scalars)
    if (s.name == name) values[s.step] = s.value;
  return values;
}

struct Case {
  const char* folder;
  LogKind kind;
};
class Logs : public testing::TestWithParam<Case> {};

TEST_P(Logs, ContainWrittenLosses) {
  const fs::path folder = kLogs / GetParam().folder;
  EXPECT_EQ(log_kind(folder), GetParam().kind);
  const RunLog log = read_log(folder);
  EXPECT_TRUE(log.notes.empty()) << log.notes.front();
  const auto train = series(log, "train/loss"), eval = series(log, "eval/loss");
  ASSERT_EQ(train.size(), 9u);
  for (const auto& [step, value] : train) EXPECT_NEAR(value, 3.0 / static_cast<double>(step), 1e-6);
  ASSERT_EQ(eval.size(), 3u);
  for (const auto& [step, value] : eval) EXPECT_NEAR(value, 4.0 / static_cast<double>(step), 1e-6);
}
INSTANTIATE_TEST_SUITE_P(Of, Logs,
                         testing::Values(Case{"tensorboardx", LogKind::tensorboard},
                                         Case{"tensors", LogKind::tensorboard}, Case{"wandb", LogKind::wandb},
                                         Case{"transformers", LogKind::trainer_state}),
                         [](const auto& p) { return std::string(p.param.folder); });

class WandbVersions : public testing::TestWithParam<const char*> {};

// expected.json is the output of W&B's reader (scripts/fixtures/wandb_versions.py).
TEST_P(WandbVersions, HistoryMatchesReaderOfWandb) {
  const fs::path folder = kLogs / "wandb_versions";
  const RunLog log = read_log(folder / (std::string(GetParam()) + ".wandb"));
  EXPECT_TRUE(log.notes.empty());
  EXPECT_TRUE(log.finished);
  std::map<std::pair<long, std::string>, double> found;
  for (const Scalar& s : log.scalars) EXPECT_TRUE(found.emplace(std::pair(s.step, s.name), s.value).second) << s.name;
  size_t points = 0;
  const Json expected = read_json(folder / "expected.json");
  for (const auto& [step, row] : expected.items())
    for (const auto& [key, value] : row.items()) {
      ++points;
      const auto at = found.find({std::stol(step), usual_name(key)});
      ASSERT_NE(at, found.end()) << key << " of step " << step;
      if (value.is_number())
        EXPECT_DOUBLE_EQ(at->second, value.get<double>()) << key << " of step " << step;
      else
        EXPECT_TRUE(std::isnan(at->second));
    }
  EXPECT_EQ(points, 2u * 50 + 2 * 5 + 1);
  EXPECT_EQ(found.size(), points) << "values that are in no row of the history";
}
INSTANTIATE_TEST_SUITE_P(Of, WandbVersions,
                         testing::Values("0.12.0", "0.12.21", "0.16.6", "0.18.7", "0.21.4", "0.31.0"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(RunLog, ListsContentsOtherThanScalars) {
  const RunLog tensorboard = read_log(kLogs / "histograms");
  EXPECT_TRUE(tensorboard.scalars.empty());
  EXPECT_THAT(tensorboard.contents, testing::ElementsAre("1 histograms (weights)", "1 text (notes/text_summary)"));
  for (const char* version : {"0.12.0", "0.31.0"})
    EXPECT_THAT(read_log(kLogs / "wandb_versions" / (std::string(version) + ".wandb")).contents,
                testing::AllOf(testing::Contains("50 rows of history"),
                               testing::Contains("1 histograms, images or tables (hist)"),
                               testing::Contains("1 values that are not numbers (text)")));
}

TEST(RunLog, ReadsTrainerStateWithNan) {
  const RunLog log = read_log(kLogs / "transformers");
  EXPECT_TRUE(log.finished);
  EXPECT_EQ(log.seconds, 12.5);
  EXPECT_EQ(log.steps_total, 9);
  EXPECT_EQ(series(log, "train/grad_norm").size(), 8u) << "one was NaN";
  EXPECT_EQ(series(log, "train/mean_loss").size(), 1u) << "the mean over the run is no step's loss";
}

// Fixtures with own numbers, of the forms of trainer_log.jsonl in aa-n/Qwen3_Lora and in
// syGOAT/Mistral-v0.2-Translator-bf16 (older).
TEST(RunLog, ReadsLogOfLlamaFactory) {
  const fs::path file = kLogs / "trainers" / "llama_factory.jsonl";
  EXPECT_EQ(log_kind(file), LogKind::llama_factory);
  const RunLog log = read_log(file);
  EXPECT_EQ(log.tool, "LLaMA-Factory");
  EXPECT_TRUE(log.finished);
  EXPECT_EQ(log.steps_total, 40);
  EXPECT_EQ(log.seconds, 86400 + 200);
  EXPECT_EQ(series(log, "train/loss"), (std::map<long, double>{{10, 2.5}, {20, 2}, {30, 1.5}}));
  EXPECT_EQ(series(log, "eval/loss").at(30), 1.625);
  EXPECT_EQ(series(log, "train/learning_rate").at(20), 2.5e-5);
  EXPECT_EQ(series(log, "train/tokens_per_second").at(40), 4129.25);
  EXPECT_EQ(log.scalars.front().wall_s, 30);
  const RunLog old = read_log(kLogs / "trainers" / "llama_factory_old.jsonl");
  EXPECT_FALSE(old.finished);
  EXPECT_EQ(series(old, "train/learning_rate").at(20), 1.15e-6);
  EXPECT_TRUE(series(old, "train/tokens_per_second").empty()) << "0.00 is not a measurement";
  ASSERT_EQ(old.notes.size(), 1u);
  EXPECT_THAT(old.notes[0], testing::HasSubstr("line 3"));
}

// Forms of torchtune's DiskLogger as shown by amang1802's llama-3.1-8B runs, and of the output in pull request 1358.
TEST(RunLog, ReadsTextOfTorchtune) {
  const RunLog log = read_log(kLogs / "trainers" / "torchtune_disk.txt");
  EXPECT_EQ(log.tool, "torchtune");
  EXPECT_TRUE(log.notes.empty());
  EXPECT_EQ(series(log, "train/loss").at(2), 1.875);
  EXPECT_EQ(series(log, "eval/loss").at(2), 1.75);
  EXPECT_EQ(series(log, "train/peak_memory_active_bytes").at(1), 85.5 * 1024 * 1024 * 1024);
  const RunLog output = read_log(kLogs / "trainers" / "torchtune_output.txt");
  EXPECT_EQ(series(output, "train/learning_rate").at(2), 1e-5);
  EXPECT_THAT(output.notes, testing::ElementsAre("3 lines have no values and were skipped, the first is line 1"));
}

// Forms of a terminal of Unsloth 2026.4.6 with transformers 5.5.0, of a notebook, and of axolotl's output before and
// since it writes numbers as texts.
TEST(RunLog, TakesStepsOfUnslothFromEpochs) {
  const RunLog log = read_log(kLogs / "trainers" / "unsloth_terminal.txt");
  EXPECT_EQ(log.tool, "Unsloth");
  EXPECT_TRUE(log.finished);
  EXPECT_EQ(log.seconds, 403);
  EXPECT_EQ(log.steps_total, 1200);
  EXPECT_EQ(series(log, "train/loss"), (std::map<long, double>{{1, 2.007}, {100, 1.75}, {1200, 1.5}}));
  EXPECT_EQ(series(log, "eval/loss").at(100), 1.625);
  EXPECT_EQ(log.facts.at("trainable_parameters"), 3194880);
  EXPECT_TRUE(log.notes.empty());
  const RunLog notebook = read_log(kLogs / "trainers" / "unsloth_notebook.txt");
  EXPECT_EQ(series(notebook, "train/loss").at(20), 0.9252);
  EXPECT_EQ(series(notebook, "eval/loss"), (std::map<long, double>{{10, 1.75}, {30, 0.625}}));
}

TEST(RunLog, TakesStepsOfAxolotlFromProgressBars) {
  const RunLog log = read_log(kLogs / "trainers" / "axolotl_bars.txt");
  EXPECT_EQ(log.tool, "axolotl");
  EXPECT_EQ(log.steps_total, 4);
  EXPECT_EQ(series(log, "train/loss"), (std::map<long, double>{{1, 0.7157}, {2, 0.5}, {3, 0.25}}));
  EXPECT_EQ(series(log, "eval/loss").at(3), 0.375);
  EXPECT_EQ(series(log, "memory/max_active_bytes").at(1), 2.5 * 1024 * 1024 * 1024);
  EXPECT_TRUE(log.notes.empty());
  const RunLog numbers = read_log(kLogs / "trainers" / "axolotl_numbers.txt");
  EXPECT_EQ(series(numbers, "train/loss"), (std::map<long, double>{{1, 1}, {2, 0.5}}));
  EXPECT_THAT(numbers.notes, testing::ElementsAre(testing::HasSubstr("no step numbers for 2 entries")));
}

TEST(RunLog, LeavesDataAndTextsToOtherReaders) {
  const Scratch folder;
  for (const char* text :
       {"{\"text\": \"{'loss': 1}\"}\n", "the trainer printed {'loss': 2.0} there\n", "{'name': 'x', 'value': 3}\n",
        "Step 1 | Loss: 10.8 | LR: 6e-6\n", "{\"current_steps\": 1}\n"}) {
    put(folder / "some.txt", text);
    EXPECT_EQ(log_kind(folder / "some.txt"), LogKind::none) << text;
  }
}

fs::path events_file() {
  for (const auto& entry : fs::directory_iterator(kLogs / "tensorboardx")) return entry.path();
  return {};
}

TEST(TensorboardFile, ReadsEveryRecordOfGrowingFileOnce) {
  const std::string whole = read_file(events_file());
  const Scratch folder;
  const fs::path file = folder / "events.out.tfevents.1.x";
  for (size_t cut = 0; cut <= whole.size(); cut += 7) {
    put(file, whole.substr(0, cut));
    TensorboardFile events(file);
    std::vector<Scalar> all = events.read_more();
    put(file, whole);
    for (Scalar& s : events.read_more()) all.push_back(std::move(s));
    EXPECT_EQ(all.size(), 12u) << cut;
    EXPECT_TRUE(events.notes().empty());
    EXPECT_TRUE(events.read_more().empty());
  }
}

TEST(RunLog, AnyContentGivesScalarsOrError) {
  const Scratch folder;
  for (const char* kind : {"tensorboardx", "tensors", "wandb", "transformers/checkpoint-9"}) {
    const fs::path from = fs::directory_iterator(kLogs / kind)->path();
    const std::string before = read_file(from);
    const fs::path file = folder / from.filename().string();
    const Rng rng{11};
    for (std::uint64_t i = 0; i < 2000; ++i) {
      std::string bytes = before;
      const auto at = static_cast<size_t>(rng.at(3 * i) % bytes.size());
      if (i % 4 == 0)
        bytes.resize(at);
      else
        bytes[at] = static_cast<char>(rng.at(3 * i + 1));
      put(file, bytes);
      try {
        EXPECT_LE(read_log(file).scalars.size(), 100u);
      } catch (const Error& error) {
        EXPECT_FALSE(error.problem().file.empty());
      }
    }
    fs::remove(file);
  }
}

TEST(RunLog, ReadsEventsAmongOtherLines) {
  const Scratch folder;
  const fs::path file = folder / "printed.jsonl";
  put(file,
      "{\"event\":\"started\",\"run\":\"run-1\",\"info\":{\"name\":\"mine\",\"steps\":3}}\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":4.0,\"time_s\":1}\r\n\n"
      "Downloading 3 files\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":3,\"value\":2.0,\"time_s\":3}\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":2,\"value\":5.0,\"time_s\":2}\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":3,\"value\":null,\"time_s\":2}\n"
      "{\"event\":\"finished\",\"state\":\"done\",\"seconds\":7.5}\n{\"event\":\"met");
  EXPECT_EQ(log_kind(file), LogKind::events);
  const RunLog log = read_log(file);
  EXPECT_EQ(log.name, "mine");
  EXPECT_EQ(log.steps_total, 3);
  EXPECT_EQ(log.seconds, 7.5);
  EXPECT_TRUE(log.finished);
  ASSERT_EQ(log.notes.size(), 2u);
  EXPECT_THAT(log.notes[0], testing::HasSubstr("line 4"));
  const std::vector<LogSeries> all = summarize_series(log);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].points, 4u);
  EXPECT_EQ(all[0].finite, 3u);
  EXPECT_EQ(all[0].first_step, 1);
  EXPECT_EQ(all[0].last_step, 3);
  EXPECT_EQ(all[0].last, 2.0);
  EXPECT_EQ(all[0].least, 2.0);
  EXPECT_EQ(all[0].most, 5.0);
  put(file, "{\"prompt\":\"a\",\"event\":\"party\"}\n");
  EXPECT_EQ(log_kind(file), LogKind::none) << "rows of data are no events";
}

TEST(RunLog, MapsNames) {
  EXPECT_EQ(usual_name("loss"), "train/loss");
  EXPECT_EQ(usual_name("eval_loss"), "eval/loss");
  EXPECT_EQ(usual_name("train/lr"), "train/learning_rate");
  EXPECT_EQ(usual_name("gradient_norm"), "train/grad_norm");
  EXPECT_EQ(usual_name("perf/mfu"), "perf/mfu");
  EXPECT_THROW(read_log(fs::path(MW_FIXTURES) / "README.md"), Error);
}

}  // namespace
}  // namespace mw::formats
