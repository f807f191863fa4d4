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
#include "core/plan/prediction/memory.h"
#include "core/serve/scheduling/executor.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

// The engine's KV cache layout (f32): layers with full attention form one group of blocks, sliding ones another. Pure
// functions; any thread.
enum class OutOfWindowKv { kept, freed };  // blocks of sliding layers behind their window

// Returns `wanted` with `kv` laid out in blocks of wanted.kv.block_size tokens. `kv`: bytes of the cache; 0: what
// max_num_seqs requests of max_model_len need. Throws Error SERVE if not even one such request fits.
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows = OutOfWindowKv::freed);
struct DeviceForServing {
  plan::InferenceModel model{};
  Bytes free{};  // without weights and adapters
};
// As above, but a cache of size `kv` 0 takes at most half of the memory that the buffers of a step leave free.
SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows, const DeviceForServing& device);

// The buffers of a server with these settings: as the engine allocates them, and as the planner describes them.
engine::ServingCapacity engine_capacity(const model::Config& config, const SchedulerSettings& settings);
engine::ServingWork planned_serving(const model::Config& config, const SchedulerSettings& settings);

class EngineExecutor : public Executor {
 public:
  // Allocates the memory that `settings` describe (lay_out_engine_kv). The network must outlive the executor. Throws
  // what engine::ServingEngine throws.
  EngineExecutor(engine::Network& network, const SchedulerSettings& settings);
  ~EngineExecutor() override;
  // Makes an adapter available to requests under `name`. Call it before the first request. Throws Error ADAPTER if the
  // name is empty or taken.
  void add_adapter(const std::string& name, const formats::PeftAdapter& adapter);
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
