// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/window_docks.h"

#include <QDockWidget>
#include <QLineEdit>
#include <QMainWindow>

#include "ui/form/experiment_panel.h"
#include "ui/form/picker.h"
#include "ui/session/session.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/problems_panel.h"
#include "ui/theme/text.h"

namespace mw::ui {

WindowDocks::WindowDocks(QMainWindow& window, Workspace& workspace, ProblemsModel& found)
    : QObject(&window),
      panel(*new ExperimentPanel(workspace.document(), workspace.runs().runs_folder())),
      problems(*new ProblemsPanel(found)),
      log(*new LogPanel),
      jobs(*new JobsPanel(workspace.runs(), workspace.actions())),
      window_(window),
      workspace_(workspace) {
  add_pickers(panel.form(), workspace.document(), workspace.runs().context());
  add_found_model_pickers(panel.form(), workspace.document(), workspace.runs().context(),
                          workspace.runs().runs_folder());
  connect(&panel, &ExperimentPanel::state_wanted, this, &WindowDocks::set_panel_state);
  for (const Page page : {Page::compare, Page::runs}) panel_states_[static_cast<size_t>(page)] = PanelState::folded;
  window_.setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  experiment_dock_ = add(u"experiment"_s, tr("Experiment"), panel, Qt::LeftDockWidgetArea);
  problems_dock_ = add(u"problems"_s, tr("Problems"), problems, Qt::BottomDockWidgetArea);
  log_dock_ = add(u"log"_s, tr("Log"), log, Qt::BottomDockWidgetArea);
  jobs_dock_ = add(u"jobs"_s, tr("Jobs"), jobs, Qt::BottomDockWidgetArea);
  window_.tabifyDockWidget(problems_dock_, log_dock_);
  window_.tabifyDockWidget(log_dock_, jobs_dock_);
  problems_dock_->raise();
  bottom = new BottomDocks(window_, {problems_dock_, log_dock_, jobs_dock_});
  window_.resizeDocks({experiment_dock_}, {panel_width_}, Qt::Horizontal);
  window_.resizeDocks({problems_dock_}, {bottom->height()}, Qt::Vertical);
}

QDockWidget* WindowDocks::add(const QString& id, const QString& title, QWidget& content, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, &window_);
  dock->setObjectName(id);
  dock->setWidget(&content);
  dock->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
  dock->setTitleBarWidget(new QWidget(dock));  // the tabs already name the docks
  window_.addDockWidget(area, dock);
  return dock;
}

void WindowDocks::register_actions() {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"view.form"_s, tr("Show the Form"), tr("Edit the experiment as a form"), Qt::ALT | Qt::Key_1},
              [this] { panel.show_form(); });
  actions.add({u"view.json"_s, tr("Show the JSON"), tr("Edit the experiment as JSON text"), Qt::ALT | Qt::Key_2},
              [this] { panel.show_json(); });
  actions.add({u"view.command"_s, tr("Show the Command Line"), tr("Show the command line of the same run"),
               Qt::ALT | Qt::Key_3},
              [this] { panel.show_command(); });
  actions.add({u"view.find"_s, tr("Find a Setting"), tr("Search the settings of the form"), QKeySequence::Find},
              [this] {
                workspace_.show_setting({});
                panel.form().search()->setFocus();
              });
  actions.add({u"problems.fix"_s, tr("Fix the Problem"),
               tr("Apply the fix of the selected problem, or the first available fix"), Qt::CTRL | Qt::Key_Period},
              [this] { problems.fix_first(); });
  actions.add({u"view.panels"_s, tr("Toggle the Bottom Panels"),
               tr("Expand problems, log and jobs below the page, or collapse them to their tabs"), Qt::CTRL | Qt::Key_J,
               Glyph::panels},
              [this] { bottom->toggle(); });
  actions.add({u"panel.experiment"_s, tr("Fold the Experiment Panel"),
               tr("Fold the experiment panel of this page to a narrow rail, or open it"), Qt::ALT | Qt::Key_0},
              [this] { toggle_panel(); });
  for (const auto& [dock, text] :
       {std::pair{problems_dock_, tr("Problems")}, {log_dock_, tr("Log")}, {jobs_dock_, tr("Jobs")}})
    actions.add({u"panel."_s + dock->objectName(), tr("Show %1").arg(text), tr("Show or hide this panel")}, [d = dock] {
      const bool hide = d->isVisible() && !d->visibleRegion().isEmpty();
      d->setVisible(!hide);
      if (!hide) d->raise();
    });
}

void WindowDocks::toggle_panel() {
  set_panel_state(panel.state() == PanelState::open ? PanelState::folded : PanelState::open);
}

void WindowDocks::set_panel_state(PanelState state) {
  panel_states_[static_cast<size_t>(workspace_.page())] = state;
  show_page(workspace_.page());
}

void WindowDocks::show_page(Page page) {
  const PanelState state = panel_states_[static_cast<size_t>(page)];
  if (state == panel.state()) return;
  if (state == PanelState::folded) panel_width_ = experiment_dock_->width();
  panel.set_state(state);
  if (state == PanelState::open) window_.resizeDocks({experiment_dock_}, {panel_width_}, Qt::Horizontal);
}

void WindowDocks::raise(const QString& name) {
  if (auto* dock = window_.findChild<QDockWidget*>(name)) {
    dock->show();
    dock->raise();
    dock == experiment_dock_ ? set_panel_state(PanelState::open) : bottom->set(DockState::expanded);
  }
}

void WindowDocks::show_problem_counts(int errors, int warnings) {
  problems_dock_->setWindowTitle(errors + warnings > 0 ? tr("Problems (%1)").arg(errors + warnings) : tr("Problems"));
  bottom->mark(problems_dock_, errors > 0     ? icon(Glyph::error, IconColor::bad)
                               : warnings > 0 ? icon(Glyph::warning, IconColor::warn)
                                              : QIcon());
}

void WindowDocks::save_state(Session& session) const {
  if (const auto chosen = bottom->chosen()) session.set_value(u"layout/folded"_s, *chosen == DockState::collapsed);
  session.set_value(u"layout/bottom_height"_s, bottom->height());
  session.set_value(u"layout/panel_width"_s,
                    panel.state() == PanelState::open ? experiment_dock_->width() : panel_width_);
  QByteArray folded;
  for (const PanelState state : panel_states_) folded += state == PanelState::folded ? '1' : '0';
  session.set_value(u"layout/panel_folded"_s, folded);
  session.set_value(u"panel_tab"_s, panel.tab());
}

void WindowDocks::restore_state(const Session& session) {
  panel_width_ = session.value(u"layout/panel_width"_s, panel_width_).toInt();
  const QByteArray folded_panels = session.value(u"layout/panel_folded"_s).toByteArray();
  if (folded_panels.size() == static_cast<qsizetype>(kPages))
    for (size_t i = 0; i < kPages; ++i)
      panel_states_[i] = folded_panels[static_cast<qsizetype>(i)] == '1' ? PanelState::folded : PanelState::open;
  const QVariant folded = session.value(u"layout/folded"_s);
  bottom->restore(
      folded.isNull() ? std::nullopt : std::optional(folded.toBool() ? DockState::collapsed : DockState::expanded),
      session.value(u"layout/bottom_height"_s, bottom->height()).toInt());
}

}  // namespace mw::ui

#include "moc_window_docks.cpp"
