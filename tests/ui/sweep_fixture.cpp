// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/sweep_fixture.h"

#include <cmath>

namespace mw::test {

formats::BenchPoint sweep_point(int input_len, double rate, const SweepShape& shape) {
  const bool over = rate > 16;
  formats::BenchPoint p;
  p.request_rate = rate, p.input_len = input_len, p.output_len = shape.output_len;
  p.num_prompts = p.completed = shape.requests;
  const double ttft = shape.slow * input_len / 10.0 * (over ? 2 : 1), tpot = 10 + rate / 10;
  std::vector<double> ttfts, tpots, ends;
  double last = 0;
  for (int i = 0; i < shape.requests; ++i) {
    formats::RequestResult r;
    const double spread = 1 + 0.02 * (i % 10);
    r.intended_s = r.sent_s = i / rate;
    r.scheduled_s = r.sent_s + (over ? 0.4 : 0.1) * ttft / 1e3;
    r.first_token_s = r.sent_s + ttft * spread / 1e3;
    r.end_s = r.first_token_s + tpot * (shape.output_len - 1) / 1e3;
    r.prompt_tokens = input_len, r.output_tokens = shape.output_len;
    ttfts.push_back(ttft * spread), tpots.push_back(tpot), ends.push_back((r.end_s - r.sent_s) * 1e3);
    last = std::max(last, r.end_s);
    p.requests.push_back(r);
  }
  p.duration_s = last;
  p.total_input_tokens = static_cast<long>(shape.requests) * input_len;
  p.total_output_tokens = static_cast<long>(shape.requests) * shape.output_len;
  p.request_throughput = shape.requests / last;
  p.output_throughput = static_cast<double>(p.total_output_tokens) / last;
  p.total_token_throughput = static_cast<double>(p.total_input_tokens + p.total_output_tokens) / last;
  p.ttft = formats::latency_stats(ttfts), p.tpot = formats::latency_stats(tpots), p.e2el = formats::latency_stats(ends);
  p.itl = p.tpot, p.intended_ttft = p.ttft, p.intended_e2el = p.e2el;
  p.verdict = over ? "overloaded" : "stable";
  for (int i = 0; i <= 50; ++i) {
    const double at = last * i / 50;
    int running = 0, waiting = 0;
    for (const auto& r : p.requests) {
      running += r.scheduled_s <= at && at < r.end_s;
      waiting += r.sent_s <= at && at < r.scheduled_s;
    }
    p.timeline.push_back({at, running, waiting, std::min(1.0, running / 40.0), 0});
  }
  return p;
}

std::vector<Event> sweep_events(const std::string& name, const SweepShape& shape) {
  formats::BenchSet set;
  set.name = name, set.provenance = shape.provenance, set.tool = "meshwright";
  set.model = "gemma4-31b", set.target = shape.target, set.chips = 8, set.usd_per_hour = 21.52;
  set.conditions = {{"kv_dtype", "fp8"}, {"prefix_cache", "off"}};
  const bool predicted = shape.provenance == formats::ResultProvenance::predicted;
  std::vector<Event> out;
  out.push_back({0, event::StateChanged{RunState::running}});
  out.push_back({0, event::Started{Json{{"kind", "sweep"},
                                        {"name", name},
                                        {"source", predicted ? "predicted" : "measured"},
                                        {"steps", shape.rates.size() * shape.input_lens.size()},
                                        {"slo", {{"ttft_ms", 500.0}, {"tpot_ms", 12.0}, {"e2e_ms", 0.0}}},
                                        {"set", formats::to_json(set, formats::Detail::summary)}}}});
  long step = 0;
  for (const int len : shape.input_lens)
    for (const double rate : shape.rates)
      out.push_back({0.1 * static_cast<double>(++step),
                     event::ResultPoint{step, "sweep",
                                        formats::to_json(sweep_point(len, rate, shape), formats::Detail::requests)}});
  event::Finished finished;
  finished.steps = step, finished.seconds = 0.1 * static_cast<double>(step);
  out.push_back({finished.seconds, finished});
  return out;
}

store::RunId add_sweep(const std::filesystem::path& runs_folder, const std::string& name, const SweepShape& shape) {
  experiment::Experiment experiment;
  experiment.set_value("kind", "serve");
  experiment.set_value("name", name);
  experiment.set_value("model.id", "gemma4-31b");
  experiment.set_value("target.id", shape.target);
  experiment.set_value("sweep.request_rates", shape.rates);
  experiment.set_value("sweep.input_lens", shape.input_lens);
  store::Store store(runs_folder);
  const store::RunId run = store.create(experiment, name);
  for (const Event& event : sweep_events(name, shape)) store.append(run, event);
  store.flush();
  return run;
}

}  // namespace mw::test
