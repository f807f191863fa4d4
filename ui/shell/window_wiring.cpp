// SPDX-License-Identifier: GPL-3.0-or-later
// Who in the window hears whom.
#include <QAction>
#include <QDateTime>
#include <QDockWidget>
#include <algorithm>

#include "ui/form/text_fields.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {
constexpr int kJournalMs = 1000, kRunsRefreshMs = 1500;
}

void MainWindow::wire() {
  connect(&clock_, &FrameClock::drain, this, [this] {
    runs_.drain();
    pricer_.drain();
    design_->drain();
    data_->drain();
    compare_->drain();
  });
  connect(&clock_, &FrameClock::show, this, [this] {
    if (!isVisible()) return;
    train_->follow();
    design_->show_frame();
    data_->show_frame();
    train_->show_frame();
    serve_->show_frame();
    jobs_->show_frame();
    if (proof_window_->isVisible()) proof_window_->show_frame();
    strip_->show_frame();
    const qint64 now = QDateTime::currentMSecsSinceEpoch();
    if (runs_page_->isVisible() && now - runs_refreshed_ > kRunsRefreshMs) {
      runs_refreshed_ = now;
      runs_page_->refresh();
    }
  });
  connect(&document_, &Document::changed, this, [this] {
    problems_.set(ProblemSource::document, document_.problems());
    pricer_.ask(document_);
    edits_given_up_ = false;
    journal_.start();
    update_actions();
  });
  connect(&document_, &Document::file_changed, this, [this] {
    update_title();
    journal_.start();
  });
  journal_.setSingleShot(true);
  journal_.setInterval(kJournalMs);
  connect(&journal_, &QTimer::timeout, this, [this] {
    try {
      session_.write_journal(document_);
    } catch (const Error& error) {
      report(ProblemSource::file, error.problem());
    }
  });
  connect(&pricer_, &Pricer::changed, this, [this] {
    if (pricer_.has_no_prediction() || !pricer_.stale()) price_tokens();
    if (pricer_.stale()) return;
    if (FormRow* mesh = panel_->form().row("mesh"))
      mesh->field()->set_default_text(pricer_.design() && !pricer_.design_outdated() && !mesh->is_set()
                                          ? mesh_text(pricer_.design()->request().mesh)
                                          : QString());
    // What the document itself says, or the checker with a fix, is not said twice.
    std::vector<Problem> more;
    for (const Problem& p : pricer_.problems())
      if (std::none_of(document_.problems().begin(), document_.problems().end(),
                       [&](const Problem& d) { return d.id == p.id && d.place == p.place; }) &&
          std::none_of(pricer_.diagnostics().begin(), pricer_.diagnostics().end(),
                       [&](const planning::Diagnostic& d) { return d.problem.id == p.id; }))
        more.push_back(p);
    problems_.set(ProblemSource::prediction, more);
    problems_.set_diagnostics(ProblemSource::checker, pricer_.diagnostics());
  });
  connect(&problems_, &ProblemsModel::counted, this, [this] {
    const int errors = problems_.count(Severity::error), warnings = problems_.count(Severity::warning);
    problems_dock_->setWindowTitle(errors + warnings > 0 ? tr("Problems (%1)").arg(errors + warnings) : tr("Problems"));
    bottom_->mark(problems_dock_, errors > 0     ? icon(Glyph::error, Ink::bad)
                                  : warnings > 0 ? icon(Glyph::warning, Ink::warn)
                                                 : QIcon());
    if (errors + warnings > 0) bottom_->offer();
    // The document's own errors are in the way of a prediction, or those of the planner; the checker finds others, too.
    int in_the_way = problems_.count(Severity::error, {ProblemSource::document});
    if (in_the_way == 0)
      in_the_way = problems_.count(Severity::error, {ProblemSource::prediction, ProblemSource::checker});
    strip_->set_errors(in_the_way);
    design_->error_link().set_errors(in_the_way);
  });
  connect(problems_panel_, &ProblemsPanel::chosen, this, [this](const Problem& problem) { panel_->go_to(problem); });
  connect(problems_panel_, &ProblemsPanel::fix_wanted, this, &MainWindow::fix);
  connect(&runs_, &RunController::problem, this, [this](const Problem& p) { report(ProblemSource::run, p); });
  connect(&runs_, &RunController::shown_changed, this, [this] { log_->show_run(runs_.shown()); });
  connect(&runs_, &RunController::shown_grew, log_, &LogPanel::grow);
  connect(&runs_, &RunController::state_changed, this, [this] {
    update_actions();
    runs_refreshed_ = 0;
  });
  connect(jobs_, &JobsPanel::pause_wanted, this, [this] { actions_[u"run.pause"_s]->trigger(); });
  connect(jobs_, &JobsPanel::stop_wanted, this, [this] { actions_[u"run.stop"_s]->trigger(); });
  connect(jobs_, &JobsPanel::look_wanted, this, [this] { actions_[u"view.live"_s]->trigger(); });
  wire_serving();
  wire_elsewhere();
  wire_closing();
  for (ErrorLink* link : {&strip_->error_link(), &design_->error_link()})
    connect(link, &ErrorLink::clicked, this, &MainWindow::show_errors);
  connect(design_, &DesignPage::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
  connect(design_, &DesignPage::pin_changed, this, &MainWindow::update_actions);
  connect(design_, &DesignPage::calibrate_wanted, this, [this] { actions_[u"plan.calibrate"_s]->trigger(); });
  connect(&calibrator_, &Calibrator::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
  connect(&calibrator_, &Calibrator::accepted_changed, this, [this] {
    problems_.clear(ProblemSource::file);
    actions_[u"plan.undo_calibration"_s]->setEnabled(calibrator_.can_undo());
    pricer_.hardware_changed();
    pricer_.ask(document_);
    design_->alternatives().clear();
  });
  connect(data_, &DataPage::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
  connect(data_, &DataPage::setting_wanted, this, [this](const QString& key) { go_to_setting(ss(key)); });
  connect(train_, &TrainPage::moment_changed, this,
          [this] { design_->measured().show_snapshot(train_->run(), train_->snapshot(), train_->held()); });
  connect(&proof_window_->task(), &BackgroundWork::changed, this, &MainWindow::update_actions);
  connect(proof_window_, &ProofWindow::again_wanted, this, &MainWindow::prove_again);
  connect(proof_window_, &ProofWindow::tensor_chosen, design_, &DesignPage::select_tensor);
  connect(proof_window_, &ProofWindow::problem, this, [this](const Problem& p) { report(ProblemSource::file, p); });
  connect(design_, &DesignPage::prove_wanted, this, [this] { actions_[u"run.prove"_s]->trigger(); });
  connect(train_, &TrainPage::prove_wanted, this, [this] { actions_[u"run.prove"_s]->trigger(); });
  connect(train_, &TrainPage::run_wanted, this, [this] { actions_[u"run.start"_s]->trigger(); });
  connect(train_, &TrainPage::runs_wanted, this, [this] { show_page(Page::runs); });
  connect(runs_page_, &RunsPage::open_wanted, this, [this](const QString& run) { open_run(ss(run)); });
  connect(runs_page_, &RunsPage::clone_wanted, this, &MainWindow::clone);
  connect(runs_page_, &RunsPage::resume_wanted, this, [this](const QString& run) { resume_run(ss(run)); });
  connect(runs_page_, &RunsPage::put_away, this, [this](const QString& run) { runs_.close_shown(ss(run)); });
  connect(&runs_page_->model(), &RunsModel::problem, this,
          [this](const Problem& p) { report(ProblemSource::store, p); });
}

// What padding costs on the target: of a plan that trains elsewhere; nothing is known of this machine.
void MainWindow::price_tokens() {
  const views::DesignPtr& d = pricer_.design();
  const bool known = d && !pricer_.design_outdated() && !pricer_.prediction() && d->request().work == plan::Work::train;
  if (!known) return data_->set_price({}, views::PadTo::longest);
  const plan::RunTotals& run = d->plan().run;
  views::TokenPrice price{.per_padded_token = Seconds(1 / run.padded_tokens_per_second), .per_hour = {}};
  if (run.usd_per_hour > 0) price.per_hour = Usd(run.usd_per_hour);
  data_->set_price(
      price, d->request().lengths.rows == plan::RowLayout::padded ? views::PadTo::max_len : views::PadTo::longest);
}

}  // namespace mw::ui
