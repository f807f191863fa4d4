// SPDX-License-Identifier: Apache-2.0
// A server's queue and KV cache over time, from its /metrics where they have vLLM's names; a thread of its own.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/serve/load/stream_client.h"

namespace mw::serve {

// Sums of a Prometheus text by metric name (labels dropped): vLLM has a series for each engine.
std::map<std::string, double> sum_prometheus_metrics(std::string_view text);

class MetricsPoller {
 public:
  MetricsPoller(const HttpTarget& target, HttpClock::time_point origin);
  struct Seen {
    std::vector<formats::LoadSample> timeline{};  // empty: the server does not say
    double prefix_hits = formats::kUnknown;       // share of prompt tokens
  };
  Seen finish();  // stops watching

 private:
  void watch(const std::stop_token& stop);
  bool sample();

  StreamClient client_;
  const HttpClock::time_point origin_;
  std::map<std::string, double> first_, last_;
  double last_s_ = 0;
  Seen seen_;
  std::jthread thread_;
};

}  // namespace mw::serve
