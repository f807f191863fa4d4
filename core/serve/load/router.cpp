// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/router.h"

#include <algorithm>

namespace mw::serve {
namespace {

// The defaults of SGLang's Model Gateway: --cache-threshold, --balance-abs-threshold, --balance-rel-threshold.
constexpr double kLeastMatch = 0.3;  // share of the prompt
constexpr int kUnevenBy = 64;        // requests
constexpr double kUnevenTimes = 1.5;

bool is_uneven(const std::vector<int>& in_flight) {
  const auto [least, most] = std::minmax_element(in_flight.begin(), in_flight.end());
  return *most - *least > kUnevenBy && *most > kUnevenTimes * *least;
}

}  // namespace

Router::Router(const Replicas& replicas)
    : routing_(replicas.routing), count_(static_cast<size_t>(replicas.count)), last_(count_ - 1) {}

size_t Router::route(const TimedRequest& request, const std::vector<int>& in_flight) {
  switch (routing_) {
    case Routing::round_robin:
      last_ = (last_ + 1) % count_;
      break;
    case Routing::least_loaded:
      last_ = least_loaded(in_flight, nullptr);
      break;
    case Routing::prefix_aware:
      last_ = prefix_aware(request, in_flight);
      break;
  }
  return last_;
}

void Router::begin_load() {
  last_ = count_ - 1;
}

size_t Router::least_loaded(const std::vector<int>& in_flight, const std::vector<bool>* allowed) {
  size_t best = count_;
  for (size_t i = 1; i <= count_; ++i) {
    const size_t at = (last_ + i) % count_;
    if (allowed && !(*allowed)[at]) continue;
    if (best == count_ || in_flight[at] < in_flight[best]) best = at;
  }
  return best;
}

size_t Router::prefix_aware(const TimedRequest& request, const std::vector<int>& in_flight) {
  if (request.shared < kLeastMatch * request.prompt_len) return least_loaded(in_flight, nullptr);
  const auto [known, is_new] = holders_.try_emplace(request.shared_seed, count_, false);
  const size_t at = least_loaded(in_flight, is_new || is_uneven(in_flight) ? nullptr : &known->second);
  known->second[at] = true;
  return at;
}

}  // namespace mw::serve
