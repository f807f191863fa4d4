// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/measured_switch.h"

#include <QPushButton>
#include <QSignalBlocker>

#include "ui/theme/text.h"

namespace mw::ui {

MeasuredSwitch::MeasuredSwitch(QWidget* planned, QWidget* parent)
    : QStackedWidget(parent), measured_(new MeasuredMesh), button_(new QPushButton(tr("Measured"))) {
  addWidget(planned);
  addWidget(measured_);
  button_->setCheckable(true);
  button_->hide();
  connect(button_, &QPushButton::clicked, this, &MeasuredSwitch::show_measured);
}

void MeasuredSwitch::show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot,
                                   MeasuredMesh::PlayheadMode mode) {
  offered_ = on_a_mesh(run);
  run_name_ = run ? qs(run->id.empty() ? run->name : run->id) : QString();
  if (offered_) measured_->show_snapshot(run, snapshot, mode);
  show_measured(is_measured_shown());
}

void MeasuredSwitch::show_measured(bool on) {
  on = on && offered_;
  setCurrentIndex(on ? 1 : 0);
  const QSignalBlocker quiet(button_);
  button_->setVisible(offered_);
  button_->setChecked(on);
  button_->setText(on ? tr("Show Plan") : tr("Show Measured: %1").arg(run_name_));
  button_->setToolTip(on ? tr("Show the planned mesh of the document")
                         : tr("Show the memory and traffic of %1 as measured at the playhead").arg(run_name_));
}

}  // namespace mw::ui
