// SPDX-License-Identifier: Apache-2.0
// Computes the scheduler's steps with the engine: real tokens, wall clock. A request gets the tokens that
// engine::Sampler generates from its prompt alone with the same seed. Call begin() and end() on any thread, run() on
// one.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "core/engine/generate/serving_engine.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

class EngineExecutor : public Executor {
 public:
  // Allocates the memory that `settings` describe (engine_kv_layout.h). The network must outlive the executor. Throws
  // what engine::ServingEngine throws.
  EngineExecutor(engine::Network& network, const SchedulerSettings& settings);
  ~EngineExecutor() override;
  // Makes an adapter available to requests under `name`. Call it before the first request. Throws Error ADAPTER if the
  // name is empty or taken.
  void add_adapter(const std::string& name, const formats::Adapter& adapter);
  std::vector<std::string> adapters() const;

  // Throws Error PROMPT for an empty prompt or ids outside the vocabulary, CONTEXT if the prompt is too long, ADAPTER
  // if there is no adapter of that name.
  void begin(RequestId id, const GenerationRequest& request) override;
  void end(RequestId id) override;
  StepResult run(const Step& step, const Scheduler& scheduler) override;

 private:
  struct Sequence;
  std::shared_ptr<Sequence> find(RequestId id) const;

  engine::ServingEngine server_;
  int max_model_len_;
  std::map<std::string, int> adapters_;
  mutable std::mutex mutex_;  // guards sequences_
  std::map<RequestId, std::shared_ptr<Sequence>> sequences_;
};

}  // namespace mw::serve
