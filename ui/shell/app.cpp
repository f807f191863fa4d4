// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/app.h"

#include <QAction>
#include <QApplication>
#include <QTimer>

#include "ui/compare/comparison_export.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

int run_window(int& argc, char** argv, const WindowOptions& options) {
  QApplication application(argc, argv);
  QApplication::setApplicationName(u"meshwright"_s);
  QApplication::setApplicationDisplayName(u"Meshwright"_s);
  MainWindow window({options.experiment, options.runs_folder, options.resources, default_session_folder()});
  window.show();
  if (options.start == Start::run)
    QTimer::singleShot(0, &window, [&] {
      window.show_page(Page::train);
      window.actions()[u"run.start"_s]->trigger();
    });
  return QApplication::exec();
}

void export_comparison_file(int& argc, char** argv, const std::vector<runs::Compared>& runs,
                            const std::filesystem::path& file) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  apply(make_theme(Shade::light), application);
  export_comparison(runs::compare(runs), runs, {}, file);
}

}  // namespace mw::ui
