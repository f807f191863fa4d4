// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/run_actions.h"

#include "ui/theme/text.h"

namespace mw::ui {

RunActions::RunActions(Workspace& workspace) : workspace_(workspace), runs_(workspace.runs()) {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"run.start"_s, tr("Run"), tr("Train this experiment on this machine"), Qt::Key_F5, Glyph::run},
              [this] { start(next_kind()); });
  actions.add({u"run.pause"_s, tr("Pause"), tr("Pause the run after the current step or point, or continue it"),
               Qt::Key_F6, Glyph::pause},
              [this] { pause_or_continue(); });
  actions.add({u"run.stop"_s, tr("Stop"),
               tr("Stop the run after the current step; its results are kept and training can be resumed"),
               Qt::SHIFT | Qt::Key_F5, Glyph::stop},
              [this] { runs_.stop(); });
  actions.add({u"view.live"_s, tr("Show the Live Run"), tr("Show the active run"), Qt::CTRL | Qt::Key_L}, [this] {
    runs_.show_live();
    const RunPtr run = runs_.shown();
    workspace_.show_kind(run ? run->kind() : RunKind::train);
  });
  connect(&runs_, &RunController::problem, this,
          [this](const Problem& p) { workspace_.report(ProblemSource::run, p); });
  connect(&runs_, &RunController::launched, this, [this] {
    workspace_.clear_problems(ProblemSource::run);
    workspace_.show_kind(runs_.live()->kind());
  });
}

RunKind RunActions::next_kind() const {
  if (const auto kind = workspace_.current_page().run_kind(); kind && workspace_.page() == Page::serve) return *kind;
  return kind_of(workspace_.document().experiment());
}

void RunActions::start(RunKind kind) {
  if (runs_.is_busy()) return;
  workspace_.clear_problems(ProblemSource::run);
  if (workspace_.document().has_invalid_text())
    workspace_.report(ProblemSource::run, {.id = "JSON",
                                           .severity = Severity::warning,
                                           .message = "the run uses the last valid document, not the broken JSON text",
                                           .fix = "correct the text and run again"});
  experiment::Experiment experiment = workspace_.document().experiment();
  if (kind == RunKind::size) experiment.set_value("kind", "size");
  if (kind == RunKind::sweep) experiment.set_value("kind", "serve");
  runs_.start(experiment);
  workspace_.show_kind(kind);
}

void RunActions::resume(const store::RunId& run) {
  workspace_.clear_problems(ProblemSource::run);
  if (launch::was_launched(runs_.runs_folder(), run))
    runs_.reattach(run, workspace_.resources());
  else
    runs_.continue_run(run);
}

void RunActions::pause_or_continue() {
  const RunPtr live = runs_.live();
  if (!live) return;
  if (live->view.state() == RunState::paused)
    runs_.resume();
  else
    runs_.pause();
}

void RunActions::update() {
  ActionRegistry& actions = workspace_.actions();
  const RunPtr live = runs_.live();
  QAction* run = actions[u"run.start"_s];
  run->setEnabled(!live);
  const RunKind kind = next_kind();
  const QString help = kind == RunKind::size    ? tr("Measure time and memory of the model by batch size")
                       : kind == RunKind::sweep ? tr("Run the latency sweep of this experiment")
                                                : tr("Train this experiment on this machine");
  run->setToolTip(tr("%1 (%2)").arg(help, run->shortcut().toString(QKeySequence::NativeText)));
  const bool paused = live && live->view.state() == RunState::paused;
  QAction* pause = actions[u"run.pause"_s];
  pause->setEnabled(live && !runs_.is_stopping() && !runs_.is_remote());
  pause->setText(paused ? tr("Continue") : tr("Pause"));
  pause->setIcon(icon(paused ? Glyph::run : Glyph::pause));
  actions[u"run.stop"_s]->setEnabled(live && !runs_.is_stopping());
}

}  // namespace mw::ui
