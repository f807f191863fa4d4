// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problem_collector.h"

#include <algorithm>

#include "core/jobs/out_of_memory.h"
#include "ui/form/experiment_panel.h"
#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

ProblemCollector::ProblemCollector(Workspace& workspace, ProblemsModel& problems, WindowDocks& docks,
                                   StatusStrip& strip, const PageStack& pages)
    : QObject(&docks), workspace_(workspace), problems_(problems), docks_(docks), strip_(strip), pages_(pages.all()) {
  // Typing passes through invalid values: the panel must not open and close with every key.
  withdraw_.setSingleShot(true);
  withdraw_.setInterval(1500);
  connect(&withdraw_, &QTimer::timeout, docks.bottom, &BottomDocks::withdraw);
  connect(&problems, &ProblemsModel::counted, this, &ProblemCollector::show_counts);
  connect(&workspace.predictor(), &Predictor::changed, this, [this] {
    if (!workspace_.predictor().is_stale()) show_predicted();
  });
  connect(&workspace.runs(), &RunController::state_changed, this, &ProblemCollector::offer_memory_fixes);
  connect(&docks.problems, &ProblemsPanel::chosen, this,
          [this](const Problem& problem) { docks_.panel.go_to(problem); });
  connect(&docks.problems, &ProblemsPanel::fix_wanted, this, [this](const lint::Fix& fix, const QString& id) {
    experiment::Experiment next = workspace_.document().experiment();
    lint::apply(next, fix);
    workspace_.document().replace(std::move(next), tr("fix of %1").arg(id));
    problems_.clear(ProblemSource::run);  // of the experiment before
  });
  connect(&strip.error_link(), &ErrorLink::clicked, this, &ProblemCollector::show_errors);
  for (WindowPage* page : pages_)
    if (ErrorLink* link = page->prediction_errors())
      connect(link, &ErrorLink::clicked, this, &ProblemCollector::show_errors);
}

// A run that ended for want of memory leaves its fixes in the list.
void ProblemCollector::offer_memory_fixes() {
  const RunPtr run = workspace_.runs().shown();
  if (workspace_.runs().is_busy() || !run || !run->view.finished() || run->id == offered_fixes_of_) return;
  if (auto failure = jobs::memory_diagnostic(*run->view.finished())) {
    offered_fixes_of_ = run->id;
    problems_.set_diagnostics(ProblemSource::run, {std::move(*failure)});
    docks_.raise(u"problems"_s);
  }
}

// Omits problems that the document reports, or the checker with a fix.
void ProblemCollector::show_predicted() {
  const Predictor& predictor = workspace_.predictor();
  const auto& reported = workspace_.document().problems();
  const auto& checked = predictor.diagnostics();
  std::vector<Problem> more;
  for (const Problem& p : predictor.problems())
    if (std::ranges::none_of(reported, [&](const Problem& d) { return d.id == p.id && d.place == p.place; }) &&
        std::ranges::none_of(checked, [&](const lint::Diagnostic& d) { return d.problem.id == p.id; }))
      more.push_back(p);
  problems_.set(ProblemSource::prediction, more);
  problems_.set_diagnostics(ProblemSource::checker, checked);
}

void ProblemCollector::show_counts() {
  const int errors = problems_.count(Severity::error), warnings = problems_.count(Severity::warning);
  docks_.show_problem_counts(errors, warnings);
  if (errors + warnings > 0) {
    withdraw_.stop();
    docks_.bottom->offer();
  } else {
    withdraw_.start();
  }
  // Errors of the document prevent a prediction; without any, errors of planner or checker do.
  int preventing = problems_.count(Severity::error, {ProblemSource::document});
  if (preventing == 0)
    preventing = problems_.count(Severity::error, {ProblemSource::prediction, ProblemSource::checker});
  strip_.set_errors(preventing);
  for (WindowPage* page : pages_)
    if (ErrorLink* link = page->prediction_errors()) link->set_errors(preventing);
}

// Errors come first in the list.
void ProblemCollector::show_errors() {
  docks_.raise(u"problems"_s);
  if (problems_.rowCount() > 0) docks_.problems.choose(0);
  docks_.problems.table().setFocus(Qt::OtherFocusReason);
}

}  // namespace mw::ui

#include "moc_problem_collector.cpp"
