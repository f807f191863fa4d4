// SPDX-License-Identifier: GPL-3.0-or-later
// Does the window stay smooth while the engine has every core? Opens it, trains a real experiment, clicks about, and
// prints JSON: frames over 33 ms late, time from a posted click to its painted effect.
//   mw_frame_bench EXPERIMENT.json RUNS_FOLDER [--seconds N] [--set key=value ...]
#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <cstdio>

#include "core/base/error.h"
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

// Times every event from its delivery to its return: what the window is busy with without answering.
class TimedApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_ > 0 || !measuring) return QApplication::notify(receiver, event);
    ++depth_;
    QElapsedTimer clock;
    clock.start();
    const bool answer = QApplication::notify(receiver, event);
    busy.push_back(static_cast<double>(clock.nsecsElapsed()) * 1e-6);
    --depth_;
    return answer;
  }
  std::vector<double> busy;
  bool measuring = false;

 private:
  int depth_ = 0;
};

// Notes when the watched widget paints.
class PaintWatch : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Paint && waiting) {
      waiting = false;
      latency.push_back(static_cast<double>(since.nsecsElapsed()) * 1e-6);
    }
    return false;
  }
  void clicked() {
    waiting = true;
    since.start();
  }
  bool waiting = false;
  QElapsedTimer since;
  std::vector<double> latency;
};

class Bench {
 public:
  Bench(const Options& options, TimedApplication& application)
      : options_(options), application_(application), window_({options.experiment, options.runs, {}, {}}) {
    window_.resize(1280, 800);
    runs::Experiment e = window_.document().experiment();
    runs::apply_sets(e, options.sets);
    window_.document().replace(e, u"benchmark"_s);
    window_.show();
  }

  Json run() {
    application_.busy.reserve(1 << 20);
    window_.runs().start(window_.document().experiment());
    wait([&] { return window_.runs().shown() && window_.runs().shown()->view.step() >= 1; }, 120);
    const long first = window_.runs().shown()->view.step();
    measure();
    const runs::RunView& view = window_.runs().shown()->view;
    const bool training = window_.runs().busy();
    const long last = view.step();
    window_.runs().stop();
    wait([&] { return !window_.runs().busy(); }, 60);
    const auto over =
        std::count_if(frames_.begin(), frames_.end(), [](double ms) { return ms > 2 * FrameClock::kFrameMs; });
    const auto& busy = application_.busy;
    const auto long_events =
        std::count_if(busy.begin(), busy.end(), [](double ms) { return ms > FrameClock::kFrameMs; });
    return {{"seconds", options_.seconds},
            {"steps", last - first},
            {"trained_throughout", training},
            {"frame_interval", spread(frames_)},
            {"frames_late", over},
            {"event_handling", spread(busy)},
            {"events_over_33ms", long_events},
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

  // A page button is pressed and released as a mouse would; its repaint is the answer.
  void click() {
    static constexpr const char16_t* kNames[]{u"Runs page", u"Train page"};
    const QString name = QString::fromUtf16(kNames[next_++ % 2]);
    for (QToolButton* b : window_.findChildren<QToolButton*>(u"page"_s)) {
      if (b->accessibleName() != name) continue;
      b->removeEventFilter(&clicks_);
      b->installEventFilter(&clicks_);
      clicks_.clicked();
      const QPointF at = QRectF(b->rect()).center(), global = b->mapToGlobal(at.toPoint());
      QCoreApplication::postEvent(
          b, new QMouseEvent(QEvent::MouseButtonPress, at, global, Qt::LeftButton, Qt::LeftButton, Qt::NoModifier));
      QCoreApplication::postEvent(
          b, new QMouseEvent(QEvent::MouseButtonRelease, at, global, Qt::LeftButton, Qt::NoButton, Qt::NoModifier));
    }
  }

  void measure() {
    QElapsedTimer tick;
    const auto ticks = QObject::connect(&window_.clock(), &FrameClock::drain, &window_, [&] {
      if (tick.isValid()) frames_.push_back(static_cast<double>(tick.nsecsElapsed()) * 1e-6);
      tick.start();
    });
    application_.measuring = true;
    QTimer clicker;
    clicker.setInterval(271);  // in no step with the frame clock
    QObject::connect(&clicker, &QTimer::timeout, &window_, [this] { click(); });
    clicker.start();
    QEventLoop loop;
    QTimer::singleShot(static_cast<int>(options_.seconds * 1e3), &loop, &QEventLoop::quit);
    loop.exec();
    application_.measuring = false;
    QObject::disconnect(ticks);
  }

  Options options_;
  TimedApplication& application_;
  MainWindow window_;
  PaintWatch clicks_;
  std::vector<double> frames_;
  int next_ = 0;
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
