// SPDX-License-Identifier: GPL-3.0-or-later
// Fits the planner to the user's measurements on a thread of its own, and keeps or takes back what was accepted.
// Nothing is written but by accept(), remove() and undo(). GUI thread.
#pragma once
#include <QObject>
#include <memory>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/planning/calibrating.h"
#include "ui/session/pricer.h"

namespace mw::ui {

class Calibrator : public QObject {
  Q_OBJECT
 public:
  explicit Calibrator(Pricer::Folders folders, QObject* parent = nullptr);
  void ask(runs::CalibrationQuestion question);  // the newest question replaces an older one
  void cancel();                                 // and forgets the answer
  void drain();

  bool busy() const { return busy_; }
  int percent() const { return percent_; }
  const std::shared_ptr<const runs::Calibrated>& answer() const { return answer_; }  // null: none, or none yet

  bool can_keep() const { return !folders_.own_hardware.empty(); }
  bool has_own() const;
  // "calibrated by you, 2026-11-21, steps.json"; why not, where it cannot be read.
  std::string in_force() const;
  void accept();  // what is proposed
  void remove();  // back to the shipped one
  bool can_undo() const { return !before_.empty(); }
  void undo();  // the last accept() or remove()

 signals:
  void changed();           // answer, progress
  void accepted_changed();  // another calibration is in force: prices are to be asked again
  void problem(const mw::Problem& problem);

 private:
  struct Question {
    std::uint64_t number = 0;
    runs::CalibrationQuestion what;
  };
  struct Answer {
    std::uint64_t question = 0;
    int percent = 0;
    std::shared_ptr<const runs::Calibrated> found{};
  };
  void work(const Question& question, const std::stop_token& stop);
  template <class Write>
  void keep(Write write);

  Pricer::Folders folders_;
  std::shared_ptr<const runs::Calibrated> answer_;
  std::vector<std::optional<std::string>> before_;  // the user's file before each change of this session
  bool busy_ = false;
  int percent_ = 0;
  std::uint64_t asked_ = 0;
  Mailbox<Answer> answers_;
  Newest<Question> worker_;  // last: its thread ends first
};

}  // namespace mw::ui
