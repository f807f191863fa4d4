// SPDX-License-Identifier: Apache-2.0
// Measures how time and memory of the engine grow with the batch: one point per workload and batch size. A batch that
// is predicted not to fit is not run; its point names the largest that fits. Not thread-safe.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/ledger.h"
#include "core/options/sizing.h"
#include "core/plan/prediction/memory.h"
#include "core/plan/request/estimate.h"

namespace mw::engine {
class Network;
}

namespace mw::serve {

using mw::to_string;

struct SizingSettings {
  std::vector<options::Workload> workloads{options::Workload::rollout, options::Workload::forward,
                                           options::Workload::chunked_forward};
  std::vector<int> batches{1, 2, 4, 8, 16};
  int prompt_len = 256, new_tokens = 64;  // the forward workloads have rows of prompt_len + new_tokens
  int top_k = 128, chunk = 64;            // chunked_forward
  std::uint64_t seed = 1;
};

struct MeasuredSize {
  struct Measured {
    double seconds = 0;                            // of the whole batch, median of `repeats`
    double prefill_seconds = 0, step_seconds = 0;  // rollout: until all first tokens, and of one later step
    std::int64_t tokens = 0;                       // generated, or scored
    int repeats = 0;
    Ledger memory;  // at its peak
    double seconds_per_token() const { return seconds / static_cast<double>(tokens); }
    double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
  };
  struct PredictedTime {
    double seconds = 0, low = 0, high = 0;
    plan::Origin origin{};
    std::int64_t tokens = 0;  // generated, or scored
    double seconds_per_token() const { return seconds / static_cast<double>(tokens); }
    double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
  };
  options::Workload workload{};
  int batch = 0;
  bool adapters = false;  // with LoRA adapters
  Ledger predicted;
  Bytes capacity;         // of the device
  int largest_batch = 0;  // if this batch does not fit: the largest that does; 0: none
  std::optional<Measured> measured;
  std::optional<PredictedTime> predicted_time{};  // empty: it does not fit, or cannot be planned
  std::string error;                              // set if it ran out of memory although it should fit
  bool fits() const { return predicted.total() <= capacity; }
};
// {mode, batch, adapters, predicted: {fits, capacity_bytes, memory, largest_batch?, seconds?, seconds_low?,
// seconds_high?, origin?, tokens?, seconds_per_token?, tokens_per_second?}, measured: {...} or null}
Json to_json(const MeasuredSize& point);

struct SizingRequest {
  model::Config config;
  plan::InferenceModel model;
  Bytes capacity;
  SizingSettings settings;
  std::function<engine::Network&()> network;  // loads it; called once, for the first point that fits
};

struct SizingCallbacks {
  std::function<void(const MeasuredSize&)> point;
  std::function<void(const std::string& phase, long done, long total)> progress = {};  // of the expected work
  std::function<void()> before_point = {};                                             // may block, e.g. to pause
};

// Returns false if it was stopped; all complete points have been reported.
bool measure_sizes(const SizingRequest& request, const SizingCallbacks& callbacks, std::stop_token stop);

}  // namespace mw::serve
