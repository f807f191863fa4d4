// SPDX-License-Identifier: GPL-3.0-or-later
// Recipes and launches: the experiment as a folder, as a job elsewhere, and what comes back from there.
#include <QAction>
#include <QToolButton>

#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

void MainWindow::build_elsewhere() {
  launch_ = new LaunchDialog(runs_, setup_.resources, this);
  export_ = new ExportDialog(setup_.resources / "recipes", runs_.catalogue(), this);
  merge_ = new MergeDialog(this);
  launch_->remember(session_.value(u"launch"_s).toMap());
  export_->set_recipe(session_.value(u"export/recipe"_s).toString());
}

void MainWindow::wire_elsewhere() {
  const auto triggers = [this](const QString& action) { return [this, action] { actions_[action]->trigger(); }; };
  connect(train_, &TrainPage::export_wanted, this, triggers(u"file.export"_s));
  connect(train_, &TrainPage::launch_wanted, this, triggers(u"run.launch"_s));
  connect(train_, &TrainPage::detach_wanted, this, triggers(u"run.detach"_s));
  connect(train_, &TrainPage::merge_wanted, this, triggers(u"run.merge"_s));
  connect(train_, &TrainPage::reattach_wanted, this, [this] {
    if (train_->run()) resume_run(train_->run()->id);
  });
  connect(&runs_, &RunController::launched, this, [this] {
    problems_.clear(ProblemSource::run);
    show_kind(runs_.live()->kind());
  });
}

NamedExperiment MainWindow::form_experiment() const {
  const auto& file = document_.file();
  return {tr("Form: %1").arg(document_.title()),
          document_.experiment(),
          file.empty() ? tr("EXPERIMENT.json") : qpath(file),
          {}};
}

NamedExperiment MainWindow::run_experiment(const RunData& run) {
  QStringList names;
  for (const std::string& name : {run.id, run.name})
    if (!name.empty() && !names.contains(qs(name))) names << qs(name);
  return {tr("Run: %1").arg(names.join(u"  \u00B7  "_s)), run.record, tr("EXPERIMENT.json"), run.id};
}

// The form's experiment, and that of the run that is shown or was shown last.
std::vector<NamedExperiment> MainWindow::offered_experiments() const {
  std::vector<NamedExperiment> offered{form_experiment()};
  const RunPtr run = page() == Page::train   ? train_->run()
                     : page() == Page::serve ? runs_.shown(serve_->kind())
                                             : runs_.shown();
  if (run) offered.push_back(run_experiment(*run));
  return offered;
}

int MainWindow::offered_first() const {
  const bool shows_run =
      (page() == Page::train && train_->run()) || (page() == Page::serve && runs_.shown(serve_->kind()));
  return shows_run ? 1 : 0;
}

void MainWindow::launch_elsewhere() {
  launch_->open_with(offered_experiments(), offered_first());
}

// What the run that is shown brought back; or folders of the user's choice.
void MainWindow::merge_shown() {
  std::optional<launch::MergeOffer> offer;
  if (const RunPtr& run = train_->run(); run && !run->id.empty()) try {
      offer = launch::merge_offer(store::Store(setup_.runs_folder), run->id);
    } catch (const Error& error) {
      report(ProblemSource::store, error.problem());
    }
  const launch::MergeOffer folders =
      offer.value_or(launch::MergeOffer{document_.experiment().path("model.path"), {}, {}});
  merge_->open_with(folders.base, folders.adapter, folders.out);
}

}  // namespace mw::ui
