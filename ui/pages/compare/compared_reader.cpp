// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compared_reader.h"

#include "core/compare/audited_training.h"
#include "ui/session/store_reader.h"

namespace mw::ui {

void ComparedReader::read_run(const store::RunId& run) {
  start(with_store(folders_.runs,
                   [load = context_, run](store::Store& store, const ReportProgress&, const std::stop_token&) {
                     std::vector<compare::ComparedRun> out;
                     out.push_back(compare::compared(store, run));
                     compare::add_audit(out.back(), *load());
                     return out;
                   }));
}

void ComparedReader::read_file(const std::filesystem::path& file) {
  start([load = context_, file](const ReportProgress&, const std::stop_token&) {
    return compare::compared_files(file, *load());
  });
}

void ComparedReader::start(Task::Work work) {
  Task& task = *tasks_.emplace_back(std::make_unique<Task>());
  connect(&task, &BackgroundWork::ended, this, &ComparedReader::deliver);
  task.start(std::move(work));
}

void ComparedReader::deliver() {
  while (!tasks_.empty() && !tasks_.front()->is_busy()) {
    Task* task = tasks_.front().release();
    tasks_.pop_front();
    task->deleteLater();  // may be emitting ended()
    if (task->result())
      emit read(*task->result());
    else if (task->problem())
      emit problem(*task->problem());
  }
  emit settled();
}

}  // namespace mw::ui

#include "moc_compared_reader.cpp"
