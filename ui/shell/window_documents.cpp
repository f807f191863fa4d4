// SPDX-License-Identifier: GPL-3.0-or-later
// Which document is open: at the start, new, opened, cloned, saved. Nothing here drops unsaved edits without a
// question.
#include <QFileDialog>

#include "core/base/files.h"
#include "ui/shell/main_window.h"
#include "ui/theme/question.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

// Unsaved edits come back. Where another file is to be opened they are asked about first, by begin().
void MainWindow::first_document() {
  const fs::path wanted = setup_.experiment.empty() ? fs::path() : fs::absolute(setup_.experiment).lexically_normal();
  try {
    const auto left = session_.journal();
    if (left && (left->dirty || (left->file.empty() && wanted.empty()))) {
      document_.restore(left->snapshot, left->file, left->dirty ? Edited::yes : Edited::no);
      if (wanted.empty() || wanted == left->file) return;
      if (document_.dirty()) {
        first_file_ = wanted;
        return;
      }
    }
    if (!wanted.empty()) {
      document_.open(wanted);
      session_.add_recent(qpath(document_.file()));
      return;
    }
    if (left && path_exists(left->file)) {
      document_.open(left->file);
      return;
    }
    const auto example = setup_.resources / "examples" / "tiny-lora.json";
    if (path_exists(example)) document_.open_example(example);
  } catch (const Error& error) {
    report(ProblemSource::file, error.problem());
  }
  problems_.set(ProblemSource::document, document_.problems());
  pricer_.ask(document_);
}

void MainWindow::begin(Start start) {
  const auto run_first = [this, start] {
    if (start != Start::run) return;
    show_page(Page::train);
    actions_[u"run.start"_s]->trigger();
  };
  if (first_file_.empty()) return run_first();
  open_file(std::exchange(first_file_, {}), run_first);
}

// Every replacement of the document passes here. While it has unsaved edits, asks whether to save or to discard them;
// `go_on` is not called where the user cancels or nothing could be saved.
void MainWindow::when_edits_are_safe(const std::function<void()>& go_on) {
  if (!document_.dirty()) return go_on();
  if (is_asking()) return question_->raise();
  if (isMinimized()) showNormal();
  const QString details = document_.text_broken()
                              ? tr("The JSON text is not valid. Save keeps its last valid values only.")
                              : tr("Edits that are not saved are lost.");
  const auto save_first = [this, go_on] {
    save([this, go_on] {
      if (!document_.dirty()) return go_on();
      report(ProblemSource::file, {.id = "JSON",
                                   .message = "the JSON text is not valid and was not saved",
                                   .file = document_.file().string(),
                                   .fix = "correct the text, or discard it, and try again"});
    });
  };
  question_ = ask_question(*this, u"unsaved_edits"_s, tr("Save the changes to %1?").arg(document_.title()), details,
                           {{u"save"_s, tr("Save"), QMessageBox::AcceptRole, save_first},
                            {u"discard"_s, tr("Discard"), QMessageBox::DestructiveRole, go_on},
                            {u"cancel"_s, tr("Cancel"), QMessageBox::RejectRole, {}}});
}

void MainWindow::new_document() {
  when_edits_are_safe([this] { document_.clear(); });
}

void MainWindow::open_file(const fs::path& file, const std::function<void()>& then) {
  when_edits_are_safe([this, file, then] {
    try {
      document_.open(file);
      problems_.clear(ProblemSource::file);
      session_.add_recent(qpath(document_.file()));
      if (then) then();
    } catch (const Error& error) {
      report(ProblemSource::file, error.problem());
    }
  });
}

void MainWindow::open_example(const fs::path& file) {
  when_edits_are_safe([this, file] {
    try {
      document_.open_example(file);
      problems_.clear(ProblemSource::file);
    } catch (const Error& error) {
      report(ProblemSource::file, error.problem());
    }
  });
}

void MainWindow::choose_file() {
  auto* dialog =
      new QFileDialog(this, tr("Open Experiment"), qpath(document_.experiment().folder()), tr("Experiment (*.json)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) { open_file(fspath(file)); });
  dialog->open();
}

// `then` follows a successful save.
void MainWindow::save(const std::function<void()>& then) {
  if (document_.file().empty()) return save_as(then);
  try {
    document_.save();
    problems_.clear(ProblemSource::file);
    if (then) then();
  } catch (const Error& error) {
    report(ProblemSource::file, error.problem());
  }
}

void MainWindow::save_as(const std::function<void()>& then) {
  auto* dialog = new QFileDialog(this, tr("Save Experiment"),
                                 document_.file().empty() ? u"experiment.json"_s : qpath(document_.file()),
                                 tr("Experiment (*.json)"));
  dialog->setObjectName(u"save_as"_s);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(u"json"_s);
  connect(dialog, &QFileDialog::fileSelected, this, [this, then](const QString& file) {
    try {
      document_.save_as(fspath(file));
      problems_.clear(ProblemSource::file);
      session_.add_recent(qpath(document_.file()));
      if (then) then();
    } catch (const Error& error) {
      report(ProblemSource::file, error.problem());
    }
  });
  dialog->open();
}

// The run's experiment as a document without a file.
void MainWindow::clone(const QString& run) {
  try {
    const experiment::Experiment experiment = store::Store(setup_.runs_folder).experiment(ss(run));
    when_edits_are_safe([this, experiment] {
      document_.open_copy(experiment);
      raise_panel(u"experiment"_s);
      panel_->show_form();
    });
  } catch (const Error& error) {
    report(ProblemSource::store, error.problem());
  }
}

}  // namespace mw::ui
