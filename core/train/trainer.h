// SPDX-License-Identifier: Apache-2.0
// The training loop: model, data, steps, evaluation, samples, checkpoints; speaks only through events. One run, one
// thread (the engine and the batch prefetcher have their own).
#pragma once
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/base/event.h"
#include "core/train/data_facts.h"

namespace mw::train {

// Lets another thread hold the loop between two steps.
class PauseGate {
 public:
  void pause();
  void resume();
  // Blocks while paused, telling on_change paused when it starts to wait and running when it goes on; stop ends it.
  void wait(std::stop_token stop, const std::function<void(RunState)>& on_change);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
};

struct TrainRequest {
  Settings settings;
  std::function<std::filesystem::path()> run_folder;  // asked before every checkpoint, which is written there
  std::optional<std::filesystem::path> resume;        // a checkpoint folder of this run
  std::optional<long> total_steps = {};  // that this run began with, where it goes on and epochs are set
  std::vector<Bytes> peaks = {};         // of each device up to then, on the same devices
  Json info = Json::object();            // merged into Started.info
  std::function<Json(const DataFacts&)> predict;  // {category: bytes, "total"}; stands under Started.info["predicted"]
};

// Emits Started ... Finished, and returns the latter. Bad input and failures throw Error (no Finished event then: the
// caller, who owns the run's record, writes it); a stop ends in state cancelled with a checkpoint.
event::Finished train(const TrainRequest& request, const EventSink& sink, std::stop_token stop, PauseGate& gate);

}  // namespace mw::train
