// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/close_guard.h"

#include "ui/run_views/run_header.h"
#include "ui/theme/text.h"

namespace mw::ui {

CloseGuard::CloseGuard(QMainWindow& window, Workspace& workspace, DocumentActions& documents, PendingQuestion& question,
                       std::vector<WindowPage*> pages)
    : window_(window),
      workspace_(workspace),
      runs_(workspace.runs()),
      documents_(documents),
      question_(question),
      pages_(std::move(pages)) {
  connect(&runs_, &RunController::state_changed, this, &CloseGuard::close_when_done);
  connect(&runs_, &RunController::live_updated, this, &CloseGuard::close_when_done);
  connect(&workspace.document(), &Document::changed, this, [this] { edits_given_up_ = false; });
}

// Work that would end with this window, as text. Remote jobs that have started continue.
QStringList CloseGuard::unfinished_work() const {
  QStringList work;
  if (const RunPtr live = runs_.live(); live && !runs_.continues_without_window())
    work << (live->id.empty()    ? tr("the run that is starting")
             : runs_.is_remote() ? tr("the launch of %1").arg(qs(live->id))
                                 : qs(live->id));
  for (const WindowPage* page : pages_) work << page->unfinished_work();
  return work;
}

bool CloseGuard::has_work() const {
  return runs_.is_busy() || !unfinished_work().isEmpty();
}

void CloseGuard::ask_about(const QStringList& work) {
  if (question_.raise()) return;
  question_.ask(u"unfinished_work"_s, tr("Still running: %1.").arg(QLocale(QLocale::English).createSeparatedList(work)),
                tr("Stop and Close ends it; a training run writes a checkpoint first, from which it can be "
                   "resumed.\nKeep Running minimises this window and closes it when the work is finished."),
                {{u"cancel"_s, tr("Cancel"), QMessageBox::RejectRole, {}},
                 {u"stop_and_close"_s, tr("Stop and Close"), QMessageBox::DestructiveRole,
                  [this] {
                    stop_work();
                    window_.close();
                  }},
                 {u"keep_running"_s, tr("Keep Running"), QMessageBox::AcceptRole, [this] { keep_working(); }}});
}

bool CloseGuard::may_close() {
  const QStringList work = unfinished_work();
  if (closing_ == Closing::stopping && has_work()) return false;
  if (!has_work()) closing_ = Closing::no;
  if (!work.isEmpty() && !unattended_) {
    ask_about(work);
    return false;
  }
  if (!documents_.write_journal() && !unattended_ && !edits_given_up_) {
    documents_.when_edits_are_safe([this] {
      edits_given_up_ = workspace_.document().is_dirty();
      window_.close();
    });
    return false;
  }
  if (!has_work()) return true;
  stop_work();
  return false;
}

// The window stays responsive while a checkpoint is written. Remote jobs are detached.
void CloseGuard::stop_work() {
  closing_ = Closing::stopping;
  if (const RunPtr live = runs_.live()) {
    workspace_.show_kind(live->kind());
    runs_.continues_without_window() ? runs_.detach() : runs_.stop();
  }
  for (WindowPage* page : pages_) page->stop_work();
}

void CloseGuard::keep_working() {
  if (const RunPtr live = runs_.live(); live && live->view.state() == RunState::paused) runs_.resume();
  closing_ = Closing::when_done;
  emit title_changed();
  window_.showMinimized();
  close_when_done();
}

void CloseGuard::close_when_done() {
  if (closing_ == Closing::no) return;
  emit title_changed();
  if (closing_ == Closing::stopping ? !has_work() : unfinished_work().isEmpty()) window_.close();
}

void CloseGuard::window_activated() {
  if (closing_ != Closing::when_done || window_.isMinimized() || !window_.isActiveWindow()) return;
  closing_ = Closing::no;
  emit title_changed();
}

void CloseGuard::close_unattended() {
  unattended_ = true;
  documents_.keep_journal();
  question_.reject();
  window_.close();
}

QString CloseGuard::title_prefix() const {
  if (closing_ != Closing::when_done) return {};
  const RunPtr live = runs_.live();
  return live ? tr("Closes after %1, %2 \u2013 ").arg(qs(live->id), steps_text(live->view))
              : tr("Closes when its tasks are finished \u2013 ");
}

}  // namespace mw::ui

#include "moc_close_guard.cpp"
