// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/shared_plan_context.h"

#include <mutex>

#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

constexpr int kSettledMs = 200;

// Names, sizes and times of the files of a folder.
std::string state_of(const fs::path& folder) {
  std::string state;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto time = entry.last_write_time(error).time_since_epoch().count();
    const auto size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    state += entry.path().filename().string() + ' ' + std::to_string(time) + ' ' + std::to_string(size) + '\n';
  }
  return state;
}

}  // namespace

struct SharedPlanContext::Kept {
  std::mutex mutex;
  plan::PlanContextPtr context;
};

SharedPlanContext::SharedPlanContext(fs::path shipped_folder, fs::path own_folder, QObject* parent)
    : QObject(parent),
      shipped_(std::move(shipped_folder)),
      own_(std::move(own_folder)),
      kept_(std::make_shared<Kept>()),
      loader_([kept = kept_, shipped = shipped_, own = own_] {
        const std::lock_guard lock(kept->mutex);
        if (!kept->context)
          kept->context = std::make_shared<const plan::PlanContext>(plan::PlanContext::load(shipped, own));
        return kept->context;
      }),
      seen_(state_of(own_)) {
  settled_.setSingleShot(true);
  settled_.setInterval(kSettledMs);
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, &settled_, qOverload<>(&QTimer::start));
  connect(&watcher_, &QFileSystemWatcher::fileChanged, &settled_, qOverload<>(&QTimer::start));
  connect(&settled_, &QTimer::timeout, this, [this] {
    watch();
    if (state_of(own_) != seen_) reload();
  });
  watch();
}

void SharedPlanContext::reload() {
  seen_ = state_of(own_);
  {
    const std::lock_guard lock(kept_->mutex);
    kept_->context.reset();
  }
  watch();
  emit changed();
}

// The folder with its files or, as long as it does not exist, the nearest one that it will appear below. A file that is
// replaced has to be watched anew.
void SharedPlanContext::watch() {
  if (own_.empty()) return;
  std::error_code error;
  QStringList paths;
  if (fs::is_directory(own_, error)) {
    paths << qpath(own_);
    for (const auto& entry : fs::directory_iterator(own_, error)) paths << qpath(entry.path());
  } else {
    fs::path above = own_.parent_path();
    while (above.has_relative_path() && !fs::is_directory(above, error)) above = above.parent_path();
    paths << qpath(above);
  }
  for (const QString& watched : watcher_.files() + watcher_.directories()) paths.removeAll(watched);
  if (!paths.isEmpty()) watcher_.addPaths(paths);
}

}  // namespace mw::ui

#include "moc_shared_plan_context.cpp"
