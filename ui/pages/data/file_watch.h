// SPDX-License-Identifier: GPL-3.0-or-later
// Reports when a file was written, replaced, deleted or created. Combines bursts into one change. GUI thread.
#pragma once
#include <QFileSystemWatcher>
#include <QTimer>
#include <filesystem>

#include "core/views/data_view.h"

namespace mw::ui {

class FileWatch : public QObject {
  Q_OBJECT
 public:
  explicit FileWatch(QObject* parent = nullptr);
  void watch(const std::filesystem::path& file);  // replaces the watched file; empty: none

 signals:
  void changed();

 private:
  void check();
  void follow();
  QFileSystemWatcher watcher_;
  QTimer due_;
  std::filesystem::path file_;
  planning::FileStamp seen_;
};

}  // namespace mw::ui
