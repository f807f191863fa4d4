// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/train_dialogs.h"

#include "core/experiment/bound_experiment.h"
#include "core/launch/launch.h"
#include "ui/session/action_registry.h"
#include "ui/session/session.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

TrainDialogs::TrainDialogs(Workspace& workspace, QWidget& window)
    : QObject(&window),
      launch(*new LaunchDialog(workspace.runs(), workspace.resources(), &window)),
      attach(*new AttachDialog(workspace.runs(), &window)),
      exporter(*new ExportDialog(workspace.resources() / "recipes", workspace.runs().context(), &window)),
      merge(*new MergeDialog(&window)),
      tune(*new TuneDialog(workspace.runs().runs_folder(), workspace.runs().context(), &window)),
      workspace_(workspace),
      runs_(workspace.runs()) {
  register_actions();
  for (BackgroundWork* work : {&merge.task(), &tune.task()})
    connect(work, &BackgroundWork::ended, this, [this] { workspace_.work_ended(); });
  connect(&runs_, &RunController::launch_failed, this, [this] { workspace_.work_ended(); });
  connect(&runs_, &RunController::launched_beside, this, [this, &window](const QString& run) {
    show_toast(
        window,
        tr("%1 was launched and runs on its own; open it from the Runs page and press Reattach to follow it").arg(run));
    workspace_.work_ended();
  });
}

void TrainDialogs::register_actions() {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"file.export"_s, tr("Export as a Recipe\u2026"),
               tr("Export the experiment as a folder that runs it with Tunix, TorchAX, TRL or vLLM")},
              [this] { open_with_experiments(exporter); });
  actions.add({u"run.launch"_s, tr("Launch Elsewhere\u2026"),
               tr("Start the recipe of the experiment on another machine and follow the run here")},
              [this] { open_with_experiments(launch); });
  actions.add({u"run.attach"_s, tr("Attach to a Running Program\u2026"),
               tr("Record and show a run that another program is making: event lines, a URL or a log folder")},
              [this] { attach.open(); });
  actions.add({u"run.detach"_s, tr("Detach from the Launched Job"),
               tr("Stop following the job; it continues to run and can be followed again")},
              [this] { runs_.detach(); });
  actions.add({u"run.merge"_s, tr("Merge an Adapter\u2026"),
               tr("Merge an adapter, by default that of the displayed run, into its base model")},
              [this] { merge_shown(); });
  actions.add({u"run.tune"_s, tr("Tune\u2026"),
               tr("Train the experiment of the form with several values of some keys, one run after another")},
              [this] { tune.open_with(workspace_.document().experiment()); });
}

// Offers the experiment of the form and that of the displayed run, which is preselected if the current page shows runs;
// other pages offer the run that was displayed last.
template <class Dialog>
void TrainDialogs::open_with_experiments(Dialog& dialog) {
  const bool shows_runs = workspace_.current_page().run_kind().has_value();
  const RunPtr run = shows_runs ? workspace_.current_page().shown_run() : runs_.shown();
  std::vector<NamedExperiment> offered{form_experiment(workspace_.document())};
  if (run) offered.push_back(run_experiment(*run));
  dialog.open_with(std::move(offered), shows_runs && run ? 1 : 0);
}

// Proposes the folders of the displayed run, otherwise the base model of the document.
void TrainDialogs::merge_shown() {
  const RunPtr shown = runs_.shown(RunKind::train);
  const store::RunId run = shown ? shown->id : store::RunId();
  const auto open = [this](const std::optional<launch::MergeOffer>& offer) {
    const launch::MergeOffer folders =
        offer.value_or(launch::MergeOffer{workspace_.document().experiment().valid_values().model.path, {}, {}, {}});
    merge.open_with(folders.base, folders.adapter, folders.out, folders.last);
  };
  if (run.empty()) return open({});
  runs_.store().read(
      *this, [run](const store::Store& store) { return launch::merge_offer(store, run); }, open,
      [this, open](const Problem& problem) {
        workspace_.report(ProblemSource::store, problem);
        open({});
      });
}

QStringList TrainDialogs::unfinished_work() const {
  QStringList work;
  if (merge.task().is_busy()) work << tr("the merge");
  if (tune.task().is_busy()) work << tr("the tuning");
  if (runs_.is_launching_beside()) work << tr("the launch");
  return work;
}

void TrainDialogs::stop_work() {
  merge.task().cancel();
  tune.task().cancel();
  if (runs_.is_launching_beside()) runs_.cancel_launch();
}

void TrainDialogs::save_state(Session& session) const {
  session.set_value(u"launch"_s, launch.remembered());
  session.set_value(u"export/recipe"_s, exporter.recipe().name());
}

void TrainDialogs::restore_state(const Session& session) {
  launch.remember(session.value(u"launch"_s).toMap());
  exporter.set_recipe(session.value(u"export/recipe"_s).toString());
}

}  // namespace mw::ui

#include "moc_train_dialogs.cpp"
