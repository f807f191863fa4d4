// SPDX-License-Identifier: GPL-3.0-or-later

#include <gtest/gtest.h>

#include <limits>

#include "core/base/files.h"
#include "core/train/checkpoint.h"
#include "tests/formats/test_files.h"

namespace mw::train {
namespace {

// Returns the steps that were the best when they were added, 10, 20, ...
std::vector<long> best_steps(options::KeepBest keep_best, const std::vector<double>& values,
                             EvaluationHistory& history) {
  std::vector<long> best;
  long step = 0;
  for (const double value : values)
    if (add_evaluation(history, keep_best, step += 10, value)) best.push_back(step);
  return best;
}

TEST(BestCheckpoint, IsTheFirstOfTheLowestLossesOrOfTheMostRightAnswers) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EvaluationHistory by_loss, by_answers;
  EXPECT_EQ(best_steps(options::KeepBest::eval_loss, {kNan, 3, 2, 2, kNan, 4}, by_loss), (std::vector<long>{20, 30}));
  EXPECT_EQ(by_loss.best_value, 2);
  EXPECT_EQ(by_loss.since_best, 3);
  EXPECT_EQ(best_steps(options::KeepBest::answers, {0, 0.5, 0.5, 0.25}, by_answers), (std::vector<long>{10, 20}));
  EXPECT_EQ(by_answers.since_best, 2);
  EvaluationHistory without;  // patience alone compares the loss
  EXPECT_EQ(best_steps(options::KeepBest::none, {2, 3, 1}, without), (std::vector<long>{10, 30}));
}

TEST(BestCheckpoint, KeepsTheHistoryToTheBit) {
  EvaluationHistory h{.last = 40, .answered = std::nullopt, .answers = {.asked = 60, .right = 49}};
  h.best_step = 30, h.best_value = 0.1 + 0.2, h.since_best = 1;
  const EvaluationHistory again = read_evaluations(parse_json(to_json(h).dump(), "history"), "history");
  EXPECT_EQ(again.last, h.last);
  EXPECT_EQ(again.answered, h.answered);
  EXPECT_EQ(again.answers.right, 49);
  EXPECT_EQ(again.best_value, h.best_value);
  EXPECT_EQ(again.since_best, 1);
}

void make_checkpoint(const std::filesystem::path& run, long step) {
  make_folders(checkpoint_path(run, step));
  write_file_atomically(checkpoint_path(run, step) / "trainer_state.json", "{}");
}

TEST(BestCheckpoint, StaysBesideTheNewestAndIsChosenWhileItExists) {
  const formats::Scratch run;
  for (const long step : {10, 20, 30, 40}) make_checkpoint(run.path(), step);
  EXPECT_EQ(chosen_checkpoint(run.path(), CheckpointChoice::best), checkpoint_path(run.path(), 40));
  write_best_checkpoint(run.path(), {.step = 20, .metric = "eval/loss", .value = 1.5});
  prune_checkpoints(run.path(), 1, 20);
  EXPECT_FALSE(path_exists(checkpoint_path(run.path(), 10)));
  EXPECT_FALSE(path_exists(checkpoint_path(run.path(), 30)));
  EXPECT_EQ(chosen_checkpoint(run.path(), CheckpointChoice::best), checkpoint_path(run.path(), 20));
  EXPECT_EQ(chosen_checkpoint(run.path(), CheckpointChoice::last), checkpoint_path(run.path(), 40));
  remove_tree(checkpoint_path(run.path(), 20));
  EXPECT_EQ(chosen_checkpoint(run.path(), CheckpointChoice::best), checkpoint_path(run.path(), 40));
  write_file_atomically(run.path() / "best_checkpoint.json", "{\"step\": \"ten\"}");
  EXPECT_EQ(chosen_checkpoint(run.path(), CheckpointChoice::best), checkpoint_path(run.path(), 40));
}

}  // namespace
}  // namespace mw::train
