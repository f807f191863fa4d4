// SPDX-License-Identifier: GPL-3.0-or-later
// Opens, saves and replaces the document and writes its unsaved edits to the journal. Asks before unsaved edits are
// discarded. GUI thread.
#pragma once
#include <QTimer>
#include <QUndoGroup>

#include "ui/session/dialog_parts.h"
#include "ui/session/session.h"
#include "ui/session/workspace.h"

class QMainWindow;
class QMenu;

namespace mw::ui {

class PortDialog;

class DocumentActions : public QObject {
  Q_OBJECT
 public:
  DocumentActions(QMainWindow& window, Workspace& workspace, Session& session, PendingQuestion& question);
  // Opens `wanted`, otherwise the last document, otherwise the default example. Restores unsaved edits of the last
  // session; in that case open_postponed() opens `wanted` after asking about them.
  void open_first(const std::filesystem::path& wanted);
  void open_postponed(const std::function<void()>& then);
  void open_file(const std::filesystem::path& file, const std::function<void()>& then = {});
  // The content of the file as a document without a file.
  void open_example(const std::filesystem::path& file, const std::function<void()>& then = {});
  void open_copy(const experiment::Experiment& experiment);  // a document without a file
  // Calls `go_on` when the document has no unsaved edits or they may be discarded; never if the user cancels.
  void when_edits_are_safe(const std::function<void()>& go_on);
  bool write_journal();  // false: closing the window would lose unsaved edits
  // Makes the edits of a lost window the document, with its undo stack cleared.
  void restore(const Session::Journal& edits, const std::function<void()>& then);
  void keep_journal() { session_.keep_journal(); }  // when the window closes without asking
  void fill_menu(QMenu& menu);
  // Shows the dialog that ports a recipe and reads the files, if there are any.
  void port_recipe(std::vector<std::filesystem::path> files);
  PortDialog* port_dialog() { return port_; }  // null before port_recipe()

 private:
  void register_actions();
  template <class Open>
  void replace_document(Open open);
  void choose_file();
  void save(const std::function<void()>& then = {});
  void save_as(const std::function<void()>& then = {});
  QMainWindow& window_;
  Workspace& workspace_;
  Document& document_;
  Session& session_;
  PendingQuestion& question_;
  QTimer journal_;
  std::filesystem::path postponed_;
  PortDialog* port_ = nullptr;  // created on first use
};

// Undo and Redo act on the stack of the current page, or on that of the document while the form has the focus.
class UndoActions : public QObject {
  Q_OBJECT
 public:
  explicit UndoActions(Workspace& workspace);
  ~UndoActions() override;
  void add_stack(QUndoStack* stack);
  // The focus in one of these widgets chooses the stack.
  void follow_focus(const QWidget& form, const QWidget& pages);
  void choose_stack();  // that of the current page

 private:
  void update_actions();
  void update(const QString& id, bool can, const QString& verb, const QString& what);
  Workspace& workspace_;
  QUndoGroup group_;
};

}  // namespace mw::ui
