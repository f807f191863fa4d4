// SPDX-License-Identifier: Apache-2.0
// The training loop: loads model and data, runs steps, evaluates, samples and saves checkpoints; reports events. Runs
// on the calling thread.
#pragma once
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/train/evaluate.h"

namespace mw::train {

// Pauses the loop between two steps. Thread-safe.
class PauseGate {
 public:
  void pause();
  void resume();
  // Blocks while paused; calls on_change(paused) before and on_change(running) after waiting. Returns on a stop.
  void wait(std::stop_token stop, const std::function<void(RunState)>& on_change);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
};

struct TrainRequest {
  Settings settings;
  std::function<std::filesystem::path()> run_folder;  // called before each checkpoint; returns its parent folder
  std::optional<std::filesystem::path> resume;        // checkpoint to resume from
  std::optional<long> total_steps = {};               // of the original run, if it is resumed and epochs are set
  std::vector<Bytes> peaks = {};                      // peak memory per device before the resume
  Json info = Json::object();                         // merged into Started.info
  std::function<Json(const DataFacts&)> predict;      // {category: bytes, "total"} for Started.info["predicted"]
};

// Emits events from Started to Finished and returns Finished. Failures throw without a Finished event, which the caller
// then records. A stop saves a checkpoint and finishes in state cancelled.
event::Finished train(const TrainRequest& request, const EventSink& sink, std::stop_token stop, PauseGate& gate);

}  // namespace mw::train
