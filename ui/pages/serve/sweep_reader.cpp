// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_reader.h"

#include <iterator>
#include <utility>

#include "core/compare/comparison.h"

namespace mw::ui {

SweepReader::SweepReader(plan::LoadContext context)
    : load_context_(std::move(context)),
      worker_([this](std::uint64_t request, const std::stop_token&, const auto&) { work(request); }) {}

void SweepReader::show(RunPtr run) {
  run_ = std::move(run);
  sent_ = 0;
  first_ = requested_ + 1;
  completed_ = requested_;
  if (!run_) return;
  settings_sent_ = !run_->view.info().empty();
  const auto& points = run_->view.points();
  sent_ = points.size();
  send({.from_start = true, .info = run_->view.info(), .points = points, .discarded = {}});
}

void SweepReader::grow() {
  if (!run_) return;
  if (!settings_sent_ && !run_->view.info().empty()) return show(run_);
  const auto& points = run_->view.points();
  if (points.size() < sent_) return show(run_);
  if (points.size() == sent_) return;
  const auto since = points.begin() + static_cast<std::ptrdiff_t>(sent_);
  sent_ = points.size();
  send({.from_start = false, .info = {}, .points = {since, points.end()}, .discarded = {}});
}

void SweepReader::send(Input input) {
  {
    const std::lock_guard lock(mutex_);
    if (input.from_start) {
      input.discarded = std::move(input_.discarded);
      input_ = std::move(input);
    } else {
      std::move(input.points.begin(), input.points.end(), std::back_inserter(input_.points));
    }
  }
  worker_.submit(++requested_);
}

void SweepReader::discard(SweepViewPtr view) {
  if (!view) return;
  {
    const std::lock_guard lock(mutex_);
    input_.discarded.push_back(std::move(view));
  }
  worker_.submit(requested_);
}

// On the worker thread. Includes physical limits if the catalogue has model and target.
void SweepReader::work(std::uint64_t request) {
  Input input;
  {
    const std::lock_guard lock(mutex_);
    input = std::exchange(input_, {});
  }
  if (input.from_start) {
    sweep_.emplace(input.info);
  }
  if (!sweep_ || (!input.from_start && input.points.empty())) return;
  for (const event::Point& point : input.points) sweep_->add(point);
  views::SweepView view = sweep_->view();
  if (load_context_) try {
      view.findings = compare::audit_known(view.set, *load_context_());
    } catch (const Error&) {  // reported elsewhere
    }
  results_.push({request, std::make_shared<views::SweepView>(std::move(view))}, Delivery::state);
}

SweepViewPtr SweepReader::drain() {
  SweepViewPtr newest;
  for (Result& result : results_.drain().items) {
    if (result.request >= first_) {
      completed_ = std::max(completed_, result.request);
      std::swap(newest, result.view);
    }
    discard(std::move(result.view));
  }
  return newest;
}

}  // namespace mw::ui
