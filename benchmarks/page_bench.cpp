// SPDX-License-Identifier: GPL-3.0-or-later
// Measures what a user waits for in the window: its first frame, the click on a page until the page is painted, and on
// the Data page the first row, its tokens and the end of reading. Prints JSON: milliseconds since the start or the
// click, and the longest time in which the window did not respond.
//   mw_page_bench EXPERIMENT.json RUNS_FOLDER runs|data [--set key=value ...]
#include <QApplication>
#include <QElapsedTimer>
#include <QTableView>
#include <QTimer>
#include <cstdio>
#include <functional>
#include <string_view>

#include "core/base/error.h"
#include "core/data/dataset/row_cache.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/session/document.h"
#include "ui/shell/main_window.h"
#include "ui/shell/page_stack.h"

namespace mw::ui {
namespace {

constexpr double kPatienceMs = 600e3;

// Times every event from delivery to return, and notes when a widget is painted.
class TimedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (event->type() == QEvent::Paint && receiver == awaited_ && (!is_shown_ || is_shown_())) awaited_ = nullptr;
    if (depth_ > 0) return QApplication::notify(receiver, event);
    ++depth_;
    QElapsedTimer clock;
    clock.start();
    const bool answer = QApplication::notify(receiver, event);
    longest_ms = std::max(longest_ms, static_cast<double>(clock.nsecsElapsed()) * 1e-6);
    --depth_;
    return answer;
  }
  void await(const QObject& painted, std::function<bool()> shown = {}) {
    is_shown_ = std::move(shown);
    awaited_ = &painted;
  }
  bool is_painted() const { return !awaited_; }
  double longest_ms = 0;

 private:
  const QObject* awaited_ = nullptr;
  std::function<bool()> is_shown_;  // empty: whatever it paints
  int depth_ = 0;
};

double wait_until(const QElapsedTimer& clock, const std::function<bool()>& is_done) {
  QTimer look_again;  // processEvents() waits only without a limit of time
  look_again.start(2);
  while (!is_done()) {
    if (static_cast<double>(clock.elapsed()) > kPatienceMs)
      throw Error("BENCH", "the page did not come so far in time", {}, Error::Kind::failed);
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  }
  return static_cast<double>(clock.nsecsElapsed()) * 1e-6;
}

void idle() {
  QEventLoop loop;
  QTimer::singleShot(1000, &loop, &QEventLoop::quit);
  loop.exec();
}

Json click(MainWindow& window, TimedApplication& application, Page page, const QWidget& widget) {
  application.longest_ms = 0;
  application.await(widget);
  QElapsedTimer clock;
  clock.start();
  window.show_page(page);
  const double called = static_cast<double>(clock.nsecsElapsed()) * 1e-6;
  return {{"handled_ms", called}, {"painted_ms", wait_until(clock, [&] { return application.is_painted(); })}};
}

Json look_at_data(MainWindow& window, TimedApplication& application) {
  DataPage& page = window.pages().data;
  QElapsedTimer clock;
  clock.start();
  Json out{{"click", click(window, application, Page::data, page)}};
  application.await(*page.table().viewport(), [&] { return page.model().rowCount() > 0; });
  out["first_row_ms"] = wait_until(clock, [&] { return application.is_painted(); });
  out["first_tokens_ms"] = wait_until(clock, [&] { return !page.tokens().detail().tokens.empty(); });
  out["all_rows_ms"] = wait_until(clock, [&] { return page.reader().state() != DataReader::State::reading; });
  out["rows"] = page.model().rowCount();
  out["longest_event_ms"] = application.longest_ms;
  return out;
}

Json run(TimedApplication& application, const std::vector<std::string>& arguments) {
  QElapsedTimer clock;
  clock.start();
  const std::filesystem::path runs_folder = arguments[1];
  data::set_row_cache({.folder = runs_folder / data::kRowCacheFolder});
  MainWindow window({arguments[0], runs_folder, MW_RESOURCES, {}});
  window.resize(1280, 800);
  std::vector<std::string> sets;
  for (size_t i = 3; i + 1 < arguments.size(); i += 2) sets.push_back(arguments[i + 1]);
  experiment::Experiment e = window.document().experiment();
  experiment::apply_sets(e, sets);
  window.document().replace(e, QStringLiteral("benchmark"));
  application.await(window);
  window.show();
  Json out{{"first_frame_ms", wait_until(clock, [&] { return application.is_painted(); })}};
  window.show_page(Page::train);
  idle();
  if (arguments[2] == "data") {
    out["data"] = look_at_data(window, application);
    return out;
  }
  for (const char* name : {"first_click", "second_click"}) {
    out[name] = click(window, application, Page::runs, window.pages().runs);
    window.show_page(Page::train);
    idle();
  }
  out["rows"] = window.pages().runs.model().rowCount();
  return out;
}

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  mw::ui::TimedApplication application(argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool is_usable = arguments.size() >= 3 && (arguments[2] == "runs" || arguments[2] == "data");
  if (!is_usable) {
    std::fprintf(stderr, "usage: mw_page_bench EXPERIMENT.json RUNS_FOLDER runs|data [--set key=value ...]\n");
    return 2;
  }
  try {
    std::printf("%s\n", mw::ui::run(application, arguments).dump(2).c_str());
    return 0;
  } catch (const mw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
