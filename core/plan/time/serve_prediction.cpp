// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/serve_prediction.h"

#include <algorithm>
#include <cmath>

#include "core/plan/memory/device_memory.h"
#include "core/plan/time/steady_state.h"
#include "core/plan/time/step_time.h"

namespace mw::plan {
namespace {

double usd_per_million(const LocalModel& model, double tokens_per_second) {
  const Request& r = *model.request;
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

Estimate times(const Efficiency& efficiency, double n) {
  return {.value = n * efficiency.value,
          .low = n * efficiency.low,
          .high = n * efficiency.high,
          .origin = efficiency.origin};
}

// Converts the parts of a server's step to terms: reads count as memory, work per token as compute.
StepTime step_of(const ServeStepModel::Parts& p, const Efficiencies& efficiencies) {
  const Estimate dispatch = times(efficiencies.step_s, 1), each = times(efficiencies.sequence_s, p.padded_requests);
  StepTime out;
  const auto add = [&](const char* part, Estimate Term::*where, const Estimate& seconds) {
    Term& term = out.terms.emplace_back();
    term.phase = Term::Phase::decode;
    term.part = part;
    term.*where = seconds;
  };
  add("weights", &Term::memory, p.base - dispatch);
  add("products of the sequences", &Term::compute, p.sequences - each);
  add("KV reads", &Term::memory, p.kv_reads);
  add("sums between devices", &Term::communication, p.communication);
  for (const Term& t : out.terms) {
    out.compute += t.compute;
    out.memory += t.memory;
    out.communication += t.communication;
  }
  out.fixed = dispatch + each;
  out.seconds = p.total;
  out.overlap = "a step waits for its sums";
  return out;
}

// Time to first token of a prompt in an idle server, summed over its chunks.
Estimate first_token(const ServeStepModel& model, const ServeWork& s) {
  const double window = model.window() > 0 ? model.window() : s.input_len;
  Estimate sum;
  for (int done = 0; done < s.input_len;) {
    const int now = std::min(s.input_len - done, std::max(1, s.max_num_batched_tokens));
    const double middle = done + now / 2.0;
    const auto p = model.parts({.prefill_tokens = now,
                                .prefilling = 1,
                                .prefill_pairs = now * middle,
                                .prefill_window_pairs = now * std::min(middle, window)});
    sum = done == 0 ? p.total : sum + p.total;
    done += now;
  }
  return sum;
}

}  // namespace

ServePrediction serve(const LocalModel& m, const DeviceMemory& memory) {
  const Request& r = *m.request;
  const ServeWork& s = r.serve;
  const ServeStepModel model(r);
  ServePrediction out;
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(m, s.max_model_len);
  const auto cache = static_cast<double>(memory.at_peak[MemoryCategory::kv_cache].value);
  n.kv_tokens = n.kv_bytes_per_token > 0 ? static_cast<std::int64_t>(cache / n.kv_bytes_per_token) * m.batch_ways : 0;
  const SteadyLoad load{
      .concurrency = std::max(1, s.max_num_seqs), .input_len = s.input_len, .output_len = s.output_len};
  const SteadyState steady = steady_state(model, s, load);
  const double rows = std::floor(steady.running), context = s.input_len + s.output_len / 2.0;
  const double window = model.window() > 0 ? std::min<double>(context, model.window()) : context;
  const auto step = model.parts(
      {.decoding = static_cast<int>(rows), .read_tokens = rows * context, .read_window_tokens = rows * window});
  out.step = step_of(step, r.efficiencies);
  n.tpot = step.total;
  n.ttft = first_token(model, s) + times(r.efficiencies.request_s, 1);
  n.output_tokens_per_second = steady.output_tokens_per_s;
  n.usd_per_million_output_tokens = usd_per_million(m, n.output_tokens_per_second);
  return out;
}

ServePrediction rollout(const LocalModel& model) {
  const Request& r = *model.request;
  const RolloutWork& w = r.rollout;
  ServePrediction out;
  const auto rows = static_cast<double>(w.batch);
  const StepTime prefill = prefill_time(model, rows, w.prompt);
  // Without window caches every step reads the whole cache, including unused slots.
  const bool whole = r.profile.attention == StackProfile::Attention::materialised;
  const double cache = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  out.step = decode_time(model, rows, whole ? cache : w.prompt + w.new_tokens / 2.0);
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(model, cache);
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
  n.usd_per_million_output_tokens = usd_per_million(model, n.output_tokens_per_second);
  return out;
}

}  // namespace mw::plan
