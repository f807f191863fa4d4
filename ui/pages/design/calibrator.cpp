// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibrator.h"

#include <utility>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"

namespace mw::ui {

Calibrator::Calibrator(Pricer::Folders folders, QObject* parent) : QObject(parent), folders_(std::move(folders)) {
  connect(&task_, &BackgroundWork::changed, this, [this] {
    if (!task_.busy() && task_.result())
      answer_ =
          std::make_shared<const planning::CalibrationResult>(std::move(*std::exchange(task_.result(), std::nullopt)));
    emit changed();
  });
}

void Calibrator::ask(planning::CalibrationRequest question) {
  question.published = folders_.hardware / "measurements.json";
  question.date = planning::today_utc();
  answer_.reset();
  task_.start(
      [question = std::move(question), folders = folders_](const ReportProgress& report, const std::stop_token& stop) {
        planning::CalibrationResult found;
        try {
          const auto catalogue = hardware::Catalogue::load(folders.hardware, folders.own_hardware);
          found = planning::calibrate(
              question, catalogue,
              [&](int done, int total) {
                report({"calibrating", done, total});
              },
              stop);
        } catch (const Error& error) {
          if (error.kind() == Error::Kind::cancelled) throw;
          found.problems.push_back(error.problem());
        } catch (const std::exception& error) {
          found.problems.push_back({.id = "CALIBRATION", .message = error.what()});
        }
        return found;
      });
}

void Calibrator::cancel() {
  answer_.reset();
  task_.abandon();
}

bool Calibrator::has_own() const {
  return can_keep() && path_exists(plan::user_calibration_file(folders_.own_hardware));
}

std::string Calibrator::in_force() const {
  const auto file =
      has_own() ? plan::user_calibration_file(folders_.own_hardware) : plan::user_calibration_file(folders_.hardware);
  if (!path_exists(file)) return {};
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
