// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/beside_box.h"

#include "core/base/files.h"
#include "ui/theme/text.h"

namespace mw::ui {

BesideBox::BesideBox(RunController& runs, QWidget* parent) : QComboBox(parent), runs_(runs) {
  setSizeAdjustPolicy(QComboBox::AdjustToContents);
  setMaximumWidth(220);
  setToolTip(tr("Another size run whose lines are drawn in the same charts"));
  connect(this, &QComboBox::currentIndexChanged, this, &BesideBox::read);
  connect(&reading_, &BackgroundWork::ended, this, [this] {
    if (reading_.problem()) emit problem(*reading_.problem());
    if (!reading_.result()) return;
    view_ = std::make_shared<const views::SizeView>(views::size_view((*reading_.result())->view));
    emit view_changed();
  });
  offer({});
}

void BesideBox::offer(const store::RunId& shown) {
  shown_ = shown;
  const QString before = currentData().toString();
  const QSignalBlocker quiet(this);
  clear();
  addItem(tr("none"));
  try {
    if (path_exists(runs_.runs_folder()))  // a store would create it
      for (const store::RunRow& row : store::Store(runs_.runs_folder()).list())
        if (kind_of(row) == RunKind::size && row.id != shown && row.steps_done > 0)
          addItem(tr("%1: %2").arg(qs(row.id), qs(row.name)), qs(row.id));
  } catch (const Error& error) {
    emit problem(error.problem());
  }
  setCurrentIndex(std::max(0, before.isEmpty() ? 0 : findData(before)));
  read();
}

void BesideBox::choose(const store::RunId& run) {
  setCurrentIndex(std::max(0, findData(qs(run))));
}

void BesideBox::read() {
  const store::RunId chosen = ss(currentData().toString());
  if (chosen == read_) return;
  read_ = chosen;
  view_.reset();
  reading_.abandon();
  if (!chosen.empty())
    reading_.start([folder = runs_.runs_folder(), chosen](const ReportProgress&, const std::stop_token& stop) {
      return load_run(folder, chosen, stop);
    });
  emit view_changed();
}

void BesideBox::showPopup() {
  offer(shown_);
  QComboBox::showPopup();
}

}  // namespace mw::ui

#include "moc_beside_box.cpp"
