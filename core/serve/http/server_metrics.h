// SPDX-License-Identifier: Apache-2.0
// Metrics of a server in the Prometheus text format, under vLLM's names. Thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {

class PrometheusHistogram {  // not thread-safe
 public:
  explicit PrometheusHistogram(std::vector<double> upper_bounds)
      : bounds_(std::move(upper_bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  void write(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::int64_t> counts_;  // per bucket; the last one is beyond all bounds
  double sum_ = 0;
};

class ServerMetrics {
 public:
  explicit ServerMetrics(std::string model);
  void first_token(double seconds);                                    // since the request arrived
  void later_token(double seconds);                                    // since the previous token
  void finished(const std::string& reason, double seconds);            // "stop", "length", "abort", "error"
  std::string prometheus_text(const ServingLoop::State& state) const;  // format 0.0.4

 private:
  const std::string labels_;
  mutable std::mutex mutex_;
  PrometheusHistogram ttft_, per_token_, e2e_;
  std::map<std::string, std::int64_t> finished_;
};

}  // namespace mw::serve
