// SPDX-License-Identifier: GPL-3.0-or-later
// Opens what is dropped on the window. GUI thread.
#pragma once
#include <QObject>
#include <filesystem>

class QDropEvent;
class QMainWindow;

namespace mw::ui {

class DocumentActions;
class PageStack;
class Toolbar;
class Workspace;

class DropTarget : public QObject {
  Q_OBJECT
 public:
  DropTarget(QMainWindow& window, Workspace& workspace, DocumentActions& documents, PageStack& pages,
             const Toolbar& toolbar);
  // Opens an experiment, an export or a run of the store, sets the folder of a model, an adapter or a data file, ports
  // a script, compares results, and imports anything else.
  void open(const std::filesystem::path& path);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool takes_runs(QPoint at) const;  // whether a drop at this position adds runs to the comparison
  void drop(const QDropEvent& event);
  void set_path(const char* key, const std::filesystem::path& path);
  QMainWindow& window_;
  Workspace& workspace_;
  DocumentActions& documents_;
  PageStack& pages_;
  const Toolbar& toolbar_;
};

}  // namespace mw::ui
