// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/simulated_rows.h"

#include <map>
#include <tuple>
#include <vector>

#include "core/serve/load/load_statistics.h"
#include "core/serve/load/simulated_backend.h"

namespace mw::plan {
namespace {

using formats::BenchPoint;

// The load of a measurement; ten requests per user if the measurement does not state the number.
options::LoadSettings load_of(const Measurement& row) {
  options::LoadSettings s;
  s.arrival = row.load.concurrency > 0 ? options::Arrival::closed : options::Arrival::poisson;
  s.concurrency = row.load.concurrency;
  s.request_rate = row.load.request_rate;
  s.input_len = row.request.serve.input_len;
  s.output_len = row.request.serve.output_len;
  if (row.load.spread > 0) s.lengths = options::LengthDistribution::uniform, s.spread = row.load.spread;
  s.num_prompts = row.load.requests > 0 ? row.load.requests : 10 * row.load.concurrency;
  s.warmups = row.load.warmups;
  return s;
}

std::vector<double> values_of(const Efficiencies& efficiencies) {
  std::vector<double> out;
  for (const Efficiencies::Named& n : Efficiencies::names()) out.push_back((efficiencies.*n.member).value);
  return out;
}

// Rows with equal values are simulated only once.
auto played_as(const Measurement& m) {
  const Request& r = m.request;
  return std::tuple(r.model.id, r.target.id, r.stack, mesh::to_text(r.mesh), r.weights, r.kv, r.products,
                    r.serve.input_len, r.serve.output_len, r.serve.max_num_seqs, r.serve.max_num_batched_tokens,
                    r.serve.max_model_len, r.serve.memory_utilisation, r.sliding_window_kv, r.serve.scheduling,
                    m.load.concurrency, m.load.request_rate, m.load.requests, m.load.warmups, m.load.spread,
                    m.load.earlier, values_of(r.efficiencies));
}

}  // namespace

BenchPoint simulated_row(const Measurement& row) {
  const ServeWork& w = row.request.serve;
  const options::ServerDefaults& server = row.request.profile.server;
  const auto chunked = server.chunked_prefill ? serve::ChunkedPrefill::on : serve::ChunkedPrefill::off;
  const auto backend = serve::make_cost_model_backend(
      row.request, {.max_num_seqs = w.max_num_seqs,
                    .max_num_batched_tokens = w.max_num_batched_tokens,
                    .max_model_len = w.max_model_len,
                    .chunked_prefill = chunked,
                    .prefix_cache = row.load.earlier.empty() ? serve::PrefixCache::off : serve::PrefixCache::on,
                    .kv = {.block_size = server.block_size, .groups = {}, .capacity = {}}});
  options::LoadSettings settings = load_of(row);
  if (!row.load.earlier.empty()) settings.prompts = options::PromptMode::replayed;
  for (const EarlierLoad& before : row.load.earlier) {
    options::LoadSettings earlier = settings;
    earlier.input_len = before.input_len, earlier.output_len = before.output_len;
    earlier.num_prompts = before.requests;
    backend->run(serve::make_load(earlier), {}, {});
  }
  const serve::Load load = serve::make_load(settings);
  return serve::summarise(load, backend->run(load, {}, {}), {});
}

double figure_of(const BenchPoint& p, MeasuredQuantity what) {
  switch (what) {
    case MeasuredQuantity::mean_ttft:
      return p.ttft.mean;
    case MeasuredQuantity::median_ttft:
      return p.ttft.median;
    case MeasuredQuantity::mean_tpot:
      return p.tpot.mean;
    case MeasuredQuantity::median_tpot:
      return p.tpot.median;
    case MeasuredQuantity::median_itl:
      return p.itl.median;
    default:
      return p.output_throughput;
  }
}

struct RowSimulator::Known {
  std::map<decltype(played_as(std::declval<Measurement>())), BenchPoint> points;
};

RowSimulator::RowSimulator() : known_(std::make_unique<Known>()) {}
RowSimulator::~RowSimulator() = default;

const BenchPoint& RowSimulator::point(const Measurement& row) {
  auto key = played_as(row);
  auto found = known_->points.find(key);
  if (found == known_->points.end()) found = known_->points.emplace(std::move(key), simulated_row(row)).first;
  return found->second;
}

FitOptions simulated_fit_options() {
  FitOptions options = shipped_fit_options();
  options.simulated = [simulator = std::make_shared<RowSimulator>()](const Measurement& row) {
    return simulator->figure(row);
  };
  return options;
}

}  // namespace mw::plan
