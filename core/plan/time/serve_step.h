// SPDX-License-Identifier: Apache-2.0
// Seconds of one step of a server on a target, from the planner's terms: base (weights, dispatch), per sequence, KV
// reads, prompt tokens; steps of TPU servers at their padded buckets. What the cost-model executor asks millions of
// times. Immutable after construction; any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

struct StepLoad {                   // what a step computes, summed over its requests
  int decoding = 0;                 // requests that compute one token after their prompt
  std::int64_t prefill_tokens = 0;  // prompt tokens
  int prefilling = 0;               // requests with prompt tokens
  double prefill_pairs = 0;         // (query, key) pairs of prompt tokens in layers that see everything
  double prefill_window_pairs = 0;  // in sliding layers
  double read_tokens = 0;           // cached tokens that decoding requests read in layers that see everything
  double read_window_tokens = 0;    // in sliding layers: at most the window each
};

class ServeStepModel {
 public:
  explicit ServeStepModel(const Request& request);  // Work::serve; throws as predict() does
  ~ServeStepModel();
  ServeStepModel(ServeStepModel&&) noexcept;
  ServeStepModel with(const Efficiencies& efficiencies) const;  // the same server; quick where sums keep their price
  double seconds(const StepLoad& load) const;
  struct Parts {  // of the same step
    Estimate base, sequences, kv_reads, prefill, communication, total;
    std::int64_t padded_tokens = 0;
    int padded_requests = 0;
  };
  Parts parts(const StepLoad& load) const;
  int window() const;              // of sliding layers; 0: there are none
  double request_seconds() const;  // from a request's sending until it may be scheduled

  // KV cache of all devices together, as the server would lay it out: capacity for blocks, bytes of a block of
  // `block_size` tokens by group (layers that see everything; sliding ones, kept whole where the saving is off).
  struct Kv {
    Bytes capacity;
    struct Group {
      int layers = 0, window = 0;  // window 0: keeps everything
      double bytes_per_token = 0;
    };
    std::vector<Group> groups;
  };
  Kv kv() const;

 private:
  struct Impl;
  explicit ServeStepModel(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace mw::plan
