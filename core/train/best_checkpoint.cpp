// SPDX-License-Identifier: Apache-2.0
#include "core/train/best_checkpoint.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw::train {
namespace {

constexpr const char* kBestFile = "best_checkpoint.json";

Json step_or_null(const std::optional<long>& step) {
  return step ? Json(*step) : Json(nullptr);
}

std::optional<long> read_step(const Json& json, const char* key, const std::string& file) {
  if (!find_member(json, key)) return std::nullopt;
  return static_cast<long>(int_member(json, key, file));
}

}  // namespace

Json to_json(const EvaluationHistory& h) {
  return {{"last", step_or_null(h.last)}, {"answered", step_or_null(h.answered)},
          {"asked", h.answers.asked},     {"right", h.answers.right},
          {"best_step", h.best_step},     {"best_value", h.best_value},
          {"since_best", h.since_best}};
}

EvaluationHistory read_evaluations(const Json& json, const std::string& file) {
  EvaluationHistory h;
  h.last = read_step(json, "last", file);
  h.answered = read_step(json, "answered", file);
  h.answers.asked = static_cast<long>(int_member(json, "asked", file));
  h.answers.right = static_cast<long>(int_member(json, "right", file));
  h.best_step = static_cast<long>(int_member(json, "best_step", file));
  h.best_value = number_member(json, "best_value", file);
  h.since_best = static_cast<long>(int_member(json, "since_best", file));
  return h;
}

const char* best_metric(KeepBest keep_best) {
  return keep_best == KeepBest::answers ? "eval/answers_right" : "eval/loss";
}

bool add_evaluation(EvaluationHistory& history, KeepBest keep_best, long step, double value) {
  const bool is_larger_better = keep_best == KeepBest::answers;
  const bool is_best =
      std::isfinite(value) &&
      (history.best_step == 0 || (is_larger_better ? value > history.best_value : value < history.best_value));
  if (!is_best) {
    ++history.since_best;
    return false;
  }
  history.best_step = step;
  history.best_value = value;
  history.since_best = 0;
  return true;
}

void write_best_checkpoint(const std::filesystem::path& run_folder, const BestCheckpoint& best) {
  const Json json{{"schema", 1}, {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
  write_file_atomically(run_folder / kBestFile, json.dump(2) + "\n");
}

void remove_best_checkpoint(const std::filesystem::path& run_folder) {
  remove_tree(run_folder / kBestFile);
}

std::optional<BestCheckpoint> read_best_checkpoint(const std::filesystem::path& run_folder) try {
  const std::filesystem::path file = run_folder / kBestFile;
  if (!path_exists(file)) return std::nullopt;
  const Json json = read_json(file);
  return BestCheckpoint{.step = static_cast<long>(int_member(json, "step", file.string())),
                        .metric = string_member(json, "metric", file.string()),
                        .value = number_member(json, "value", file.string())};
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace mw::train
