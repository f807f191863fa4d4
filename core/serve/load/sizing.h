// SPDX-License-Identifier: Apache-2.0
// How time and memory grow with the batch, measured on this engine: one point per workload and batch size. A batch that
// will not fit is predicted, reported with the largest that does, and never started. One thread drives a sizing.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/base/ledger.h"
#include "core/engine/transformer/network.h"
#include "core/plan/memory/memory.h"

namespace mw::serve {

enum class Workload {
  rollout,         // prompts prefilled together, then answers token by token through a KV cache
  forward,         // log-probabilities of given answers, the logits of every position at once
  chunked_forward  // the same by chunks of logits, the likeliest tokens of each position kept
};
std::string_view to_string(Workload workload);

struct SizingSettings {
  std::vector<Workload> workloads{Workload::rollout, Workload::forward, Workload::chunked_forward};
  std::vector<int> batches{1, 2, 4, 8, 16};
  int prompt_len = 256, new_tokens = 64;  // the forward workloads read rows of prompt_len + new_tokens
  int top_k = 128, chunk = 64;            // chunked_forward
  std::uint64_t seed = 1;
};

struct SizePoint {
  struct Measured {
    double seconds = 0;                            // of the whole batch, the median of `repeats`
    double prefill_seconds = 0, step_seconds = 0;  // rollout: all rows' first tokens, and one step of all rows after
    std::int64_t tokens = 0;                       // generated, or scored
    int repeats = 0;
    Ledger memory;  // at its peak
    double seconds_per_token() const { return seconds / static_cast<double>(tokens); }
    double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
  };
  Workload workload{};
  int batch = 0;
  Ledger predicted;
  Bytes capacity;         // of the device
  int largest_batch = 0;  // that fits, where this one does not; 0: none does
  std::optional<Measured> measured;
  std::string error;  // why it was not measured although it should fit
  bool fits() const { return predicted.total() <= capacity; }
};
// {mode, batch, predicted: {fits, capacity_bytes, memory, largest_batch?}, measured: {...} or null}
Json to_json(const SizePoint& point);

struct SizingRequest {
  model::Config config;
  plan::InferenceModel model;
  Bytes capacity;
  SizingSettings settings;
  std::function<engine::Network&()> network;  // loads it; called once the first point fits
};

struct SizingCallbacks {
  std::function<void(const SizePoint&)> point;                                         // as soon as it is known
  std::function<void(const std::string& phase, long done, long total)> progress = {};  // shares of the expected work
  std::function<void()> between = {};                                                  // before every point: may wait
};

// False if it was stopped; every point that was complete has been reported.
bool measure_sizes(const SizingRequest& request, const SizingCallbacks& callbacks, std::stop_token stop);

}  // namespace mw::serve
