// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/server_metrics.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/base/text.h"

namespace mw::serve {
namespace {

// Resident memory of this process; 0 if the system does not report it.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

std::string number(double x) {
  return formatted("%.12g", x);
}

std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : valid_utf8(value)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void header(std::string& out, const std::string& name, const char* type, const char* help) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void value(std::string& out, const std::string& name, const char* type, const char* help, const std::string& labels,
           double x) {
  header(out, name, type, help);
  out += name + "{" + labels + "} " + number(x) + "\n";
}

}  // namespace

void PrometheusHistogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<size_t>(at)];
  sum_ += value;
}

void PrometheusHistogram::write(std::string& out, const std::string& name, const std::string& labels) const {
  std::int64_t so_far = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    so_far += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    out += name + "_bucket{le=\"" + bound + "\"," + labels + "} " + std::to_string(so_far) + "\n";
  }
  out += name + "_sum{" + labels + "} " + number(sum_) + "\n";
  out += name + "_count{" + labels + "} " + std::to_string(so_far) + "\n";
}

// The bounds of vLLM's histograms (vllm/v1/metrics/loggers.py).
ServerMetrics::ServerMetrics(std::string model)
    : labels_("model_name=\"" + escaped(model) + "\""),
      ttft_({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160}),
      per_token_({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}),
      e2e_({0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}),
      finished_{{"abort", 0}, {"error", 0}, {"length", 0}, {"stop", 0}} {}

void ServerMetrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  ttft_.observe(seconds);
}
void ServerMetrics::later_token(double seconds) {
  const std::lock_guard lock(mutex_);
  per_token_.observe(seconds);
}
void ServerMetrics::finished(const std::string& reason, double seconds) {
  const std::lock_guard lock(mutex_);
  ++finished_[reason];
  if (reason == "stop" || reason == "length") e2e_.observe(seconds);
}

std::string ServerMetrics::prometheus_text(const ServingLoop::State& s) const {
  std::string out;
  const auto add = [&](const char* name, const char* type, const char* help, double x) {
    value(out, name, type, help, labels_, x);
  };
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  add("vllm:num_requests_running", "gauge", "Requests in the running batch.", s.scheduler.running);
  add("vllm:num_requests_waiting", "gauge", "Requests waiting to be processed.", s.scheduler.waiting);
  add("vllm:kv_cache_usage_perc", "gauge", "Fraction of the KV cache in use.", s.scheduler.kv_used);
  add("vllm:gpu_cache_usage_perc", "gauge", "Fraction of the KV cache in use (older name).", s.scheduler.kv_used);
  add("vllm:num_preemptions_total", "counter", "Preemptions.", count(s.scheduler.preemptions));
  add("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.",
      count(s.scheduler.prompt_tokens));
  add("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.",
      count(s.scheduler.cached_tokens));
  add("vllm:prompt_tokens_total", "counter", "Prompt tokens of requests that were prefilled.", count(s.prompt_tokens));
  add("vllm:generation_tokens_total", "counter", "Generated tokens.", count(s.output_tokens));
  add("meshwright:requests_refused_total", "counter", "Requests rejected with status 429 or 503.", count(s.rejected));
  add("meshwright:steps_total", "counter", "Scheduler steps.", count(s.steps));
  header(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
  out += "process_resident_memory_bytes " + number(count(resident_bytes())) + "\n";
  const std::lock_guard lock(mutex_);
  header(out, "vllm:request_success_total", "counter", "Finished requests by reason.");
  for (const auto& [reason, n] : finished_)
    out += "vllm:request_success_total{finished_reason=\"" + reason + "\"," + labels_ + "} " + std::to_string(n) + "\n";
  header(out, "vllm:time_to_first_token_seconds", "histogram", "Time to the first token.");
  ttft_.write(out, "vllm:time_to_first_token_seconds", labels_);
  header(out, "vllm:time_per_output_token_seconds", "histogram", "Time between output tokens.");
  per_token_.write(out, "vllm:time_per_output_token_seconds", labels_);
  header(out, "vllm:e2e_request_latency_seconds", "histogram", "End-to-end latency of requests.");
  e2e_.write(out, "vllm:e2e_request_latency_seconds", labels_);
  return out;
}

}  // namespace mw::serve
