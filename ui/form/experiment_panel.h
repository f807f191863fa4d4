// SPDX-License-Identifier: GPL-3.0-or-later
// The Experiment dock: form, JSON text and command line of the document as tabs, or folded to a rail of buttons. GUI
// thread.
#pragma once
#include <QTabWidget>
#include <QWidget>

#include "ui/form/form.h"
#include "ui/form/json_view.h"
#include "ui/session/document.h"

class QPlainTextEdit;

namespace mw::ui {

// "meshwright run FILE --set ..." with unsaved edits as --set; a document without a file is written to one first.
// Values are quoted for a POSIX shell. `command`: "run" or "size".
QString command_line(const Document& document, const std::filesystem::path& runs_folder,
                     const QString& command = QStringLiteral("run"));
QString shell_quoted(const QString& text);

// Shows the command line that runs the current experiment, ready to copy.
class CommandView : public QWidget {
  Q_OBJECT
 public:
  CommandView(Document& document, std::filesystem::path runs_folder, QWidget* parent = nullptr);
  void set_command(const QString& command);

 private:
  void refresh();
  Document& document_;
  std::filesystem::path runs_folder_;
  QString command_ = QStringLiteral("run");
  QPlainTextEdit* text_;
};

enum class PanelState { open, folded };

class ExperimentPanel : public QWidget {
  Q_OBJECT
 public:
  ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent = nullptr);
  Form& form() { return *form_; }
  JsonView& json() { return *json_; }
  CommandView& command() { return *command_; }
  // These open the panel.
  void show_form() { show_tab(0); }
  void show_json() { show_tab(1); }
  void show_command() { show_tab(2); }
  int tab() const { return tabs_->currentIndex(); }
  void set_tab(int tab) { tabs_->setCurrentIndex(tab); }  // without opening the panel
  void go_to(const Problem& problem);                     // focuses the field, or the line of the JSON text
  PanelState state() const { return rail_->isHidden() ? PanelState::open : PanelState::folded; }
  void set_state(PanelState state);

 signals:
  void state_wanted(mw::ui::PanelState state);  // the user folds or opens the panel

 private:
  void build_rail();
  void show_tab(int tab);
  QTabWidget* tabs_;
  QWidget* rail_;
  Form* form_;
  JsonView* json_;
  CommandView* command_;
};

}  // namespace mw::ui
