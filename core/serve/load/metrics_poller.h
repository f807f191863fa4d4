// SPDX-License-Identifier: Apache-2.0
// Polls the /metrics of a server that uses vLLM's names, on a thread of its own: queue and KV cache over time.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/serve/load/stream_client.h"

namespace mw::serve {

// Sums of a Prometheus text by metric name over all labels, because vLLM has one series for each engine.
std::map<std::string, double> sum_prometheus_metrics(std::string_view text);

class MetricsPoller {
 public:
  // Starts polling at `origin`, time 0 of the samples.
  MetricsPoller(const HttpTarget& target, HttpClock::time_point origin);
  struct Observations {
    std::vector<formats::LoadSample> timeline{};  // empty if the server has no such metrics
    double prefix_hits = formats::kUnknown;       // share of prompt tokens
  };
  Observations finish();  // stops polling; call it once

 private:
  void poll(const std::stop_token& stop);
  bool sample();

  StreamClient client_;
  const HttpClock::time_point origin_;
  std::map<std::string, double> first_, last_;
  double last_s_ = 0;
  Observations observed_;
  std::jthread thread_;
};

}  // namespace mw::serve
