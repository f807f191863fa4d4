// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/document_actions.h"

#include <QApplication>
#include <QMainWindow>
#include <QMenu>

#include "core/base/files.h"
#include "ui/port/port_dialog.h"
#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

namespace fs = std::filesystem;
namespace {
constexpr int kJournalMs = 1000;
}

DocumentActions::DocumentActions(QMainWindow& window, Workspace& workspace, Session& session, PendingQuestion& question)
    : window_(window), workspace_(workspace), document_(workspace.document()), session_(session), question_(question) {
  register_actions();
  journal_.setSingleShot(true);
  journal_.setInterval(kJournalMs);
  connect(&journal_, &QTimer::timeout, this, &DocumentActions::write_journal);
  connect(&document_, &Document::changed, &journal_, qOverload<>(&QTimer::start));
  connect(&document_, &Document::file_changed, &journal_, qOverload<>(&QTimer::start));
}

void DocumentActions::register_actions() {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"file.new"_s, tr("New Experiment"), tr("Start a new experiment with default settings"),
               QKeySequence(QKeySequence::New)},
              [this] { when_edits_are_safe([this] { document_.clear(); }); });
  actions.add(
      {u"file.open"_s, tr("Open…"), tr("Open an experiment file"), QKeySequence(QKeySequence::Open), Glyph::open},
      [this] { choose_file(); });
  actions.add({u"file.save"_s, tr("Save"), tr("Save the experiment"), QKeySequence(QKeySequence::Save), Glyph::save},
              [this] { save(); });
  actions.add({u"file.save_as"_s, tr("Save As…"), tr("Save the experiment to another file"),
               QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S)},
              [this] { save_as(); });
  actions.add({u"file.port"_s, tr("Port Recipe…"),
               tr("Turn a training script of TRL and PEFT into an experiment, and see its adaptations to JAX")},
              [this] { port_recipe({}); });
}

void DocumentActions::port_recipe(std::vector<fs::path> files) {
  if (!port_) {
    port_ = new PortDialog(workspace_.runs().context(), &window_);
    connect(port_, &PortDialog::experiment_wanted, this, &DocumentActions::open_copy);
  }
  port_->open_with(std::move(files), document_.experiment());
}

void DocumentActions::open_first(const fs::path& file) {
  const fs::path wanted = file.empty() ? fs::path() : fs::absolute(file).lexically_normal();
  try {
    const auto journal = session_.read_journal();
    if (journal && (journal->dirty || (journal->file.empty() && wanted.empty()))) {
      document_.restore(journal->snapshot, journal->file, journal->dirty ? Edited::yes : Edited::no);
      if (wanted.empty() || wanted == journal->file) return;
      if (document_.is_dirty()) {
        postponed_ = wanted;
        return;
      }
    }
    if (!wanted.empty()) {
      document_.open(wanted);
      session_.add_recent(qpath(document_.file()));
      return;
    }
    if (journal && path_exists(journal->file)) {
      document_.open(journal->file);
      return;
    }
    const auto example = workspace_.resources() / "examples" / "tiny-lora.json";
    if (path_exists(example)) document_.open_example(example);
  } catch (const Error& error) {
    workspace_.report(ProblemSource::file, error.problem());
  }
}

void DocumentActions::open_postponed(const std::function<void()>& then) {
  postponed_.empty() ? then() : open_file(std::exchange(postponed_, {}), then);
}

void DocumentActions::when_edits_are_safe(const std::function<void()>& go_on) {
  if (!document_.is_dirty()) return go_on();
  if (question_.raise()) return;
  if (window_.isMinimized()) window_.showNormal();
  const QString details = document_.has_invalid_text()
                              ? tr("The JSON text is invalid. Save stores only its last valid values.")
                              : tr("Unsaved changes are lost if you discard them.");
  const auto save_first = [this, go_on] {
    save([this, go_on] {
      if (!document_.is_dirty()) return go_on();
      workspace_.report(ProblemSource::file, {.id = "JSON",
                                              .message = "the JSON text is not valid and was not saved",
                                              .file = document_.file().string(),
                                              .fix = "correct the text, or discard it, and try again"});
    });
  };
  question_.ask(u"unsaved_edits"_s, tr("Save the changes to %1?").arg(document_.title()), details,
                {{u"save"_s, tr("Save"), QMessageBox::AcceptRole, save_first},
                 {u"discard"_s, tr("Discard"), QMessageBox::DestructiveRole, go_on},
                 {u"cancel"_s, tr("Cancel"), QMessageBox::RejectRole, {}}});
}

template <class Open>
void DocumentActions::replace_document(Open open) {
  when_edits_are_safe([this, open] {
    try {
      open();
    } catch (const Error& error) {
      workspace_.report(ProblemSource::file, error.problem());
    }
  });
}

void DocumentActions::open_file(const fs::path& file, const std::function<void()>& then) {
  replace_document([this, file, then] {
    document_.open(file);
    workspace_.clear_problems(ProblemSource::file);
    session_.add_recent(qpath(document_.file()));
    if (then) then();
  });
}

void DocumentActions::open_example(const fs::path& file, const std::function<void()>& then) {
  replace_document([this, file, then] {
    document_.open_example(file);
    workspace_.clear_problems(ProblemSource::file);
    if (then) then();
  });
}

void DocumentActions::open_copy(const experiment::Experiment& experiment) {
  replace_document([this, experiment] {
    document_.open_copy(experiment);
    workspace_.show_setting({});
  });
}

void DocumentActions::choose_file() {
  open_file_dialog(&window_,
                   {.title = tr("Open Experiment"),
                    .start = qpath(document_.experiment().folder()),
                    .filters = tr("Experiment (*.json)")},
                   [this](const auto& files) { open_file(files.front()); });
}

// Calls `then` after a successful save.
void DocumentActions::save(const std::function<void()>& then) {
  if (document_.file().empty()) return save_as(then);
  try {
    document_.save();
    workspace_.clear_problems(ProblemSource::file);
    if (then) then();
  } catch (const Error& error) {
    workspace_.report(ProblemSource::file, error.problem());
  }
}

void DocumentActions::save_as(const std::function<void()>& then) {
  const FileDialogOptions options{
      .title = tr("Save Experiment"),
      .start = document_.file().empty() ? u"experiment.meshwright.json"_s : qpath(document_.file()),
      .filters = tr("Experiment (*.json)"),
      .suffix = u"meshwright.json"_s};
  QFileDialog* dialog = open_save_dialog(&window_, options, [this, then](const auto& files) {
    try {
      document_.save_as(files.front());
      workspace_.clear_problems(ProblemSource::file);
      session_.add_recent(qpath(document_.file()));
      if (then) then();
    } catch (const Error& error) {
      workspace_.report(ProblemSource::file, error.problem());
    }
  });
  dialog->setObjectName(u"save_as"_s);
}

bool DocumentActions::write_journal() {
  try {
    session_.write_journal(document_);
    return session_.has_journal() || !document_.is_dirty();
  } catch (const Error& error) {
    workspace_.report(ProblemSource::file, error.problem());
    return !document_.is_dirty();
  }
}

void DocumentActions::restore(const Session::Journal& edits, const std::function<void()>& then) {
  replace_document([this, edits, then] {
    document_.restore(edits.snapshot, edits.file, Edited::yes);
    write_journal();  // before the caller removes the journal of the lost window
    then();
  });
}

void DocumentActions::fill_menu(QMenu& menu) {
  menu.clear();
  for (const auto& id :
       {u"file.new"_s, u"file.open"_s, u"file.save"_s, u"file.save_as"_s, u"file.port"_s, u"file.export"_s})
    menu.addAction(workspace_.actions()[id]);
  const auto add = [&](const QString& title, const QStringList& files, bool example) {
    if (files.isEmpty()) return;
    menu.addSection(title);
    for (const QString& file : files) {
      const QString name = QFileInfo(file).fileName();
      QAction* a = menu.addAction(menu.fontMetrics().elidedText(example ? name : file, Qt::ElideMiddle, 420));
      a->setToolTip(file);
      connect(a, &QAction::triggered, this,
              [this, file = fspath(file), example] { example ? open_example(file) : open_file(file); });
    }
  };
  add(tr("Recent Files"), session_.recent(), false);
  QStringList examples;
  const QDir folder(qpath(workspace_.resources() / "examples"));
  for (const QString& name : folder.entryList({u"*.json"_s}, QDir::Files, QDir::Name))
    examples << folder.filePath(name);
  add(tr("Examples"), examples, true);
}

UndoActions::UndoActions(Workspace& workspace) : workspace_(workspace) {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"edit.undo"_s, tr("Undo"), tr("Undo the last change made on this page"),
               QKeySequence(QKeySequence::Undo), Glyph::undo},
              [this] { group_.undo(); });
  const QKeySequence redo(Qt::CTRL | Qt::SHIFT | Qt::Key_Z);
  actions.add({u"edit.redo"_s, tr("Redo"), tr("Redo the last undone change"), redo, Glyph::redo},
              [this] { group_.redo(); });
  actions[u"edit.redo"_s]->setShortcuts({redo, QKeySequence(Qt::CTRL | Qt::Key_Y)});
  for (const auto changed : {&QUndoGroup::canUndoChanged, &QUndoGroup::canRedoChanged})
    connect(&group_, changed, this, &UndoActions::update_actions);
  for (const auto changed : {&QUndoGroup::undoTextChanged, &QUndoGroup::redoTextChanged})
    connect(&group_, changed, this, &UndoActions::update_actions);
  connect(&workspace_.document(), &Document::replaced, this, &UndoActions::choose_stack);
  update_actions();
}

UndoActions::~UndoActions() {
  for (QUndoStack* stack : group_.stacks()) stack->disconnect();  // a stack emits signals while it is cleared
  group_.disconnect();
}

void UndoActions::add_stack(QUndoStack* stack) {
  if (!stack || group_.stacks().contains(stack)) return;
  group_.addStack(stack);
  // Undo reverts the latest change, wherever the focus is.
  connect(stack, &QUndoStack::indexChanged, this, [this, stack] { group_.setActiveStack(stack); });
}

void UndoActions::follow_focus(const QWidget& form, const QWidget& pages) {
  connect(qApp, &QApplication::focusChanged, this, [this, &form, &pages](QWidget*, QWidget* now) {
    if (!now) return;
    if (form.isAncestorOf(now)) group_.setActiveStack(&workspace_.document().undo_stack());
    if (pages.isAncestorOf(now)) choose_stack();
  });
}

void UndoActions::choose_stack() {
  group_.setActiveStack(workspace_.current_page().active_undo_stack(workspace_.document()));
}

void UndoActions::update_actions() {
  update(u"edit.undo"_s, group_.canUndo(), tr("Undo"), group_.undoText());
  update(u"edit.redo"_s, group_.canRedo(), tr("Redo"), group_.redoText());
}

void UndoActions::update(const QString& id, bool can, const QString& verb, const QString& what) {
  QAction* action = workspace_.actions()[id];
  const QString text = can && !what.isEmpty() ? verb + u' ' + what : verb;
  const QString keys = action->shortcut().toString(QKeySequence::NativeText);
  action->setEnabled(can);
  action->setText(text);
  action->setToolTip(
      tr("%1 (%2)").arg(can ? text : tr("There is nothing to %1 on this page").arg(verb.toLower()), keys));
}

}  // namespace mw::ui

#include "moc_document_actions.cpp"
