// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/drop_target.h"

#include <QDropEvent>
#include <QMainWindow>
#include <QToolButton>
#include <QUrl>

#include "core/views/path_kind.h"
#include "core/views/run_list.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/run_views/run_drag.h"
#include "ui/session/run_controller.h"
#include "ui/shell/document_actions.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/toolbar.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

DropTarget::DropTarget(QMainWindow& window, Workspace& workspace, DocumentActions& documents, PageStack& pages,
                       const Toolbar& toolbar)
    : QObject(&window),
      window_(window),
      workspace_(workspace),
      documents_(documents),
      pages_(pages),
      toolbar_(toolbar) {
  window.setAcceptDrops(true);
  window.installEventFilter(this);
}

bool DropTarget::eventFilter(QObject*, QEvent* event) {
  if (event->type() != QEvent::DragEnter && event->type() != QEvent::DragMove && event->type() != QEvent::Drop)
    return false;
  auto& drag = static_cast<QDropEvent&>(*event);  // the base of all three
  const bool has_runs = drag.mimeData()->hasFormat(run_mime_type()), has_files = drag.mimeData()->hasUrls();
  if (event->type() == QEvent::DragEnter) {
    if (has_runs || (has_files && drag.mimeData()->urls().front().isLocalFile())) drag.acceptProposedAction();
  } else if (event->type() == QEvent::DragMove && has_runs) {
    drag.setAccepted(takes_runs(drag.position().toPoint()));
  } else {
    drag.acceptProposedAction();
    if (event->type() == QEvent::Drop) drop(drag);
  }
  return true;
}

// On the Compare page and on its toolbar button.
bool DropTarget::takes_runs(QPoint at) const {
  const QToolButton& button = toolbar_.page_button(Page::compare);
  return workspace_.page() == Page::compare || button.rect().contains(button.mapFrom(&window_, at));
}

void DropTarget::drop(const QDropEvent& event) {
  if (event.mimeData()->hasFormat(run_mime_type())) {
    if (!takes_runs(event.position().toPoint())) return;
    for (const store::RunId& run : runs_in(*event.mimeData())) pages_.compare.add_run(run);
    return workspace_.show_page(Page::compare);
  }
  // The files of one recipe arrive together.
  std::vector<fs::path> scripts;
  for (const QUrl& url : event.mimeData()->urls())
    if (fs::path path = fspath(url.toLocalFile()); views::classify_path(path).kind == views::PathKind::script)
      scripts.push_back(std::move(path));
    else
      open(path);
  if (!scripts.empty()) documents_.port_recipe(std::move(scripts));
}

void DropTarget::set_path(const char* key, const fs::path& path) {
  workspace_.document().set(key, path.string());
  workspace_.show_setting(key);
}

void DropTarget::open(const fs::path& path) {
  const store::RunId run = path.filename().string();
  std::error_code error;  // where one of the two does not exist
  if (pages_.runs.model().row_of(run) >= 0 && fs::equivalent(path, workspace_.runs().runs_folder() / run, error))
    return workspace_.open_run(run);
  const views::ClassifiedPath found = views::classify_path(path);
  switch (found.kind) {
    case views::PathKind::experiment:
      return documents_.open_file(found.path);
    case views::PathKind::recipe_export:
      return documents_.open_example(found.path);  // saving must not change the export
    case views::PathKind::model:
      return set_path("model.path", found.path);
    case views::PathKind::adapter:
      return set_path("lora.adapter", found.path);
    case views::PathKind::dataset:
      set_path("data.path", found.path);
      return workspace_.show_page(Page::data);
    case views::PathKind::script:
      return documents_.port_recipe({found.path});
    case views::PathKind::result:
      pages_.compare.add_file(found.path);
      return workspace_.show_page(Page::compare);
    case views::PathKind::orbax:
      return workspace_.report(ProblemSource::file,
                               {.id = "ORBAX-CONVERT",
                                .message = "the engine does not read Orbax checkpoints",
                                .file = found.path.string(),
                                .fix = "convert its adapter with `meshwright convert --adapter DIR --out DIR`, "
                                       "or merge it with `meshwright merge`, and open the result"});
    case views::PathKind::other:
      pages_.runs.import_files({path});
      return workspace_.show_page(Page::runs);
  }
}

}  // namespace mw::ui

#include "moc_drop_target.cpp"
