// SPDX-License-Identifier: Apache-2.0
// Seconds of one step of a server: a base (weights, dispatch), costs per sequence, KV reads and prompt tokens. Servers
// on TPUs pad steps to buckets. The cost-model executor calls it millions of times. Immutable but for set_cache(); any
// thread.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/units.h"
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

struct StepLoad {                   // the work of a step, summed over its requests
  int decoding = 0;                 // requests that compute one token after their prompt
  std::int64_t prefill_tokens = 0;  // prompt tokens
  int prefilling = 0;               // requests with prompt tokens
  double prefill_pairs = 0;         // (query, key) pairs of prompt tokens in full-attention layers
  double prefill_window_pairs = 0;  // in sliding layers
  double read_tokens = 0;           // cached tokens that decoding requests read in full-attention layers
  double read_window_tokens = 0;    // in sliding layers: at most the window each
};

class ServeStepModel {
 public:
  explicit ServeStepModel(
      const Request& request);  // needs Work::serve (Error PLAN-WORK); throws the errors of predict()
  explicit ServeStepModel(const LocalModel& model);  // of a checked request
  ~ServeStepModel();
  ServeStepModel(ServeStepModel&&) noexcept;
  ServeStepModel with(const Efficiencies& efficiencies) const;  // fast unless sum_s or collectives change
  // Takes over Request::kv and ServeWork::max_num_seqs of the model's request, which is otherwise the same.
  void set_cache(const LocalModel& model);
  double seconds(const StepLoad& load) const;
  struct Parts {  // of the same step
    Estimate base, sequences, kv_reads, prefill, communication, total;
    std::int64_t padded_tokens = 0;
    int padded_requests = 0;
    bool products_bound_reads = false;  // KV reads wait for the products of the kernel's blocks, not for bytes
  };
  Parts parts(const StepLoad& load) const;
  int window() const;  // of sliding layers; 0: none
  model::Stack stack() const;
  int replicas() const;             // groups of devices that compute different requests (data and fsdp)
  double request_seconds() const;   // from sending a request until the server can schedule it, beside the tokenizer
  double tokenize_seconds() const;  // of the tokenizer per prompt token

  // The KV cache of all devices together: its capacity and the groups of layers with a cache of their own (full
  // attention; sliding windows if Request::sliding_window_kv is set).
  struct Kv {
    Bytes capacity;
    struct Group {
      int layers = 0, window = 0;  // window 0: keeps all tokens
      double bytes_per_token = 0;
    };
    std::vector<Group> groups;
  };
  const Kv& kv() const;

 private:
  struct Impl;
  explicit ServeStepModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::plan
