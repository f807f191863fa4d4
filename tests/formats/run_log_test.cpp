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
