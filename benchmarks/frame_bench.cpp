// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the responsiveness of the window while the engine uses every core. Opens the window, trains an experiment,
// clicks, and prints JSON: frames more than 33 ms late, time from a click to its painted effect, paint times of charts.
//   mw_frame_bench EXPERIMENT.json RUNS_FOLDER [--seconds N] [--set key=value ...]
#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "ui/charts/chart.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

struct Options {
  std::filesystem::path experiment, runs;
  std::vector<std::string> sets;
  double seconds = 20;
};

Options read_options(int argc, char** argv) {
  Options o;
  std::vector<std::string> plain;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--set" && i + 1 < argc)
      o.sets.emplace_back(argv[++i]);
    else if (a == "--seconds" && i + 1 < argc)
      o.seconds = std::atof(argv[++i]);
    else
      plain.push_back(a);
  }
  if (plain.size() != 2)
    throw Error({.id = "USAGE",
                 .message = "usage: mw_frame_bench EXPERIMENT.json RUNS_FOLDER [--seconds N] [--set key=value]"});
  o.experiment = plain[0];
  o.runs = plain[1];
  return o;
}

double percentile(std::vector<double> v, double share) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(share * static_cast<double>(v.size())))];
}

Json spread(const std::vector<double>& ms) {
  return {{"count", ms.size()},
          {"median_ms", percentile(ms, 0.5)},
          {"p99_ms", percentile(ms, 0.99)},
          {"max_ms", percentile(ms, 1.0)}};
}

// Times every event from delivery to return, during which the window does not respond.
class TimedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (!measuring) return QApplication::notify(receiver, event);
    if (event->type() == QEvent::Paint)  // delivered within the event that requested it
      if (const auto* chart = qobject_cast<Chart*>(receiver)) return time_chart(*chart, receiver, event);
    if (depth_ > 0) return QApplication::notify(receiver, event);
    ++depth_;
    // Read before delivery: the receiver may be deleted by it.
    const std::string name = receiver->metaObject()->className();
    const int type = event->type();
    QElapsedTimer clock;
    clock.start();
    const bool answer = QApplication::notify(receiver, event);
    const double ms = static_cast<double>(clock.nsecsElapsed()) * 1e-6;
    busy.push_back(ms);
    if (ms > FrameClock::kFrameMs) slow.push_back({{"receiver", name}, {"event", type}, {"ms", ms}});
    --depth_;
    return answer;
  }
  std::vector<double> busy;
  std::map<QString, std::vector<double>> charts;  // by title: ms of each paint
  Json slow = Json::array();
  bool measuring = false;

 private:
  bool time_chart(const Chart& chart, QObject* receiver, QEvent* event) {
    QElapsedTimer clock;
    clock.start();
    const bool answer = QApplication::notify(receiver, event);
    charts[chart.options().title].push_back(static_cast<double>(clock.nsecsElapsed()) * 1e-6);
    return answer;
  }
  int depth_ = 0;
};

// Measures from the moment a click is posted by another thread, as the window system does, until the page that it opens
// is painted.
class ClickWatch : public QObject {
 public:
  void expect(QWidget* page) {
    posted_ns_ = now();
    page_ = page;
  }
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint && watched == page_.load()) {
      page_ = nullptr;
      latency.push_back(static_cast<double>(now() - posted_ns_) * 1e-6);
    }
    return false;
  }
  std::vector<double> latency;  // read after the last click

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  std::atomic<std::int64_t> posted_ns_{0};
  std::atomic<QWidget*> page_{nullptr};
};

class Bench {
 public:
  Bench(const Options& options, TimedApplication& application)
      : options_(options), application_(application), window_({options.experiment, options.runs, {}, {}}) {
    window_.resize(1280, 800);
    experiment::Experiment e = window_.document().experiment();
    experiment::apply_sets(e, options.sets);
    window_.document().replace(e, u"benchmark"_s);
    window_.show();
  }

  Json run() {
    application_.busy.reserve(1 << 20);
    window_.runs().start(window_.document().experiment());
    wait([&] { return window_.runs().shown() && window_.runs().shown()->view.step() >= 1; }, 120);
    const long first = window_.runs().shown()->view.step();
    measure();
    const views::RunView& view = window_.runs().shown()->view;
    const bool training = window_.runs().is_busy();
    const long last = view.step();
    window_.runs().stop();
    wait([&] { return !window_.runs().is_busy(); }, 60);
    const auto over =
        std::count_if(frames_.begin(), frames_.end(), [](double ms) { return ms > 2 * FrameClock::kFrameMs; });
    const auto& busy = application_.busy;
    const auto long_events =
        std::count_if(busy.begin(), busy.end(), [](double ms) { return ms > FrameClock::kFrameMs; });
    Json charts = Json::object();
    for (const auto& [title, ms] : application_.charts) charts[ss(title)] = spread(ms);
    return {{"seconds", options_.seconds},
            {"steps", last - first},
            {"trained_throughout", training},
            {"frame_interval", spread(frames_)},
            {"frames_late", over},
            {"event_handling", spread(busy)},
            {"events_over_33ms", long_events},
            {"chart_paint", charts},
            {"slow_events", application_.slow},
            {"click_to_paint", spread(clicks_.latency)},
            {"clicks_over_50ms",
             std::count_if(clicks_.latency.begin(), clicks_.latency.end(), [](double ms) { return ms > 50; })}};
  }

 private:
  template <class Done>
  void wait(Done done, double seconds) {
    QElapsedTimer clock;
    clock.start();
    while (!done()) {
      if (static_cast<double>(clock.elapsed()) > seconds * 1e3)
        throw Error({.id = "BENCH",
                     .message = "the run did not come so far in time",
                     .found = window_.runs().shown() ? window_.runs().shown()->view.error() : ""},
                    Error::Kind::failed);
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 20);
    }
  }

  // Clicks two page buttons alternately, at intervals that do not align with the frame clock.
  void click_about(std::stop_token stop, QToolButton* train, QToolButton* runs) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(271));
      QToolButton* button = i % 2 == 0 ? runs : train;
      clicks_.expect(i % 2 == 0 ? static_cast<QWidget*>(&window_.runs_page()) : &window_.train_page());
      const QPointF at(12, 12);
      for (const auto type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease})
        QCoreApplication::postEvent(
            button, new QMouseEvent(type, at, at, Qt::LeftButton,
                                    type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier));
    }
  }
  QToolButton* button(const QString& name) {
    for (QToolButton* b : window_.findChildren<QToolButton*>())
      if (b->accessibleName() == name) return b;
    return nullptr;
  }

  void measure() {
    QElapsedTimer tick;
    const auto ticks = QObject::connect(&window_.clock(), &FrameClock::drain, &window_, [&] {
      if (tick.isValid()) frames_.push_back(static_cast<double>(tick.nsecsElapsed()) * 1e-6);
      tick.start();
    });
    application_.measuring = true;
    window_.train_page().installEventFilter(&clicks_);
    window_.runs_page().installEventFilter(&clicks_);
    std::jthread clicker([this, train = button(u"Train page"_s), runs = button(u"Runs page"_s)](std::stop_token stop) {
      click_about(std::move(stop), train, runs);
    });
    QEventLoop loop;
    QTimer::singleShot(static_cast<int>(options_.seconds * 1e3), &loop, &QEventLoop::quit);
    loop.exec();
    application_.measuring = false;
    clicker = {};
    QObject::disconnect(ticks);
  }

  Options options_;
  TimedApplication& application_;
  MainWindow window_;
  ClickWatch clicks_;
  std::vector<double> frames_;
};

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM") && !qEnvironmentVariableIsSet("DISPLAY"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  mw::ui::TimedApplication application(argc, argv);
  try {
    std::printf("%s\n", mw::ui::Bench(mw::ui::read_options(argc, argv), application).run().dump(2).c_str());
    return 0;
  } catch (const mw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == mw::Error::Kind::bad_input ? 2 : 1;
  }
}
