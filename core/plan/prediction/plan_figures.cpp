// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/plan_figures.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/optimizer_steps.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/memory.h"
#include "core/plan/prediction/steady_state.h"
#include "core/plan/prediction/step_time.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/refusals.h"

namespace mw::plan {

bool knows_steps(const Request& r) {
  return r.work != Work::train || r.train.steps > 0 || r.train.epoch_rows > 0 || r.lengths.count > 0 ||
         !r.lengths.histogram.empty();
}

std::int64_t train_steps(const Request& r, double rows) {
  if (r.train.steps > 0) return r.train.steps;
  return steps_of_epochs(r.train.epoch_rows > 0 ? r.train.epoch_rows : rows, r.train.epochs,
                         {.batch = r.train.batch, .accumulation = r.train.accumulation});
}

struct PlanPredictor::Impl {
  explicit Impl(Request base) : request(in_order(std::move(base))), model(local_model(request, use_of(request))) {
    if (request.work == Work::serve) server.emplace(model);
  }

  static mesh::ShardingUse use_of(const Request& request) {
    const bool samples = request.work == Work::rollout || request.work == Work::serve;
    return samples ? mesh::ShardingUse::sampling : mesh::ShardingUse::training;
  }
  static Request in_order(Request request) {
    request.mesh = canonical_order(std::move(request.mesh));
    return request;
  }

  // No check reads more of the settings that change. `longest_request` as of refusals().
  bool is_allowed(std::optional<std::int64_t> longest_request = std::nullopt) {
    const Checked now{request.train.batch, request.train.accumulation, request.train.remat, request.serve.max_num_seqs,
                      longest_request};
    if (checked == now) return allowed;
    checked = now;
    try {
      check_request(request);
      allowed = refusals(request, model.placement, longest_request).empty();
    } catch (const Error&) {
      allowed = false;
    }
    return allowed;
  }

  const RowStatistics& statistics() {
    const std::pair now(request.train.batch, request.lengths.rows);
    for (const auto& [key, statistics] : known)
      if (key == now) return statistics;
    if (!known.empty() && known.front().first.first != now.first) known.clear();
    return known.emplace_back(now, train_rows(model)).second;
  }

  double usd_per_hour() const { return request.price.usd_per_chip_hour * request.target.chips(); }

  template <class OfStack>
  Bytes peak(const OfStack& of_stack) const {
    return request.engine ? engine_memory(request).at_peak.total() : of_stack();
  }

  // A run of `seconds` that computes `tokens`.
  CandidateFigures run_of(double seconds, double tokens, Bytes peak) const {
    const double hours = seconds * (1.0 / 3600);
    return {.seconds = seconds,
            .tokens_per_second = tokens / seconds,
            .hours = hours,
            .usd = hours * usd_per_hour(),
            .peak = peak,
            .capacity = device_capacity(request)};
  }

  std::optional<CandidateFigures> train() {
    if (!is_allowed()) return std::nullopt;
    const RowStatistics& rows = statistics();
    CandidateFigures out;
    out.seconds = step.train(rows);
    const double compile = model.layers() * request.efficiencies.compile_s.value;
    out.hours = (out.seconds * static_cast<double>(train_steps(request, rows.batches_rows)) + compile) * (1.0 / 3600);
    out.usd = out.hours * usd_per_hour();
    out.tokens_per_second =
        static_cast<double>(request.train.batch) * std::max(1, request.train.accumulation) * rows.real / out.seconds;
    out.peak = peak([&] { return train_peak(model, rows.longest); });
    out.capacity = device_capacity(request);
    return out;
  }

  std::optional<CandidateFigures> forward() {
    if (!is_allowed()) return std::nullopt;
    const ForwardWork& f = request.forward;
    return run_of(step.forward(), static_cast<double>(f.batch) * f.len, peak([&] { return forward_peak(model); }));
  }

  std::optional<CandidateFigures> rollout() {
    if (!is_allowed()) return std::nullopt;
    const RolloutWork& w = request.rollout;
    const RolloutShape shape = rollout_shape(request);
    const double seconds = step.decode(shape.rows, shape.context) * w.new_tokens + step.prefill(shape.rows, w.prompt);
    return run_of(seconds, static_cast<double>(w.batch) * w.new_tokens, peak([&] { return rollout_peak(model); }));
  }

  std::optional<CandidateFigures> serve() {
    server->set_cache(model);
    const Ledger held = request.engine ? engine_memory(request).at_peak : serve_totals(model);
    CandidateFigures out{.peak = held.total(), .capacity = device_capacity(request)};
    const auto cache = static_cast<double>(held[MemoryCategory::kv_cache].value);
    if (!is_allowed(out.peak <= out.capacity ? std::optional(longest_request(model, cache)) : std::nullopt))
      return std::nullopt;
    const LoadedServer load = loaded_server(*server, request.serve);
    out.seconds = server->seconds(load.decoding);
    out.tokens_per_second = load.steady.output_tokens_per_s;
    out.usd = out.tokens_per_second > 0 ? usd_per_hour() / 3600 / out.tokens_per_second * 1e6 : 0;
    return out;
  }

  using Checked = std::tuple<std::int64_t, int, model::Remat, int, std::optional<std::int64_t>>;
  Request request;
  LocalModel model;
  StepSeconds step{model};
  std::optional<ServeStepModel> server;  // of Work::serve
  std::optional<Checked> checked;
  bool allowed = false;
  std::vector<std::pair<std::pair<std::int64_t, RowLayout>, RowStatistics>> known;  // of one size of the micro-batch
};

PlanPredictor::PlanPredictor(Request request) : impl_(std::make_unique<Impl>(std::move(request))) {}
PlanPredictor::~PlanPredictor() = default;

Request& PlanPredictor::request() {
  return impl_->request;
}

std::optional<CandidateFigures> PlanPredictor::figures() try {
  switch (impl_->request.work) {
    case Work::train:
      return impl_->train();
    case Work::forward:
      return impl_->forward();
    case Work::rollout:
      return impl_->rollout();
    case Work::serve:
      return impl_->serve();
  }
  return std::nullopt;
} catch (const Error&) {  // of the engine's memory
  return std::nullopt;
}

}  // namespace mw::plan
