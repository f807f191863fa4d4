// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibrator.h"

#include <algorithm>
#include <utility>

#include "core/base/files.h"

namespace mw::ui {

Calibrator::Calibrator(Pricer::Folders folders, QObject* parent)
    : QObject(parent),
      folders_(std::move(folders)),
      worker_([this](const Question& question, const std::stop_token& stop, const Newest<Question>::Quiet&) {
        work(question, stop);
      }) {}

void Calibrator::ask(runs::CalibrationQuestion question) {
  question.published = folders_.hardware / "measurements.json";
  question.date = runs::today_utc();
  answer_.reset();
  busy_ = true;
  percent_ = 0;
  worker_.ask({++asked_, std::move(question)});
  emit changed();
}

void Calibrator::cancel() {
  ++asked_;
  worker_.cancel();
  answer_.reset();
  busy_ = false;
  emit changed();
}

// On the worker's thread.
void Calibrator::work(const Question& question, const std::stop_token& stop) {
  const auto say = [&](Answer answer) {
    answer.question = question.number;
    answers_.push(std::move(answer), Delivery::state);
  };
  runs::Calibrated found;
  try {
    const auto catalogue = hardware::Catalogue::load(folders_.hardware, folders_.own_hardware);
    found = runs::calibrate(
        question.what, catalogue, [&](int done, int total) { say({.percent = 100 * done / std::max(1, total)}); },
        stop);
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) return;
    found.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    found.problems.push_back({.id = "CALIBRATION", .message = error.what()});
  }
  say({.percent = 100, .found = std::make_shared<const runs::Calibrated>(std::move(found))});
}

void Calibrator::drain() {
  for (const Answer& answer : answers_.drain().items) {
    if (answer.question != asked_ || !busy_) continue;
    percent_ = answer.percent;
    if (answer.found) {
      answer_ = answer.found;
      busy_ = false;
    }
    emit changed();
  }
}

bool Calibrator::has_own() const {
  return can_keep() && is_there(plan::user_calibration_file(folders_.own_hardware));
}

std::string Calibrator::in_force() const {
  const auto file =
      has_own() ? plan::user_calibration_file(folders_.own_hardware) : plan::user_calibration_file(folders_.hardware);
  if (!is_there(file)) return {};
  try {
    const plan::CalibrationBasis basis = plan::read_calibration(file).basis;
    return has_own() ? plan::to_text(basis) : "the shipped calibration of " + basis.date;
  } catch (const Error& error) {
    return error.what();
  }
}

template <class Write>
void Calibrator::keep(Write write) {
  try {
    before_.push_back(write(folders_.own_hardware));
  } catch (const Error& error) {
    emit problem(error.problem());
    return;
  }
  emit accepted_changed();
}

void Calibrator::accept() {
  if (!answer_ || !answer_->proposal) return;
  keep([&](const auto& folder) { return plan::accept_proposal(folder, *answer_->proposal); });
}

void Calibrator::remove() {
  keep([](const auto& folder) { return plan::remove_user_calibration(folder); });
}

void Calibrator::undo() {
  if (!can_undo()) return;
  const std::optional<std::string> before = before_.back();
  try {
    plan::restore_calibration(folders_.own_hardware, before);
  } catch (const Error& error) {
    emit problem(error.problem());
    return;
  }
  before_.pop_back();
  emit accepted_changed();
}

}  // namespace mw::ui
