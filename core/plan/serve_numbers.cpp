// SPDX-License-Identifier: Apache-2.0
#include "core/plan/serve_numbers.h"

#include <algorithm>
#include <cmath>

#include "core/plan/device_memory.h"
#include "core/plan/step_time.h"

namespace mw::plan {
namespace {

Estimate with_sequences(const LocalModel& m, Estimate step, double rows) {
  const Efficiency& each = m.request->efficiencies.sequence_s;
  step += {.value = rows * each.value, .low = rows * each.low, .high = rows * each.high, .origin = each.origin};
  return step;
}

double usd_per_million(const LocalModel& m, double tokens_per_second) {
  const Request& r = *m.request;
  const double hourly = r.price.usd_per_chip_hour * r.target.chips();
  return tokens_per_second > 0 ? hourly / 3600 / tokens_per_second * 1e6 : 0;
}

void scale(StepTime& step, double n) {
  for (Term& t : step.terms) {
    t.compute = t.compute * n;
    t.memory = t.memory * n;
    t.communication = t.communication * n;
    t.hidden *= n;
  }
  for (Estimate* e : {&step.seconds, &step.compute, &step.memory, &step.communication, &step.fixed}) *e = *e * n;
  step.hidden *= n;
}

}  // namespace

Served serve(const LocalModel& m, const DeviceMemory& memory) {
  const Request& r = *m.request;
  const ServeWork& s = r.serve;
  Served out;
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(m, s.max_model_len);
  const auto cache = static_cast<double>(memory.at_peak[MemoryCategory::kv_cache].value);
  n.kv_tokens = n.kv_bytes_per_token > 0 ? static_cast<std::int64_t>(cache / n.kv_bytes_per_token) * m.batch_ways : 0;
  const double context = s.input_len + s.output_len / 2.0;
  const double rows = std::clamp(static_cast<double>(n.kv_tokens) / (s.input_len + s.output_len), 1.0,
                                 static_cast<double>(s.max_num_seqs));
  out.step = decode_time(m, std::floor(rows), context);
  n.tpot = with_sequences(m, out.step.seconds, std::floor(rows));
  const StepTime prefill = prefill_time(m, 1, s.input_len);
  const Efficiency& host = r.efficiencies.request_s;
  n.ttft = prefill.seconds;
  n.ttft += {.value = host.value, .low = host.low, .high = host.high, .origin = host.origin};
  // Each request takes its prefill and its share of decode steps.
  const double per_request = prefill.seconds.value + s.output_len * n.tpot.value / std::floor(rows);
  n.output_tokens_per_second = s.output_len / per_request;
  n.usd_per_million_output_tokens = usd_per_million(m, n.output_tokens_per_second);
  return out;
}

Served rollout(const LocalModel& m) {
  const Request& r = *m.request;
  const RolloutWork& w = r.rollout;
  Served out;
  const auto rows = static_cast<double>(w.batch);
  const StepTime prefill = prefill_time(m, rows, w.prompt);
  // Without window caches every step reads the whole cache, written or not.
  const bool whole = r.habits.attention == Habits::Attention::materialised;
  const double cache = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  out.step = decode_time(m, rows, whole ? cache : w.prompt + w.new_tokens / 2.0);
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(m, cache);
  n.kv_tokens = static_cast<std::int64_t>(rows * cache);
  n.tpot = out.step.seconds;
  n.ttft = prefill.seconds;
  scale(out.step, w.new_tokens);
  for (Term t : prefill.terms) {
    t.phase = Term::Phase::prefill;
    out.step.terms.push_back(std::move(t));
  }
  out.step.compute += prefill.compute;
  out.step.memory += prefill.memory;
  out.step.communication += prefill.communication;
  out.step.fixed += prefill.fixed;
  out.step.hidden += prefill.hidden;
  out.step.seconds += prefill.seconds;
  n.output_tokens_per_second = rows * w.new_tokens / out.step.seconds.value;
  n.usd_per_million_output_tokens = usd_per_million(m, n.output_tokens_per_second);
  return out;
}

}  // namespace mw::plan
