// SPDX-License-Identifier: Apache-2.0
#include "core/formats/logs/vllm_log.h"

#include <array>
#include <cmath>
#include <optional>

#include "core/base/text.h"

namespace mw::formats {
namespace {

// The number after `label`, in which thousands may be separated: "GPU KV cache size: 20,992 tokens".
std::optional<double> number_after(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::string digits;
  for (size_t i = at + label.size(); i < text.size() && digits.size() < 32; ++i) {
    const char c = text[i];
    if ((c == 'e' || c == 'E') && !digits.empty()) return std::nullopt;  // no log writes exponents
    if ((c >= '0' && c <= '9') || c == '.' || (c == '-' && digits.empty()))
      digits += c;
    else if (c != ',' && !(c == ' ' && digits.empty()))
      break;
    else if (c == ',' && (i + 1 >= text.size() || text[i + 1] < '0' || text[i + 1] > '9'))
      break;
  }
  const auto value = parse_number<double>(digits);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Bytes> gib_after(std::string_view text, std::string_view label) {
  const auto gib = number_after(text, label);
  constexpr double kMost = 1 << 20;
  if (!gib || *gib < 0 || *gib > kMost) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(*gib * 1073741824.0));
}

// "(Worker_TP3 pid=91)" and "(VllmWorker TP3 pid=91)" are device 3.
int device_of(std::string_view line) {
  const size_t worker = line.find("Worker");
  if (worker == std::string_view::npos) return 0;
  constexpr double kMost = 65535;
  const auto rank = number_after(line.substr(worker, 24), "TP");
  return rank && *rank >= 0 && *rank <= kMost ? static_cast<int>(*rank) : 0;
}

}  // namespace

std::vector<Event> VllmLog::take(std::string_view line) {
  std::vector<Event> out;
  const auto report = [&](int device, const char* phase) {
    const Ledger& held = devices_[device];
    out.push_back({0, event::Memory{device, step_, phase, held, held.total()}});
  };
  if (const auto ranks = number_after(line, "tensor_parallel_size="); ranks && *ranks >= 1 && *ranks <= 65536)
    tensor_parallel_ = static_cast<int>(*ranks);
  if (const auto weights = gib_after(line, "Model loading took")) {
    devices_[device_of(line)][MemoryCategory::weights] = *weights;
    report(device_of(line), "load");
  } else if (const auto graphs = gib_after(line, "Estimated CUDA graph memory:")) {
    devices_[device_of(line)][MemoryCategory::workspace] = *graphs;
    report(device_of(line), "load");
  } else if (const auto cache = gib_after(line, "Available KV cache memory:")) {
    kv_capacity_ = *cache;
    devices_[device_of(line)][MemoryCategory::kv_cache] = *cache;
    report(device_of(line), "kv_cache");
  } else if (const auto used = gib_after(line, "total_hbm_used_gb=")) {  // vllm-tpu: sums over all chips
    const auto available = gib_after(line, "total_hbm_avail_gb=").value_or(Bytes());
    kv_capacity_ = Bytes(available.value / tensor_parallel_);
    for (int device = 0; device < tensor_parallel_; ++device) {
      devices_[device][MemoryCategory::weights] = Bytes(used->value / tensor_parallel_);
      devices_[device][MemoryCategory::kv_cache] = kv_capacity_;
      report(device, "kv_cache");
    }
  } else if (const auto tokens = number_after(line, "KV cache size:")) {
    out.push_back({0, event::Metric{"serve/kv_cache_tokens", step_, *tokens}});
  } else if (line.find("Avg generation throughput:") != std::string_view::npos) {
    ++step_;
    const auto add = [&](const char* name, std::string_view label, double factor) {
      if (const auto value = number_after(line, label)) out.push_back({0, event::Metric{name, step_, *value * factor}});
    };
    add("serve/prompt_tokens_per_second", "Avg prompt throughput:", 1);
    add("serve/generation_tokens_per_second", "Avg generation throughput:", 1);
    add("serve/running", "Running:", 1);
    add("serve/waiting", "Waiting:", 1);
    add("serve/kv_cache_usage", "KV cache usage:", 0.01);
  }
  return out;
}

std::vector<Event> VllmLog::take_metrics(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 7> kMetrics{
      {{"vllm:num_requests_running", "serve/running"},
       {"vllm:num_requests_waiting", "serve/waiting"},
       {"vllm:kv_cache_usage_perc", "serve/kv_cache_usage"},
       {"vllm:gpu_cache_usage_perc", "serve/kv_cache_usage"},
       {"vllm:prompt_tokens_total", "serve/prompt_tokens"},
       {"vllm:generation_tokens_total", "serve/generation_tokens"},
       {"vllm:num_preemptions_total", "serve/preemptions"}}};
  std::map<std::string, double> sums;  // over the engines of the server
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t end = line.find_first_of("{ ");
    if (line.starts_with('#') || end == std::string_view::npos) continue;
    for (const auto& [theirs, ours] : kMetrics) {
      if (line.substr(0, end) != theirs) continue;
      const size_t space = line.rfind(' ');
      if (const auto value = number_after(line.substr(space), " ")) sums[ours] += *value;
    }
  }
  std::vector<Event> out;
  if (sums.empty()) return out;
  ++step_;
  for (const auto& [name, value] : sums) out.push_back({0, event::Metric{name, step_, value}});
  return out;
}

}  // namespace mw::formats
