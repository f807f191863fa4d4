// SPDX-License-Identifier: Apache-2.0
// Chooses the replica that serves a request. Not thread-safe.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/serve/load/load.h"

namespace mw::serve {

using options::Routing;

struct Replicas {
  int count = 1;
  Routing routing = Routing::round_robin;
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

  Routing routing_;
  size_t count_;
  size_t last_;  // chosen
  // The replicas that have got a request with this shared prefix. What a cache has evicted since then is not known to
  // a router.
  std::unordered_map<std::uint64_t, std::vector<bool>> holders_;
};

}  // namespace mw::serve
