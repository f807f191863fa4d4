// SPDX-License-Identifier: Apache-2.0
// The figures of training plans by which a search ranks them: the numbers of predict() to the bit, without intervals,
// sources and text.
#pragma once
#include <memory>
#include <optional>

#include "core/plan/request/request.h"

namespace mw::plan {

struct TrainFigures {
  double seconds = 0;            // of an optimizer step
  double tokens_per_second = 0;  // real tokens
  double hours = 0, usd = 0;     // of the run
  Bytes peak, capacity;
};

// Optimizer steps of a run; `rows`: RowStatistics::batches_rows.
std::int64_t train_steps(const Request& request, double rows);

// Predicts plans that differ in their training settings only: what they share is computed once, and a plan takes no
// memory from the heap unless its micro-batch, remat or collectives differ from the last one's. Not thread-safe.
class TrainPredictor {
 public:
  // Throws the errors of predict() that no setting below avoids.
  explicit TrainPredictor(const Request& request);
  ~TrainPredictor();
  // Only batch, accumulation, steps, remat and loss_chunk of `train`, `lengths.rows` and the attention and the types
  // of adapters, gradients and moments of `profile` may be changed.
  Request& request();
  // Of the request as it is now; empty if predict() refuses it or throws.
  std::optional<TrainFigures> figures();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::plan
