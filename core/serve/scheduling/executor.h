// SPDX-License-Identifier: Apache-2.0
// What computes the scheduler's steps: the engine (wall clock, real tokens) or a cost model (virtual clock).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

struct Prompt {  // what a request says besides its lengths; a cost model needs none of it
  std::vector<int> ids{};
  float temperature = 0, top_p = 1;
  int top_k = 0;
  std::uint64_t seed = 0;
  std::vector<int> stop_ids{};
  std::string adapter{};  // by name; empty: the base model
};

struct StepResult {
  double seconds = 0;  // measured, or predicted
  struct Sampled {
    RequestId id{};
    int token = 0;       // 0 from a cost model
    bool ended = false;  // a stop token: `token` is not part of the answer
  };
  std::vector<Sampled> sampled{};  // of items that sample, in their order
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Before it is added to the scheduler; throws Error for a bad prompt. On the submitting thread, maybe during run().
  virtual void begin(RequestId, const Prompt&) {}
  virtual void end(RequestId) {}                   // finished or aborted
  virtual StepResult run(const Step& step, const Scheduler& scheduler) = 0;
};

}  // namespace mw::serve
