// SPDX-License-Identifier: GPL-3.0-or-later
// Fits the planner to the user's measurements on a worker thread, and stores or reverts accepted calibrations. Writes
// only in accept(), remove() and undo(). GUI thread.
#pragma once
#include "core/audit/calibrating.h"
#include <QObject>
#include <memory>
#include "ui/session/background_task.h"
#include "ui/session/shared_plan_context.h"

namespace mw::ui {

class Calibrator : public QObject {
  Q_OBJECT
 public:
  explicit Calibrator(SharedPlanContext& context, QObject* parent = nullptr);
  void calibrate(audit::CalibrationRequest request);  // a newer request replaces an older one
  void cancel();                                      // also discards the result

  bool is_busy() const { return task_.is_busy(); }
  int percent() const { return task_.percent(); }
  const std::shared_ptr<const audit::CalibrationResult>& result() const { return result_; }  // null: none

  bool can_accept() const { return !context_.own_folder().empty(); }
  bool has_user_calibration() const;
  // "calibrated by you, 2026-11-21, steps.json", or the error if it cannot be read.
  QString current_calibration() const;
  void accept();  // stores the proposal
  void remove();  // restores the shipped calibration
  bool can_undo() const { return !before_.empty(); }
  void undo();  // reverts the last accept() or remove()

 signals:
  void changed();           // result or progress
  void accepted_changed();  // another calibration is used
  void problem(const mw::Problem& problem);

 private:
  template <class Write>
  void change(Write write);

  SharedPlanContext& context_;
  std::shared_ptr<const audit::CalibrationResult> result_;
  std::vector<std::optional<std::string>> before_;  // the user's file before each change of this session
  BackgroundTask<audit::CalibrationResult> task_{"CALIBRATION"};
};

}  // namespace mw::ui
