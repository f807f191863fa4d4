// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/sweep_reader.h"

#include <iterator>
#include <utility>

#include "core/compare/compared_files.h"

namespace mw::ui {

SweepReader::SweepReader(hardware::LoadCatalogue catalogue)
    : load_catalogue_(std::move(catalogue)),
      worker_([this](std::uint64_t question, const std::stop_token&, const auto&) { work(question); }) {}

void SweepReader::show(RunPtr run) {
  run_ = std::move(run);
  sent_ = 0;
  first_ = asked_ + 1;
  answered_ = asked_;
  if (!run_) return;
  begun_ = !run_->view.info().empty();
  const auto& points = run_->view.points();
  sent_ = points.size();
  send({.anew = true, .info = run_->view.info(), .points = points, .discarded = {}});
}

void SweepReader::grow() {
  if (!run_) return;
  if (!begun_ && !run_->view.info().empty()) return show(run_);
  const auto& points = run_->view.points();
  if (points.size() < sent_) return show(run_);
  if (points.size() == sent_) return;
  const auto since = points.begin() + static_cast<std::ptrdiff_t>(sent_);
  sent_ = points.size();
  send({.anew = false, .info = {}, .points = {since, points.end()}, .discarded = {}});
}

void SweepReader::send(Parcel parcel) {
  {
    const std::lock_guard lock(mutex_);
    if (parcel.anew) {
      parcel.discarded = std::move(parcel_.discarded);
      parcel_ = std::move(parcel);
    } else {
      std::move(parcel.points.begin(), parcel.points.end(), std::back_inserter(parcel_.points));
    }
  }
  worker_.submit(++asked_);
}

void SweepReader::discard(SweepViewPtr view) {
  if (!view) return;
  {
    const std::lock_guard lock(mutex_);
    parcel_.discarded.push_back(std::move(view));
  }
  worker_.submit(asked_);
}

// On the worker thread. Includes physical limits if the catalogue has model and target.
void SweepReader::work(std::uint64_t question) {
  Parcel parcel;
  {
    const std::lock_guard lock(mutex_);
    parcel = std::exchange(parcel_, {});
  }
  if (parcel.anew) {
    sweep_.emplace(parcel.info);
    catalogue_.reset();
  }
  if (!sweep_ || (!parcel.anew && parcel.points.empty())) return;
  for (const event::Point& point : parcel.points) sweep_->add(point);
  views::SweepView view = sweep_->view();
  if (!catalogue_ && load_catalogue_) try {
      catalogue_ = load_catalogue_();
    } catch (const Error&) {  // reported elsewhere; audits what needs no hardware data
    }
  if (catalogue_) view.findings = compare::audit_known(view.set, *catalogue_);
  answers_.push({question, std::make_shared<views::SweepView>(std::move(view))}, Delivery::state);
}

SweepViewPtr SweepReader::drain() {
  SweepViewPtr newest;
  for (Answer& answer : answers_.drain().items) {
    if (answer.question >= first_) {
      answered_ = std::max(answered_, answer.question);
      std::swap(newest, answer.view);
    }
    discard(std::move(answer.view));
  }
  return newest;
}

}  // namespace mw::ui
