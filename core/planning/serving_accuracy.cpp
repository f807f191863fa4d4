// SPDX-License-Identifier: Apache-2.0
#include "core/planning/serving_accuracy.h"

#include <cmath>
#include <map>
#include <tuple>

#include "core/serve/load/load_summary.h"
#include "core/serve/load/saturation.h"
#include "core/serve/load/simulated_backend.h"

namespace mw::serve {
namespace {

double figure(const formats::BenchPoint& p, plan::MeasuredQuantity what) {
  switch (what) {
    case plan::MeasuredQuantity::mean_ttft:
      return p.ttft.mean;
    case plan::MeasuredQuantity::median_ttft:
      return p.ttft.median;
    case plan::MeasuredQuantity::mean_tpot:
      return p.tpot.mean;
    case plan::MeasuredQuantity::median_tpot:
      return p.tpot.median;
    case plan::MeasuredQuantity::median_itl:
      return p.itl.median;
    default:
      return p.output_throughput;
  }
}

auto played_as(const plan::Measurement& m) {
  const plan::Request& r = m.request;
  return std::tuple(r.model.id, r.target.id, r.mesh.devices(), r.serve.input_len, r.serve.output_len,
                    r.serve.max_num_seqs, r.serve.max_num_batched_tokens, m.load.concurrency, m.load.request_rate,
                    m.load.requests, m.load.warmups);
}

}  // namespace

LoadSettings load_of(const plan::Measurement& row) {
  LoadSettings s;
  s.arrival = row.load.concurrency > 0 ? Arrival::closed : Arrival::poisson;
  s.concurrency = row.load.concurrency;
  s.request_rate = row.load.request_rate;
  s.input_len = row.request.serve.input_len;
  s.output_len = row.request.serve.output_len;
  if (row.load.spread > 0) s.lengths = LengthDistribution::uniform, s.spread = row.load.spread;
  s.num_prompts = row.load.requests > 0 ? row.load.requests : 10 * row.load.concurrency;
  s.warmups = row.load.warmups;
  return s;
}

formats::BenchPoint simulate(const plan::Measurement& row) {
  const plan::ServeWork& w = row.request.serve;
  const auto backend = make_cost_model_backend(row.request, {.max_num_seqs = w.max_num_seqs,
                                                             .max_num_batched_tokens = w.max_num_batched_tokens,
                                                             .max_model_len = w.max_model_len,
                                                             .prefix_cache = PrefixCache::off,
                                                             .kv = {}});
  const Load load = make_load(load_of(row));
  return summarise(load, backend->run(load, {}, {}), {});
}

Accuracy simulate_all(const std::vector<plan::Measurement>& rows, const plan::Calibration& calibration) {
  Accuracy out{.figures = std::vector<plan::Comparison>(rows.size()), .steady = std::vector<bool>(rows.size())};
  std::map<decltype(played_as(rows.front())), formats::BenchPoint> played;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!plan::is_serving(rows[i].what)) continue;
    auto found = played.find(played_as(rows[i]));
    if (found == played.end()) {
      plan::Measurement row = rows[i];
      plan::apply(calibration, row.request);
      found = played.emplace(played_as(rows[i]), simulate(row)).first;
    }
    out.figures[i] = plan::compare(rows[i], figure(found->second, rows[i].what));
    const bool at_once = rows[i].load.concurrency == 0 && std::isinf(rows[i].load.request_rate);
    out.steady[i] = !at_once && found->second.verdict == to_string(Saturation::stable);
  }
  return out;
}

}  // namespace mw::serve
