// SPDX-License-Identifier: Apache-2.0
// The figures of plans by which a search ranks them: the numbers of predict() to the bit, without intervals, sources
// and text.
#pragma once
#include <memory>
#include <optional>

#include "core/plan/request/request.h"

namespace mw::plan {

struct CandidateFigures {
  double seconds = 0;            // of an optimizer step, a forward, a rollout or a decode step
  double tokens_per_second = 0;  // real tokens
  double hours = 0;              // of the run; 0: a server
  double usd = 0;                // of the run; of a server per million output tokens
  Bytes peak, capacity;
};

bool knows_steps(const Request& request);  // false: epochs of an unknown number of rows, planned as one step
// Optimizer steps of a run; `rows`: RowStatistics::batches_rows.
std::int64_t train_steps(const Request& request, double rows);

// Predicts plans on one mesh that differ in the settings below only: what they share is computed once, and a plan takes
// no memory from the heap unless it is refused or its micro-batch, remat or collectives differ from the last one's. Not
// thread-safe.
class PlanPredictor {
 public:
  // Throws the errors of predict() that no setting below avoids.
  explicit PlanPredictor(Request request);
  ~PlanPredictor();
  // In training only batch, accumulation, steps, remat and loss_chunk of `train`, `lengths.rows` and the attention and
  // the types of adapters, gradients and moments of `profile` may be changed; otherwise `kv`, `serve.max_num_seqs` and
  // `forward.chunk`.
  Request& request();
  // The figures of the request as it is now; empty if predict() refuses it or throws.
  std::optional<CandidateFigures> figures();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::plan
