// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/beside_box.h"

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
  if (!runs_.store().exists()) return show_runs({});
  runs_.store().read(
      *this, [](const store::Store& store) { return store.list(); },
      [this](const std::vector<store::RunRow>& runs) { show_runs(runs); },
      [this](const Problem& found) { emit problem(found); });
}

void BesideBox::show_runs(const std::vector<store::RunRow>& runs) {
  const QString before = currentData().toString();
  const QSignalBlocker quiet(this);
  clear();
  addItem(tr("none"));
  for (const store::RunRow& row : runs)
    if (kind_of(row) == RunKind::size && row.id != shown_ && row.steps_done > 0)
      addItem(tr("%1: %2").arg(qs(row.id), qs(row.name)), qs(row.id));
  setCurrentIndex(std::max(0, before.isEmpty() ? 0 : findData(before)));
  read();
  if (std::exchange(opens_, false)) QComboBox::showPopup();
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
  opens_ = true;  // with the runs that there are then
  offer(shown_);
}

}  // namespace mw::ui

#include "moc_beside_box.cpp"
