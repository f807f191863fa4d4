// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/run_preview_panel.h"

#include <QDesktopServices>

namespace mw::ui {
namespace {

using store::SettingChange;
using views::Artefact;

QString value_or_none(const std::string& value) {
  return value.empty() ? RunPreviewPanel::tr("none") : qs(value);
}

QTableView* preview_table(QAbstractItemModel& model, const QString& name, QWidget* parent) {
  QTableView* table = make_table(model, name, parent);
  table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  copy_on_ctrl_c(*table);
  return table;
}

}  // namespace

RunPreviewPanel::RunPreviewPanel(QWidget* parent)
    : QSplitter(Qt::Horizontal, parent),
      loss_(new Chart({.title = tr("Loss"), .unit = tr("nats/token"), .empty = tr("Select a run to see its loss")},
                      by_step_, this)),
      changes_({{.title = tr("Setting"), .text = [](const SettingChange& c) { return qs(c.label); }},
                {.title = tr("Previous run"), .text = [](const SettingChange& c) { return value_or_none(c.before); }},
                {.title = tr("This run"), .text = [](const SettingChange& c) { return value_or_none(c.after); }}}),
      artefacts_({{.title = tr("Artefact"), .text = [](const Artefact& a) { return qs(a.name); }},
                  TableModel<Artefact>::number(tr("Size"), [](const Artefact& a) { return shown(a.size); })}),
      changes_view_(preview_table(changes_, tr("Differences from the previous run"), this)),
      artefacts_view_(preview_table(artefacts_, tr("Artefacts of the run"), this)),
      no_changes_(show_when_empty(*changes_view_, {})),
      no_artefacts_(show_when_empty(*artefacts_view_, tr("No files"))) {
  by_step_.set_x(tr("step"), AxisQuantity::count);
  setChildrenCollapsible(false);
  loss_->setMinimumHeight(130);  // with axis titles
  set_shares(*this, {380, 420, 300}, {4, 4, 3});
  artefacts_view_->setToolTip(tr("Double-click to open"));
  connect(artefacts_view_, &QTableView::activated, this, [this](const QModelIndex& at) {
    QDesktopServices::openUrl(QUrl::fromLocalFile(qpath(artefacts_.row(at.row()).path)));
  });
}

void RunPreviewPanel::show_run(const views::ListedRun& run, const views::RunPreview& preview) {
  std::vector<ChartLine> lines;
  double last = 1;
  const auto add = [&](const views::Series& series, const QString& name, int color, Marks marks) {
    if (series.empty()) return;
    last = std::max(last, series.back().x);
    lines.push_back(
        {.name = name, .color = theme().series(color), .raw = std::make_shared<views::Series>(series), .marks = marks});
  };
  add(preview.train_loss, tr("train"), 0, Marks::none);
  add(preview.eval_loss, tr("eval"), 1, Marks::points);
  loss_->set_empty_text(run.id.empty() ? tr("Select a run to see its loss") : tr("This run records no loss"));
  loss_->set_lines(std::move(lines));
  by_step_.set_data({0, last});
  changes_.set_rows(preview.changes);
  artefacts_.set_rows(preview.artefacts);
  no_changes_->setText(run.id.empty()         ? QString()
                       : run.previous.empty() ? tr("The first run of its kind")
                                              : tr("The same settings as %1").arg(qs(run.previous)));
}

}  // namespace mw::ui

#include "moc_run_preview_panel.cpp"
