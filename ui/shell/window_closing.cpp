// SPDX-License-Identifier: GPL-3.0-or-later
// Closing the window: what would be stopped or lost by it is asked about first.
#include <QCloseEvent>

#include "ui/shell/main_window.h"
#include "ui/theme/question.h"
#include "ui/theme/text.h"

namespace mw::ui {

void MainWindow::wire_closing() {
  connect(&runs_, &RunController::state_changed, this, &MainWindow::close_when_done);
  connect(&runs_, &RunController::live_grew, this, &MainWindow::close_when_done);
  for (const BackgroundWork* task : {&proof_window_->task(), &merge_->task(), &compare_->replay_dialog().task()})
    connect(task, &BackgroundWork::ended, this, &MainWindow::close_when_done);
}

// In words, what would not go on without this window. A job that was started elsewhere goes on.
QStringList MainWindow::unfinished_work() const {
  QStringList work;
  if (const RunPtr live = runs_.live(); live && !runs_.goes_on_alone())
    work << (live->id.empty()    ? tr("the run that is starting")
             : runs_.elsewhere() ? tr("the launch of %1").arg(qs(live->id))
                                 : qs(live->id));
  if (proof_window_->task().busy()) work << tr("the proof of the mesh");
  if (merge_->task().busy()) work << tr("the merge");
  if (compare_->replay_dialog().task().busy()) work << tr("the replay");
  return work;
}

bool MainWindow::has_work() const {
  return runs_.busy() || !unfinished_work().isEmpty();
}

bool MainWindow::is_asking() const {
  return question_ && question_->isVisible();
}

void MainWindow::ask_about_work(const QStringList& work) {
  if (is_asking()) return question_->raise();
  question_ =
      ask_question(*this, u"unfinished_work"_s, tr("Still running: %1.").arg(work.join(tr(" and "))),
                   tr("Stop and Close ends it; a run writes a checkpoint first, from which it can be resumed.\n"
                      "Keep Running minimises this window, and closes it when the work has ended."),
                   {{u"cancel"_s, tr("Cancel"), QMessageBox::RejectRole, {}},
                    {u"stop_and_close"_s, tr("Stop and Close"), QMessageBox::DestructiveRole,
                     [this] {
                       stop_work();
                       close();
                     }},
                    {u"keep_running"_s, tr("Keep Running"), QMessageBox::AcceptRole, [this] { keep_working(); }}});
}

void MainWindow::closeEvent(QCloseEvent* event) {
  remember();
  if (closing_ != Closing::stopping) session_.set_value(u"page"_s, pages_->currentIndex());
  event->ignore();
  const QStringList work = unfinished_work();
  if (closing_ == Closing::stopping && has_work()) return;
  if (!has_work()) closing_ = Closing::no;
  if (!work.isEmpty() && !unattended_) return ask_about_work(work);
  if (!edits_are_kept() && !unattended_ && !edits_given_up_)
    return when_edits_are_safe([this] {
      edits_given_up_ = document_.dirty();
      close();
    });
  if (has_work()) return stop_work();
  event->accept();
  QMainWindow::closeEvent(event);
}

// False: they would be lost with the window.
bool MainWindow::edits_are_kept() {
  try {
    session_.write_journal(document_);
    return session_.has_journal() || !document_.dirty();
  } catch (const Error& error) {
    report(ProblemSource::file, error.problem());
    return !document_.dirty();
  }
}

// With the window still answering: a checkpoint is written first. A job elsewhere is left alone.
void MainWindow::stop_work() {
  closing_ = Closing::stopping;
  if (const RunPtr live = runs_.live()) {
    show_kind(live->kind());
    runs_.goes_on_alone() ? runs_.detach() : runs_.stop();
  }
  proof_window_->task().cancel();
  merge_->task().cancel();
  compare_->replay_dialog().task().cancel();
}

void MainWindow::keep_working() {
  if (const RunPtr live = runs_.live(); live && live->view.state() == RunState::paused) runs_.resume();
  closing_ = Closing::when_done;
  update_title();
  showMinimized();
  close_when_done();
}

void MainWindow::close_when_done() {
  if (closing_ == Closing::no) return;
  update_title();
  if (closing_ == Closing::stopping ? !has_work() : unfinished_work().isEmpty()) close();
}

// Brought back to the screen and used, it is a window like any other again.
void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  const bool shown = event->type() == QEvent::WindowStateChange || event->type() == QEvent::ActivationChange;
  if (!shown || closing_ != Closing::when_done || isMinimized() || !isActiveWindow()) return;
  closing_ = Closing::no;
  update_title();
}

void MainWindow::close_unattended() {
  unattended_ = true;
  if (is_asking()) question_->reject();
  close();
}

}  // namespace mw::ui
