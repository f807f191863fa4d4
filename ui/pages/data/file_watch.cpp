// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/file_watch.h"

#include "core/base/files.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {
constexpr int kBurstMs = 250;  // files are written in pieces
}

FileWatch::FileWatch(QObject* parent) : QObject(parent) {
  due_.setSingleShot(true);
  due_.setInterval(kBurstMs);
  connect(&due_, &QTimer::timeout, this, &FileWatch::check);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this] { due_.start(); });
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, [this] { due_.start(); });
}

void FileWatch::watch(const std::filesystem::path& file) {
  if (file == file_) return;
  file_ = file;
  if (const QStringList old = watcher_.files() + watcher_.directories(); !old.isEmpty()) watcher_.removePaths(old);
  due_.stop();
  seen_ = file_.empty() ? planning::FileStamp() : planning::stamp_of(file_);
  follow();
}

// Watches the folder, too: a file that is replaced or created is not reported otherwise.
void FileWatch::follow() {
  if (file_.empty()) return;
  if (const QString path = qpath(file_); path_exists(file_) && !watcher_.files().contains(path)) watcher_.addPath(path);
  if (const auto folder = file_.parent_path(); path_exists(folder) && !watcher_.directories().contains(qpath(folder)))
    watcher_.addPath(qpath(folder));
}

void FileWatch::check() {
  follow();
  const planning::FileStamp now = planning::stamp_of(file_);
  if (now == seen_) return;
  seen_ = now;
  emit changed();
}

}  // namespace mw::ui
