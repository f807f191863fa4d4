// SPDX-License-Identifier: Apache-2.0
// Reads vLLM's memory and load: lines of its log (vLLM 0.6 to 0.11 on GPUs, vllm-tpu), and its Prometheus
// metrics. Not tested against a running server on an accelerator; tests use recorded lines. Use on one thread.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "core/base/event.h"

namespace mw::formats {

class VllmLog {
 public:
  // A line of the log: memory by device (weights, KV cache, CUDA graphs as `workspace`), and values of a statistics
  // line under serve/..., whose steps count these lines. Without times; empty for other lines.
  std::vector<Event> take(std::string_view line);
  // The whole text of GET /metrics.
  std::vector<Event> take_metrics(std::string_view text);

 private:
  std::map<int, Ledger> devices_;
  Bytes kv_capacity_;  // of the KV cache of one device, 0 before it is known
  int tensor_parallel_ = 1;
  long step_ = 0;
};

}  // namespace mw::formats
