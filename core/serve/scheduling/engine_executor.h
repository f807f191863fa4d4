// SPDX-License-Identifier: Apache-2.0
// Computes the scheduler's steps with the engine: real tokens, wall clock. A request's tokens are those that
// engine::Sampler gives its prompt alone, with the same seed. begin() and end() from any thread, run() from one.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "core/engine/generate/serving.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/serve/scheduling/executor.h"
#include "core/formats/peft/peft_adapter.h"

namespace mw::serve {

class EngineExecutor : public Executor {
 public:
  // Reserves the memory of `settings` (engine_layout.h). The network outlives it. Throws what engine::Server throws.
  EngineExecutor(engine::Network& network, const SchedulerSettings& settings);
  ~EngineExecutor() override;
  // By the name that prompts ask for; before serving begins. Throws Error ADAPTER for a name that is there.
  void add_adapter(const std::string& name, const formats::Adapter& adapter);
  std::vector<std::string> adapters() const;

  // Throws Error PROMPT for no tokens or foreign ones, CONTEXT for too many, ADAPTER for a name that is not there.
  void begin(RequestId id, const Prompt& prompt) override;
  void end(RequestId id) override;
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  struct Request;
  std::shared_ptr<Request> find(RequestId id) const;

  engine::Server server_;
  int max_model_len_;
  std::map<std::string, int> adapters_;
  mutable std::mutex mutex_;  // of requests_
  std::map<RequestId, std::shared_ptr<Request>> requests_;
};

}  // namespace mw::serve
