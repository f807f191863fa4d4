// SPDX-License-Identifier: Apache-2.0
// Loads played on the engine in real time: one server for all of them, so its prefix cache outlives a load as a real
// server's does. One thread drives a backend.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/engine/transformer/network.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

struct EngineBackendOptions {
  int first_id = 0, vocab = 0;  // prompts are of ids in [first_id, vocab)
  // Where it is set, all requests ask for it.
  const formats::Adapter* adapter = nullptr;
  std::function<void()> warmed_up{};  // told before every load's first request
};

// On any executor: `settings` are its own; it outlives the backend. load.adapter only says that requests ask for one,
// by the name kLoadAdapter.
inline constexpr const char* kLoadAdapter = "adapter";
std::unique_ptr<LoadBackend> make_loop_backend(Executor& executor, const SchedulerSettings& settings,
                                               const EngineBackendOptions& load);

// `settings` with the engine's KV layout (engine_layout.h). The network outlives it. Throws what EngineExecutor does.
std::unique_ptr<LoadBackend> make_engine_backend(engine::Network& network, const SchedulerSettings& settings,
                                                 const EngineBackendOptions& load);

}  // namespace mw::serve
