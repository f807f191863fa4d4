// SPDX-License-Identifier: GPL-3.0-or-later
// What the window can be told to do.
#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QLineEdit>
#include <QMenu>
#include <QToolBar>
#include <QToolButton>

#include "ui/manual/manual_window.h"
#include "ui/plot/plot.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

namespace {

QString manual_chapter_of(Page page) {
  switch (page) {
    case Page::design:
      return u"02-designing-a-mesh.md"_s;
    case Page::data:
    case Page::train:
      return u"03-training.md"_s;
    case Page::serve:
      return u"04-serving-and-sweeps.md"_s;
    case Page::compare:
    case Page::runs:
      return u"05-comparing-and-auditing.md"_s;
  }
  return {};
}

}  // namespace

void MainWindow::build_actions() {
  const auto key = [](auto k) { return QKeySequence(k); };
  actions_.add({u"file.new"_s, tr("New Experiment"), tr("Start from an empty document with every default"),
                key(QKeySequence::New)},
               [this] { new_document(); });
  actions_.add({u"file.open"_s, tr("Open…"), tr("Open an experiment file"), key(QKeySequence::Open), Glyph::open},
               [this] { choose_file(); });
  actions_.add({u"file.save"_s, tr("Save"), tr("Save the experiment"), key(QKeySequence::Save), Glyph::save},
               [this] { save(); });
  actions_.add({u"file.save_as"_s, tr("Save As…"), tr("Save the experiment in another file"),
                key(Qt::CTRL | Qt::SHIFT | Qt::Key_S)},
               [this] { save_as(); });
  actions_.add(
      {u"edit.undo"_s, tr("Undo"), tr("Undo the last change made on this page"), key(QKeySequence::Undo), Glyph::undo},
      [this] { undo_group_.undo(); });
  actions_.add({u"edit.redo"_s, tr("Redo"), tr("Make the undone change again"), key(Qt::CTRL | Qt::SHIFT | Qt::Key_Z),
                Glyph::redo},
               [this] { undo_group_.redo(); });
  actions_[u"edit.redo"_s]->setShortcuts({key(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), key(Qt::CTRL | Qt::Key_Y)});
  actions_.add(
      {u"problems.fix"_s, tr("Fix the Problem"),
       tr("Apply the first fix of the chosen problem, or of the first that has one"), key(Qt::CTRL | Qt::Key_Period)},
      [this] { problems_panel_->fix_first(); });
  actions_.add({u"run.start"_s, tr("Run"), tr("Train this experiment on this machine"), key(Qt::Key_F5), Glyph::run},
               [this] { run(); });
  actions_.add({u"run.size"_s, tr("Measure Batch Sizes"),
                tr("Measure time and memory of this experiment's model by batch size"), key(Qt::CTRL | Qt::Key_F5)},
               [this] { start(RunKind::size); });
  actions_.add({u"run.sweep"_s, tr("Run the Latency Sweep"),
                tr("Sweep request rates and prompt lengths of this experiment: latency, throughput, every request"),
                key(Qt::CTRL | Qt::SHIFT | Qt::Key_F5)},
               [this] { start(RunKind::sweep); });
  actions_.add(
      {u"run.prove"_s, tr("Prove the Mesh"),
       tr("Compute a step of this experiment on its mesh and on one device, and compare them tensor by tensor"),
       key(Qt::Key_F8)},
      [this] {
        prove(page() == Page::train && train_->offers_proof() ? run_experiment(*train_->run()) : form_experiment());
      });
  actions_.add({u"run.pause"_s, tr("Pause"), tr("Hold the run between two steps or points, or let it go on"),
                key(Qt::Key_F6), Glyph::pause},
               [this] { pause_or_continue(); });
  actions_.add(
      {u"run.stop"_s, tr("Stop"), tr("End the run after this step; what was done is kept, and training can be resumed"),
       key(Qt::SHIFT | Qt::Key_F5), Glyph::stop},
      [this] { runs_.stop(); });
  actions_.add({u"file.export"_s,
                tr("Export as a Recipe\u2026"),
                tr("Write the experiment as a folder that runs it on Tunix, TorchAX, TRL or vLLM"),
                {}},
               [this] { export_->open_with(offered_experiments(), offered_first()); });
  actions_.add({u"run.launch"_s,
                tr("Launch Elsewhere\u2026"),
                tr("Start the experiment's recipe on another machine, and follow it here"),
                {}},
               [this] { launch_elsewhere(); });
  actions_.add({u"run.detach"_s,
                tr("Detach from the Launched Job"),
                tr("Leave the job alone: it goes on there, and can be followed again"),
                {}},
               [this] { runs_.detach(); });
  actions_.add({u"run.merge"_s,
                tr("Merge an Adapter\u2026"),
                tr("Add an adapter, that of the run that is shown, into its base model"),
                {}},
               [this] { merge_shown(); });
  actions_.add({u"page.design"_s, tr("Show Design"), tr("Mesh, shards, memory, time and cost of the experiment"),
                key(Qt::CTRL | Qt::Key_1)},
               [this] { show_page(Page::design); });
  actions_.add({u"page.data"_s, tr("Show Data"), tr("Rows, their tokens and loss, lengths, padding and packing"),
                key(Qt::CTRL | Qt::Key_2)},
               [this] { show_page(Page::data); });
  actions_.add({u"page.train"_s, tr("Show Train"), tr("The run that is looked at"), key(Qt::CTRL | Qt::Key_3)},
               [this] { show_page(Page::train); });
  actions_.add({u"page.serve"_s, tr("Show Serve"), tr("Latency sweeps, and time and memory by batch size"),
                key(Qt::CTRL | Qt::Key_4)},
               [this] { show_page(Page::serve); });
  actions_.add({u"page.compare"_s, tr("Show Compare"), tr("Runs and results side by side, the first as baseline"),
                key(Qt::CTRL | Qt::Key_5)},
               [this] { show_page(Page::compare); });
  actions_.add({u"runs.compare"_s, tr("Compare the Runs"),
                tr("Put the runs selected in the table, or the sweep that is looked at, beside each other"),
                key(Qt::CTRL | Qt::SHIFT | Qt::Key_C)},
               [this] { compare_chosen(); });
  actions_.add({u"runs.replay"_s,
                tr("Replay on Another Target\u2026"),
                tr("Serve recorded requests on another target, mesh, KV type or cache policy, simulated"),
                {}},
               [this] { replay_chosen(); });
  actions_.add({u"runs.import"_s,
                tr("Import Results…"),
                tr("Read results of vLLM bench, GuideLLM, llama-bench or a CSV into the run store"),
                {}},
               [this] {
                 show_page(Page::runs);
                 runs_page_->choose_import();
               });
  actions_.add({u"compare.clear"_s, tr("Empty the Comparison"), tr("Take every run out of the tray"), {}},
               [this] { compare_->clear(); });
  actions_.add({u"compare.export"_s,
                tr("Export the Comparison…"),
                tr("As CSV, Markdown, LaTeX, PNG, SVG or PDF, by the file's name"),
                {}},
               [this] {
                 show_page(Page::compare);
                 compare_->choose_export();
               });
  actions_.add({u"page.runs"_s, tr("Show Runs"), tr("All runs of the store"), key(Qt::CTRL | Qt::Key_6)},
               [this] { show_page(Page::runs); });
  actions_.add(
      {u"view.live"_s, tr("Show the Live Run"), tr("Go back to the run that is going on"), key(Qt::CTRL | Qt::Key_L)},
      [this] {
        runs_.show_live();
        const RunPtr run = runs_.shown();
        show_kind(run ? run->kind() : RunKind::train);
      });
  actions_.add({u"view.form"_s, tr("Show the Form"), tr("The experiment as a form"), key(Qt::ALT | Qt::Key_1)},
               [this] { panel_->show_form(); });
  actions_.add({u"view.json"_s, tr("Show the JSON"), tr("The experiment as text"), key(Qt::ALT | Qt::Key_2)},
               [this] { panel_->show_json(); });
  actions_.add(
      {u"view.command"_s, tr("Show the Command Line"), tr("The same run from a terminal"), key(Qt::ALT | Qt::Key_3)},
      [this] { panel_->show_command(); });
  actions_.add(
      {u"view.panels"_s, tr("Open or Fold the Panels"), tr("Problems, log and jobs below the page, or their tabs only"),
       key(Qt::CTRL | Qt::Key_J), Glyph::panels},
      [this] { bottom_->toggle(); });
  actions_.add({u"view.find"_s, tr("Find a Setting"), tr("Search the form"), key(QKeySequence::Find)}, [this] {
    raise_panel(u"experiment"_s);
    panel_->show_form();
    panel_->form().search()->setFocus();
  });
  actions_.add(
      {u"view.follow"_s, tr("Follow the Newest Step"), tr("Keep the newest step of the charts in view"),
       key(Qt::CTRL | Qt::Key_End)},
      [this] {
        PlotLink& link = page() == Page::serve ? serve_->link() : page() == Page::data ? data_->link() : train_->link();
        link.set_playhead(std::nullopt);
        link.set_following(true);
      });
  for (const auto& [id, text, help, k, by] :
       {std::tuple{u"view.step_back"_s, tr("Playhead a Step Back"), tr("Hold the playhead a step earlier"),
                   Qt::ALT | Qt::Key_Left, -1},
        std::tuple{u"view.step_on"_s, tr("Playhead a Step On"), tr("Hold the playhead a step later"),
                   Qt::ALT | Qt::Key_Right, 1}})
    actions_.add({id, text, help, key(k)}, [this, by = by] { train_->bar().step_by(by); });
  actions_.add(
      {u"view.measured"_s, tr("Measured or Planned Mesh"),
       tr("Switch the Design page between the plan and what the shown run measured"), key(Qt::CTRL | Qt::Key_M)},
      [this] {
        show_page(Page::design);
        design_->measured().show_measured(!design_->measured().measured_shown());
      });
  actions_.add(
      {u"view.log_scale"_s, tr("Logarithmic Loss"), tr("Switch the loss chart between linear and logarithmic"), {}},
      [this] {
        Plot& loss = train_->loss();
        loss.set_scale(loss.scale() == Scale::linear ? Scale::logarithmic : Scale::linear);
      });
  actions_.add({u"design.pin"_s, tr("Pin the Design"), tr("Keep this design on screen beside the ones that follow"),
                key(Qt::CTRL | Qt::Key_P)},
               [this] {
                 show_page(Page::design);
                 design_->pinned() ? design_->unpin() : design_->pin();
               });
  actions_.add({u"design.both"_s, tr("Show Both Meshes"), tr("Show the pinned mesh beside this one, or this one alone"),
                key(Qt::CTRL | Qt::Key_B)},
               [this] {
                 show_page(Page::design);
                 const bool both = design_->canvases().wanted() == Meshes::both;
                 design_->set_meshes(both ? Meshes::one : Meshes::both);
               });
  actions_.add({u"design.swap"_s, tr("Swap With the Pinned Design"),
                tr("Go on with the pinned design and pin this one"), key(Qt::CTRL | Qt::SHIFT | Qt::Key_B)},
               [this] {
                 show_page(Page::design);
                 design_->swap_pinned();
               });
  actions_.add({u"plan.calibrate"_s,
                tr("Calibrate the Plan…"),
                tr("Fit the plan's efficiencies to your own measurements, and see the error of rows held out"),
                {}},
               [this] { calibrate_->open(); });
  actions_.add({u"plan.undo_calibration"_s,
                tr("Undo the Calibration"),
                tr("Take back the last calibration that was accepted or removed"),
                {}},
               [this] { calibrator_.undo(); });
  actions_[u"plan.undo_calibration"_s]->setEnabled(false);
  actions_.add({u"data.read_again"_s, tr("Read the Data Again"), tr("Read the data file and the tokenizer anew"), {}},
               [this] {
                 show_page(Page::data);
                 data_->reader().read_again();
               });
  actions_.add({u"data.save_lengths"_s,
                tr("Save the Data's Lengths…"),
                tr("Keep how many rows have how many tokens, to plan with where the data is not"),
                {}},
               [this] {
                 show_page(Page::data);
                 data_->choose_lengths_file();
               });
  actions_.add({u"runs.undo_delete"_s, tr("Undo Deletion of Runs"), tr("Bring back the runs deleted last"), {}},
               [this] { runs_page_->undo_delete(); });
  for (const auto& [id, text] :
       {std::pair{u"experiment"_s, tr("Experiment Panel")}, std::pair{u"problems"_s, tr("Problems")},
        std::pair{u"log"_s, tr("Log")}, std::pair{u"jobs"_s, tr("Jobs")}}) {
    QAction* a = actions_.add({u"panel."_s + id, tr("Show %1").arg(text), tr("Show or hide this panel"), {}}, [] {});
    auto* d = findChild<QDockWidget*>(id);
    connect(a, &QAction::triggered, d, [d] {
      const bool hide = d->isVisible() && !d->visibleRegion().isEmpty();
      d->setVisible(!hide);
      if (!hide) d->raise();
    });
  }
  actions_.add({u"view.theme"_s, tr("Light or Dark Theme"), tr("Switch between the light and the dark theme"),
                key(Qt::CTRL | Qt::SHIFT | Qt::Key_T), Glyph::theme},
               [this] { set_shade(theme_.shade == Shade::dark ? Shade::light : Shade::dark); });
  actions_.add({u"view.palette"_s, tr("Command Palette"), tr("Find any command, setting or run by a few letters"),
                key(Qt::CTRL | Qt::Key_K), Glyph::command},
               [this] { open_palette(); });
  actions_[u"view.palette"_s]->setShortcuts({key(Qt::CTRL | Qt::Key_K), key(Qt::CTRL | Qt::SHIFT | Qt::Key_P)});
  actions_.add({u"help.manual"_s, tr("Manual"), tr("Open the manual at the chapter of this page"), key(Qt::Key_F1)},
               [this] { show_manual(); });
  actions_.add({u"app.quit"_s, tr("Quit"), tr("Close the window; unsaved edits come back at the next start"),
                key(QKeySequence::Quit)},
               [this] { close(); });
}

void MainWindow::show_manual() {
  if (!manual_) manual_ = new ManualWindow(setup_.resources / "manual", this);
  manual_->open_chapter(manual_chapter_of(page()));
}

void MainWindow::run() {
  start(page() == Page::serve ? serve_->kind() : kind_of(document_.experiment()));
}

void MainWindow::start(RunKind kind) {
  if (runs_.busy()) return;
  problems_.clear(ProblemSource::run);
  if (document_.text_broken())
    report(ProblemSource::run, {.id = "JSON",
                                .severity = Severity::warning,
                                .message = "the run uses the last valid document, not the broken JSON text",
                                .fix = "correct the text and run again"});
  experiment::Experiment experiment = document_.experiment();
  if (kind == RunKind::size) experiment.set_value("kind", "size");
  if (kind == RunKind::sweep) experiment.set_value("kind", "serve");
  runs_.start(experiment);
  show_kind(kind);
}

void MainWindow::prove(const NamedExperiment& experiment) {
  proof_window_->show();
  proof_window_->activateWindow();
  if (runs_.busy() || proof_window_->task().busy())
    return;  // they would only slow each other, and the timings of the run
  proved_run_ = experiment.run;
  proof_window_->start(experiment.name, experiment.experiment);
}

// The same run again, or the form as it is by now.
void MainWindow::prove_again() {
  if (proved_run_.empty()) return prove(form_experiment());
  try {
    const store::Store store(setup_.runs_folder);
    prove({qs(proved_run_), store.experiment(proved_run_), {}, proved_run_});
  } catch (const Error& error) {
    report(ProblemSource::store, error.problem());
  }
}

void MainWindow::pause_or_continue() {
  const RunPtr live = runs_.live();
  if (!live) return;
  if (live->view.state() == RunState::paused)
    runs_.resume();
  else
    runs_.pause();
}

// Errors come first in the list.
void MainWindow::show_errors() {
  raise_panel(u"problems"_s);
  if (problems_.rowCount() > 0) problems_panel_->choose(0);
  problems_panel_->table().setFocus(Qt::OtherFocusReason);
}

void MainWindow::fix(const lint::Fix& fix, const QString& id) {
  experiment::Experiment next = document_.experiment();
  planning::apply(next, fix);
  document_.replace(std::move(next), tr("fix of %1").arg(id));
}

void MainWindow::report(ProblemSource source, const Problem& problem) {
  problems_.set(source, {problem});
  raise_panel(u"problems"_s);
}

std::vector<PaletteEntry> MainWindow::palette_entries() {
  std::vector<PaletteEntry> out;
  for (QAction* a : actions_.all()) {
    if (a->objectName() == u"view.palette"_s) continue;
    out.push_back({a->text(), a->shortcut().toString(QKeySequence::NativeText), [a] { a->trigger(); }, a->isEnabled()});
  }
  for (const experiment::Parameter& p : experiment::parameters())
    out.push_back({tr("Set %1: %2").arg(qs(p.group), qs(p.label)), qs(p.key), [this, key = p.key] {
                     raise_panel(u"experiment"_s);
                     panel_->go_to({.place = key.ends_with(".*") ? key.substr(0, key.size() - 2) : key});
                   }});
  for (int i = 0; i < runs_page_->model().rowCount(); ++i) {
    const store::RunRow& r = runs_page_->model().row(i);
    out.push_back(
        {tr("Open Run %1").arg(qs(r.name.empty() ? r.id : r.name)), qs(r.id), [this, id = r.id] { open_run(id); }});
  }
  return out;
}

void MainWindow::open_palette() {
  runs_page_->refresh();
  palette_->open(palette_entries());
}

}  // namespace mw::ui
