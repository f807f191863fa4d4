// SPDX-License-Identifier: Apache-2.0
// Runs loads on the engine in real time. One serving loop runs all loads of a backend, so its prefix cache persists
// between them as in a real server. Not thread-safe.
#pragma once
#include <functional>
#include <memory>

#include "core/formats/peft/peft_adapter.h"
#include "core/serve/load/load.h"
#include "core/serve/scheduling/executor.h"

namespace mw::engine {
class Network;
}

namespace mw::serve {

inline constexpr const char* kLoadAdapter = "adapter";  // name of the adapter of a load

struct EngineBackendOptions {
  int first_id = 0, vocab = 0;                    // prompts have ids in [first_id, vocab)
  const formats::PeftAdapter* adapter = nullptr;  // used by all requests; null: the base model
  std::function<void()> on_warmed_up{};           // called before the first request of every load
};

// Runs loads on any executor, which must outlive the backend and know an adapter kLoadAdapter if options.adapter is
// set.
std::unique_ptr<LoadBackend> make_loop_backend(Executor& executor, const SchedulerSettings& settings,
                                               const EngineBackendOptions& options);

// `settings` with the engine's KV layout (engine_executor.h). The network must outlive the backend. Throws what
// EngineExecutor throws.
std::unique_ptr<LoadBackend> make_engine_backend(engine::Network& network, const SchedulerSettings& settings,
                                                 const EngineBackendOptions& options);

}  // namespace mw::serve
