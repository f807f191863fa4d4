// SPDX-License-Identifier: Apache-2.0
// Writes the metrics of a run as TensorBoard event files while it runs (train.tensorboard). Use on one thread.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/event.h"

namespace mw::formats {
class TensorboardWriter;
}

namespace mw::jobs {

class TrainingCurves {
 public:
  // The folder of this run's files, created with the first event; empty: nothing is written.
  explicit TrainingCurves(std::filesystem::path folder);
  ~TrainingCurves();
  // A failure to write ends the writing, not the run; it is returned once, as a warning for the log.
  std::optional<Event> feed(const Event& event);

 private:
  void write(const Event& event);
  std::filesystem::path folder_;
  std::unique_ptr<formats::TensorboardWriter> writer_;
};

}  // namespace mw::jobs
