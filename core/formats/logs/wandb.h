// SPDX-License-Identifier: Apache-2.0
// Incremental reader of offline files of W&B (run-*.wandb).
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

// Use on one thread.
class WandbFile {
 public:
  explicit WandbFile(std::filesystem::path file);
  ~WandbFile();
  // Scalars of the complete records appended since the last call. Throws LOG if the file does not begin like one of
  // W&B; a file that is still shorter than its header has no scalars.
  std::vector<Scalar> read_more();
  const RunLog& log() const;  // facts, notes and contents so far, without the scalars

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mw::formats
