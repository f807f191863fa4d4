// SPDX-License-Identifier: Apache-2.0
// Runs loads in virtual time: the real scheduler with steps that take their predicted time. The simulated server and
// its prefix cache persist between the loads of a backend until it is restarted; each load with salted prompts restarts
// it. Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/plan/request/request.h"
#include "core/serve/load/load.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

// Chooses the replica that serves a request. Not thread-safe.
struct Replicas {
  int count = 1;
  options::Routing routing = options::Routing::round_robin;
};

class Router {
 public:
  explicit Router(const Replicas& replicas);
  // The replica for the next request, given the requests that each has in flight. Among equals they take turns.
  size_t route(const TimedRequest& request, const std::vector<int>& in_flight);
  void begin_load();  // round robin starts with the first replica

 private:
  size_t least_loaded(const std::vector<int>& in_flight, const std::vector<bool>* allowed);
  size_t prefix_aware(const TimedRequest& request, const std::vector<int>& in_flight);

  options::Routing routing_;
  size_t count_;
  size_t last_;  // chosen
  // The replicas that have got a request with this shared prefix. What a cache has evicted since then is not known to
  // a router.
  std::unordered_map<std::uint64_t, std::vector<bool>> holders_;
};

struct HostOverheads {    // of a request before its first step
  double request_s = 0;   // from sending it until the scheduler knows it, beside the tokenizer
  double tokenize_s = 0;  // of the tokenizer per prompt token
  // ahead: the scheduler plans the next step while one runs, so a request that arrives meanwhile misses it
  plan::Scheduling scheduling = plan::Scheduling::between_steps;
};

// Both simulate equal replicas behind a router; a replica is the server that request or executor describe, and the
// executor, which must not depend on earlier steps, times all of them.
// Simulates the target of the request. Without KV groups in `settings`, the cache is laid out as plan::ServeStepModel
// says, in blocks of settings.kv.block_size. Throws what ServeStepModel and Scheduler throw.
std::unique_ptr<LoadBackend> make_cost_model_backend(const plan::Request& request, SchedulerSettings settings,
                                                     const Replicas& replicas = {});
// Simulates a server with the step times of any executor.
std::unique_ptr<LoadBackend> make_simulated_backend(std::unique_ptr<Executor> executor,
                                                    const SchedulerSettings& settings, HostOverheads host = {},
                                                    const Replicas& replicas = {});

}  // namespace mw::serve
