// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/train_figures.h"

#include <algorithm>

#include "core/base/optimizer_steps.h"
#include "core/plan/memory/device_memory.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/refusals.h"
#include "core/plan/time/step_time.h"

namespace mw::plan {

std::int64_t train_steps(const Request& r, double rows) {
  if (r.train.steps > 0) return r.train.steps;
  return steps_of_epochs(r.train.epoch_rows > 0 ? r.train.epoch_rows : rows, r.train.epochs,
                         {.batch = r.train.batch, .accumulation = r.train.accumulation});
}

struct TrainPredictor::Impl {
  explicit Impl(const Request& base) : request(in_order(base)), model(local_model(request, kUse)) {}

  static constexpr auto kUse = mesh::ShardingUse::training;
  static Request in_order(Request request) {
    request.mesh = canonical_order(std::move(request.mesh));
    return request;
  }

  // No check reads more of the settings that change.
  bool is_allowed() {
    const auto now = std::tuple(request.train.batch, request.train.accumulation, request.train.remat);
    if (checked == now) return allowed;
    checked = now;
    try {
      check_request(request);
      allowed = refusals(request, model.placement, std::nullopt).empty();
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
    return known
        .emplace_back(now,
                      row_statistics(request.lengths, rows_on_device(model, request.train.batch), model.batch_ways))
        .second;
  }

  Request request;
  LocalModel model;
  TrainStepSeconds step{model};
  std::optional<std::tuple<std::int64_t, int, model::Remat>> checked;
  bool allowed = false;
  std::vector<std::pair<std::pair<std::int64_t, RowLayout>, RowStatistics>> known;  // of one size of the micro-batch
};

TrainPredictor::TrainPredictor(const Request& request) : impl_(std::make_unique<Impl>(request)) {}
TrainPredictor::~TrainPredictor() = default;

Request& TrainPredictor::request() {
  return impl_->request;
}

std::optional<TrainFigures> TrainPredictor::figures() {
  Impl& i = *impl_;
  if (!i.is_allowed()) return std::nullopt;
  const Request& r = i.request;
  const RowStatistics& rows = i.statistics();
  TrainFigures out;
  out.seconds = i.step(rows.slowest);
  const double compile = i.model.layers() * r.efficiencies.compile_s.value;
  out.hours = (out.seconds * static_cast<double>(train_steps(r, rows.batches_rows)) + compile) * (1.0 / 3600);
  out.usd = out.hours * (r.price.usd_per_chip_hour * r.target.chips());
  out.tokens_per_second =
      static_cast<double>(r.train.batch) * std::max(1, r.train.accumulation) * rows.real / out.seconds;
  out.peak = train_peak(i.model, rows.longest);
  out.capacity = device_capacity(r);
  return out;
}

}  // namespace mw::plan
