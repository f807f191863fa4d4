// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibrator.h"

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/store/store.h"
#include "ui/theme/text.h"

namespace mw::ui {

Calibrator::Calibrator(SharedPlanContext& context, QObject* parent) : QObject(parent), context_(context) {
  connect(&task_, &BackgroundWork::changed, this, [this] {
    if (!task_.is_busy() && task_.result())
      result_ =
          std::make_shared<const audit::CalibrationResult>(std::move(*std::exchange(task_.result(), std::nullopt)));
    emit changed();
  });
}

void Calibrator::calibrate(audit::CalibrationRequest request) {
  request.published = context_.shipped_folder() / "measurements.json";
  request.date = store::today_utc();
  result_.reset();
  task_.start([request = std::move(request), load = context_.loader()](const ReportProgress& report,
                                                                       const std::stop_token& stop) {
    audit::CalibrationResult found;
    try {
      const plan::PlanContextPtr context = load();
      found = audit::calibrate(
          request, *context,
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
  result_.reset();
  task_.abandon();
}

bool Calibrator::has_user_calibration() const {
  return can_accept() && path_exists(plan::user_calibration_file(context_.own_folder()));
}

QString Calibrator::current_calibration() const {
  const auto file = has_user_calibration() ? plan::user_calibration_file(context_.own_folder())
                                           : plan::user_calibration_file(context_.shipped_folder());
  if (!path_exists(file)) return {};
  try {
    const plan::CalibrationBasis basis = plan::read_calibration(file).basis;
    return has_user_calibration() ? qs(plan::to_text(basis)) : tr("the shipped calibration of %1").arg(qs(basis.date));
  } catch (const Error& error) {
    return qs(error.what());
  }
}

template <class Write>
void Calibrator::change(Write write) {
  try {
    before_.push_back(write(context_.own_folder()));
  } catch (const Error& error) {
    emit problem(error.problem());
    return;
  }
  context_.reload();
  emit accepted_changed();
}

void Calibrator::accept() {
  if (!result_ || !result_->proposal) return;
  change([&](const auto& folder) { return plan::accept_proposal(folder, *result_->proposal); });
}

void Calibrator::remove() {
  change([](const auto& folder) { return plan::remove_user_calibration(folder); });
}

void Calibrator::undo() {
  if (!can_undo()) return;
  const std::optional<std::string> before = before_.back();
  try {
    plan::restore_calibration(context_.own_folder(), before);
  } catch (const Error& error) {
    emit problem(error.problem());
    return;
  }
  before_.pop_back();
  context_.reload();
  emit accepted_changed();
}

}  // namespace mw::ui

#include "moc_calibrator.cpp"
