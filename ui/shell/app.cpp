// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/app.h"

#include <signal.h>
#include <unistd.h>

#include <QApplication>
#include <QIcon>
#include <QSocketNotifier>
#include <QTimer>
#include <array>
#include <functional>

#include "core/base/crash_report.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/session/session.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

// Forwards SIGINT, SIGTERM and SIGHUP to the GUI thread; a second signal of the same kind ends the process. At most one
// instance at a time.
class SignalWatch {
 public:
  explicit SignalWatch(const std::function<void()>& on_signal) {
    if (::pipe(pipe_.data()) != 0) return;  // out of descriptors: signals keep their default action
    notifier_ = std::make_unique<QSocketNotifier>(pipe_[0], QSocketNotifier::Read);
    QObject::connect(notifier_.get(), &QSocketNotifier::activated, notifier_.get(), [on_signal] {
      char c = 0;
      if (::read(pipe_[0], &c, 1) == 1) on_signal();
    });
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int saved = errno;
      [[maybe_unused]] const ssize_t n = ::write(pipe_[1], "s", 1);
      errno = saved;
    };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before {};
      if (::sigaction(s, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) ::sigaction(s, &action, nullptr);
    }
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  static inline std::array<int, 2> pipe_{-1, -1};  // never closed, because a handler may still write
  std::unique_ptr<QSocketNotifier> notifier_;
};

// Records how this process ends, for the offer of the next start.
class CrashReport {
 public:
  CrashReport() = default;
  ~CrashReport() { end_crash_report(); }
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;
  void start(MainWindow& window) {
    const std::filesystem::path file = window.session().crash_report_file();
    if (file.empty()) return;
    try {
      start_crash_report(file, MW_VERSION);
    } catch (const Error& error) {
      window.report(ProblemSource::file, error.problem());
    }
  }
};

}  // namespace

int run_window(int& argc, char** argv, const WindowOptions& options) {
  QApplication application(argc, argv);
  QApplication::setApplicationName(u"meshwright"_s);
  QApplication::setApplicationDisplayName(u"Meshwright"_s);
  QApplication::setDesktopFileName(u"meshwright"_s);  // Wayland takes the icon from the desktop file
  CrashReport crash_report;                           // outlives the window
  MainWindow window({options.experiment, options.runs_folder, options.resources, default_session_folder()});
  QApplication::setWindowIcon(QIcon(u":/theme/meshwright.svg"_s));  // resources are loaded with the first theme
  crash_report.start(window);
  window.show();
  QTimer::singleShot(0, &window, [&] { window.begin(options.start); });
  QObject::connect(&application, &QGuiApplication::commitDataRequest, &window, &MainWindow::close_unattended,
                   Qt::DirectConnection);
  const SignalWatch signal_watch([&window] { window.close_unattended(); });
  return QApplication::exec();
}

void export_comparison_file(int& argc, char** argv, const std::vector<compare::ComparedRun>& runs,
                            const std::filesystem::path& file) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  apply(make_theme(Shade::light), application);
  export_comparison(compare::compare(runs), runs, {}, file);
}

}  // namespace mw::ui
