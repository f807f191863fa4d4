// SPDX-License-Identifier: GPL-3.0-or-later
// The inputs of all plans of the window besides the document: chips, prices and calibration. Read at the first plan,
// and again after a file of the user's folder has changed. GUI thread, except that loader() is called on any.
#pragma once
#include <QFileSystemWatcher>
#include <QObject>
#include <QTimer>
#include <filesystem>
#include <memory>

#include "core/plan/calibration/plan_context.h"

namespace mw::ui {

class SharedPlanContext : public QObject {
  Q_OBJECT
 public:
  // `own_folder`: of the user; empty: none.
  SharedPlanContext(std::filesystem::path shipped_folder, std::filesystem::path own_folder, QObject* parent = nullptr);
  const std::filesystem::path& shipped_folder() const { return shipped_; }
  const std::filesystem::path& own_folder() const { return own_; }
  plan::PlanContextPtr context() const { return loader_(); }   // throws the errors of PlanContext::load()
  const plan::LoadContext& loader() const { return loader_; }  // may outlive this object
  void reload();                                               // at the next call; emits changed()

 signals:
  void changed();  // what was planned is outdated

 private:
  struct Kept;
  void watch();

  std::filesystem::path shipped_, own_;
  std::shared_ptr<Kept> kept_;
  plan::LoadContext loader_;
  QFileSystemWatcher watcher_;
  QTimer settled_;  // a program may write a file in several steps
  std::string seen_;
};

}  // namespace mw::ui
