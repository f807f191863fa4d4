// SPDX-License-Identifier: GPL-3.0-or-later
// Sweeps, sizes and comparisons: what their pages ask the window for, and which page shows which run.
#include <QAction>
#include <QToolButton>

#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

void MainWindow::wire_serving() {
  const auto triggers = [this](const QString& action) { return [this, action] { actions_[action]->trigger(); }; };
  const auto to_runs = [this] { show_page(Page::runs); };
  SizePage& sizes = serve_->sizes();
  connect(&sizes, &SizePage::measure_wanted, this, triggers(u"run.size"_s));
  connect(&sizes, &SizePage::stop_wanted, this, triggers(u"run.stop"_s));
  connect(&sizes, &SizePage::runs_wanted, this, to_runs);
  connect(&sizes, &SizePage::settings_wanted, this, [this] { go_to_setting("size.batches"); });
  SweepPage& sweep = serve_->sweep();
  connect(&sweep, &SweepPage::run_wanted, this, triggers(u"run.sweep"_s));
  connect(&sweep, &SweepPage::stop_wanted, this, triggers(u"run.stop"_s));
  connect(&sweep, &SweepPage::runs_wanted, this, to_runs);
  connect(&sweep, &SweepPage::settings_wanted, this, [this] { go_to_setting("sweep.arrival"); });
  connect(&sweep, &SweepPage::resume_wanted, this, [this](const QString& run) { resume_run(ss(run)); });
  connect(&sweep, &SweepPage::compare_wanted, this, [this](const QString& run) { compare({ss(run)}); });
  connect(&sweep, &SweepPage::replay_wanted, this, triggers(u"runs.replay"_s));
  connect(serve_, &QTabWidget::currentChanged, this, [this] {
    if (page() == Page::serve) show_page(Page::serve);  // command, strip and log follow
  });
  // Another document opens the tab that it is about; edits of the same one do not.
  connect(&document_, &Document::file_changed, this, [this, last = std::pair<QString, RunKind>()]() mutable {
    const std::pair now(document_.title(), kind_of(document_.experiment()));
    if (now != last && now.second != RunKind::train) serve_->show_kind(now.second);
    last = now;
  });
  connect(compare_, &ComparePage::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
  connect(compare_, &ComparePage::runs_wanted, this, to_runs);
  connect(compare_, &ComparePage::replayed, this, [this] { show_page(Page::compare); });
  connect(compare_, &ComparePage::open_wanted, this, [this](const QString& run) { open_run(ss(run)); });
  connect(runs_page_, &RunsPage::compare_wanted, this, triggers(u"runs.compare"_s));
  connect(runs_page_, &RunsPage::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
}

void MainWindow::go_to_setting(const std::string& key) {
  raise_panel(u"experiment"_s);
  panel_->show_form();
  panel_->form().focus_key(key);
}

RunKind MainWindow::kind_of_run(const store::RunId& run) const {
  const int row = runs_page_->model().row_of(run);
  return row >= 0 ? ui::kind_of(runs_page_->model().row(row)) : RunKind::train;
}

void MainWindow::show_kind(RunKind kind) {
  if (kind != RunKind::train) serve_->show_kind(kind);
  show_page(page_of(kind));
}

void MainWindow::open_run(const store::RunId& run) {
  runs_.open(run);
  show_kind(kind_of_run(run));
}

void MainWindow::resume_run(const store::RunId& run) {
  problems_.clear(ProblemSource::run);
  runs_page_->refresh();
  if (launch::was_launched(setup_.runs_folder, run))
    runs_.reattach(run, setup_.resources);
  else
    runs_.continue_run(run);
  show_kind(kind_of_run(run));
}

void MainWindow::compare(const std::vector<store::RunId>& runs) {
  for (const auto& run : runs) compare_->add_run(run);
  show_page(Page::compare);
}

// The Compare page, or its button from any other.
bool MainWindow::takes_runs(QPoint at) const {
  const QToolButton* button = page_buttons_[static_cast<size_t>(Page::compare)];
  return page() == Page::compare || button->rect().contains(button->mapFrom(this, at));
}

void MainWindow::replay_chosen() {
  const SweepPage& sweep = serve_->sweep();
  if (page() == Page::compare && !compare_->runs().empty())
    return compare_->replay(compare_->runs().front(), std::nullopt);
  if (sweep.run() && sweep.view()) return compare_->replay(sweep.compared(), sweep.chosen_point());
  show_page(Page::compare);  // which says what to do
}

void MainWindow::compare_chosen() {
  if (page() == Page::serve && serve_->kind() == RunKind::sweep && serve_->sweep().run())
    return compare({serve_->sweep().run()->id});
  compare(page() == Page::runs ? runs_page_->selected() : std::vector<store::RunId>{});
}

}  // namespace mw::ui
