// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/run_actions.h"

#include "core/launch/launch.h"
#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

QString target_text(const experiment::Experiment& experiment) {
  const Json* target = experiment.find("target.id");
  return target && target->is_string() ? qs(target->get<std::string>()) : u"cpu"_s;
}

}  // namespace

RunActions::RunActions(Workspace& workspace) : workspace_(workspace), runs_(workspace.runs()) {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"run.start"_s, tr("Run"), tr("Train this experiment on this machine"), Qt::Key_F5, Glyph::run},
              [this] { start(next_kind()); });
  actions.add({u"run.pause"_s, tr("Pause"), tr("Pause the run after the current step or point, or resume it"),
               Qt::Key_F6, Glyph::pause},
              [this] { pause_or_resume(); });
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

// Training on another target starts with the launch dialog; sizes are predicted, and sweeps are simulated.
bool RunActions::is_launched(RunKind kind) const {
  return kind == RunKind::train && relevance().planned;
}

experiment::Relevance RunActions::relevance() const {
  return experiment::relevance(workspace_.document().experiment(), experiment_kind(next_kind()));
}

void RunActions::start(RunKind kind) {
  if (is_launched(kind)) return workspace_.trigger(u"run.launch"_s);
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

void RunActions::pause_or_resume() {
  const RunPtr live = runs_.live();
  if (!live) return;
  if (live->view.state() == RunState::paused)
    runs_.resume();
  else
    runs_.pause();
}

// The page has enabled the action unless work is in progress. A proof computes the mesh on this machine.
void RunActions::update_proof(const QString& target) {
  QAction* prove = workspace_.actions()[u"run.prove"_s];
  const bool elsewhere = relevance().planned && !workspace_.current_page().provable_run();
  const QString reason = elsewhere ? tr("Proof needs target cpu; the target is %1").arg(target)
                         : prove->isEnabled()
                             ? QString()
                             : tr("Proof needs this machine for itself; wait until the work has ended");
  if (elsewhere) prove->setEnabled(false);
  prove->setToolTip(reason.isEmpty()
                        ? tr("%1 (%2)").arg(prove->whatsThis(), prove->shortcut().toString(QKeySequence::NativeText))
                        : reason);
}

void RunActions::update() {
  ActionRegistry& actions = workspace_.actions();
  const RunPtr live = runs_.live();
  QAction* run = actions[u"run.start"_s];
  const RunKind kind = next_kind();
  run->setEnabled(!live || is_launched(kind));
  const QString target = target_text(workspace_.document().experiment());
  const bool predicts = kind == RunKind::size && relevance().planned;
  const QString help = predicts                 ? tr("Predict time and memory by batch size for %1").arg(target)
                       : kind == RunKind::size  ? tr("Measure time and memory of the model by batch size")
                       : kind == RunKind::sweep ? tr("Run the latency sweep of this experiment")
                       : is_launched(kind)      ? tr("Start this experiment on %1 and follow it here").arg(target)
                                                : tr("Train this experiment on this machine");
  run->setText(is_launched(kind) ? tr("Launch\u2026") : tr("Run"));
  run->setToolTip(tr("%1 (%2)").arg(help, run->shortcut().toString(QKeySequence::NativeText)));
  update_proof(target);
  const bool paused = live && live->view.state() == RunState::paused;
  QAction* pause = actions[u"run.pause"_s];
  pause->setEnabled(live && !runs_.is_stopping() && !runs_.is_remote() && !runs_.is_attached());
  pause->setText(paused ? tr("Resume") : tr("Pause"));
  pause->setIcon(icon(paused ? Glyph::run : Glyph::pause));
  actions[u"run.stop"_s]->setEnabled(live && !runs_.is_stopping());
}

}  // namespace mw::ui

#include "moc_run_actions.cpp"
