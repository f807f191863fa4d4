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

#include "core/base/event.h"
#include "core/train/settings.h"

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

// What the planner may know once the data has been read.
struct DataFacts {
  model::Config config;
  data::BatchSize largest;                    // micro-batch of the run
  std::vector<data::BatchSize> shares;        // of it by each run of rows that batch axes of the mesh make
  std::vector<data::BatchSize> evaluation{};  // the largest batch of held-out rows, likewise; empty: none
  struct Asked {                              // of the prompts that are answered during the run, in tokens; 0: none
    int prompt = 0, with_answer = 0;          // the longest; the most with room for the answer
  } asked{};
};

// The largest micro-batch of the run; exact for the first 20,000 of them, which is where a longer run has seen its
// worst. Held-out rows and prompts exactly.
DataFacts data_facts(const Settings& settings, const model::Config& config, const data::Dataset& dataset,
                     const data::Tokenizer& tokenizer);

struct TrainRequest {
  Settings settings;
  std::filesystem::path run_folder;
  std::optional<std::filesystem::path> resume;    // a checkpoint folder of this run
  Json info = Json::object();                     // merged into Started.info
  std::function<Json(const DataFacts&)> predict;  // {category: bytes, "total"}; stands under Started.info["predicted"]
};

// Emits Started ... Finished, and returns the latter. Bad input and failures throw Error (no Finished event then: the
// caller, who owns the run's record, writes it); a stop ends in state cancelled with a checkpoint.
event::Finished train(const TrainRequest& request, const EventSink& sink, std::stop_token stop, PauseGate& gate);

}  // namespace mw::train
