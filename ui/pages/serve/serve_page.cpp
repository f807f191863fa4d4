// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/serve_page.h"

#include <QTabBar>

#include "ui/session/action_registry.h"
#include "ui/session/replay_offer.h"
#include "ui/theme/text.h"

namespace mw::ui {

ServePage::ServePage(Document& document, RunController& runs, QWidget* parent)
    : QTabWidget(parent),
      runs_(runs),
      sweep_(new SweepPage(document, runs)),
      sizes_(new SizePage(runs)),
      server_(new ServerTab(document)),
      envelope_(new EnvelopeTab(document, runs.context())) {
  setDocumentMode(true);
  setAccessibleName(tr("Latency sweeps, mesh envelope, batch sizes and the server"));
  addTab(sweep_, tr("Latency Sweep"));
  addTab(sizes_, tr("Batch Size"));
  addTab(envelope_, tr("Mesh Envelope"));
  addTab(server_, tr("Server and Playground"));
  tabBar()->setAccessibleName(tr("Latency sweeps, batch sizes, mesh envelope or the server"));
}

void ServePage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  register_actions();
  sweep_->attach(workspace);
  sizes_->attach(workspace);
  envelope_->attach(workspace);
  connect(envelope_, &EnvelopeTab::problem, this,
          [&workspace](const Problem& p) { workspace.report(ProblemSource::run, p); });
  connect(envelope_, &EnvelopeTab::busy_changed, this, [this, &workspace] {
    workspace.update_actions();
    if (!envelope_->is_busy()) workspace.work_ended();
  });
  connect(&server_->playground(), &Playground::adapter_wanted, this,
          [&workspace] { workspace.show_setting("lora.adapter"); });
  connect(this, &QTabWidget::currentChanged, this, [&workspace] {
    if (workspace.page() == Page::serve)
      workspace.show_page(Page::serve);  // updates command line, status strip and log
  });
  // Opening another document selects the tab for its kind; edits do not.
  Document& document = workspace.document();
  connect(&document, &Document::file_changed, this, [this, &document, last = std::pair<QString, RunKind>()]() mutable {
    const std::pair now(document.title(), kind_of(document.experiment()));
    if (now != last && now.second != RunKind::train) show_kind(now.second);
    last = now;
  });
}

void ServePage::register_actions() {
  workspace_->actions().add(
      {u"run.size"_s, tr("Measure or Predict Batch Sizes"),
       tr("Measure time and memory of the model by batch size, or predict them for another target"),
       QKeySequence(Qt::CTRL | Qt::Key_F5)},
      [this] { workspace_->start_run(RunKind::size); });
  workspace_->actions().add(
      {u"run.sweep"_s, tr("Run the Latency Sweep"),
       tr("Sweep request rates and prompt lengths of this experiment: latency, throughput, every request"),
       QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F5)},
      [this] { workspace_->start_run(RunKind::sweep); });
  workspace_->actions().add({u"run.envelope"_s, tr("Simulate the Mesh Envelope"),
                             tr("Simulate the sweep on every mesh of the target and find the best mesh at each load")},
                            [this] {
                              workspace_->show_page(Page::serve);
                              show_envelope();
                              envelope_->simulate();
                            });
}

void ServePage::show_kind(RunKind kind) {
  setCurrentWidget(kind == RunKind::size ? static_cast<QWidget*>(sizes_) : sweep_);
}

QStringList ServePage::unfinished_work() const {
  return envelope_->is_busy() ? QStringList{tr("the simulation of the mesh envelope")} : QStringList();
}

void ServePage::update_actions() {
  for (const auto& id : {u"run.size"_s, u"run.sweep"_s}) workspace_->actions()[id]->setEnabled(!runs_.live());
  workspace_->actions()[u"run.envelope"_s]->setEnabled(!envelope_->is_busy());
}

void ServePage::save_state(Session& session) const {
  session.set_value(u"layout/serve"_s, sizes_->save_layout());
  session.set_value(u"layout/sweep"_s, sweep_->save_layout());
  server_->save_state(session);
}

void ServePage::restore_state(const Session& session) {
  sizes_->restore_layout(session.value(u"layout/serve"_s).toByteArray());
  sweep_->restore_layout(session.value(u"layout/sweep"_s).toByteArray());
  server_->restore_state(session);
}

bool ServePage::follow_newest() {
  auto* tab = qobject_cast<RunTab*>(currentWidget());
  if (!tab) return false;
  tab->link().set_playhead(std::nullopt);
  tab->link().set_following(true);
  return true;
}

std::optional<RunKind> ServePage::run_kind() const {
  return shows_server() || shows_envelope() ? std::nullopt : std::optional(kind());
}

QString ServePage::subcommand() const {
  return shows_server()            ? u"serve"_s
         : shows_envelope()        ? u"envelope"_s
         : kind() == RunKind::size ? u"size"_s
                                   : u"sweep"_s;
}

std::vector<store::RunId> ServePage::runs_to_compare() const {
  if (currentWidget() != sweep_ || !sweep_->run()) return {};
  return {sweep_->run()->id};
}

std::optional<ReplayOffer> ServePage::replay_offer() const {
  if (!sweep_->run() || !sweep_->view()) return {};
  return ReplayOffer{sweep_->compared(), sweep_->chosen_point()};
}

void ServePage::show_frame() {
  sweep_->show_frame();
  sizes_->show_frame();
  server_->show_frame();
  envelope_->show_frame();
}

void ServePage::restyle() {
  sweep_->restyle();
  sizes_->restyle();
  envelope_->restyle();
}

}  // namespace mw::ui

#include "moc_serve_page.cpp"
