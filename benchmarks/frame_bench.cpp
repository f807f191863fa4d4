// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the window while the engine uses every core. Opens the window, trains an experiment, clicks, and prints
// JSON: time of frames, time from a click to its painted effect, paint times of charts, memory of the process.
//   mw_frame_bench EXPERIMENT.json RUNS_FOLDER [--seconds N] [--set key=value ...]
// A frame lasts from the time its tick is due until everything that the tick requested is painted, so that it includes
// waiting for a core and for other events.
#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "ui/charts/chart.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/document.h"
#include "ui/session/frame_clock.h"
#include "ui/session/run_controller.h"
#include "ui/shell/main_window.h"
#include "ui/shell/page_stack.h"
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
    throw Error("USAGE", "usage: mw_frame_bench EXPERIMENT.json RUNS_FOLDER [--seconds N] [--set key=value]");
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

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double thread_cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Resident, proportional and private memory of the process: MiB.
Json memory() {
  Json sizes = Json::object();
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  double kib = 0;
  double own = 0;
  while (rollup >> word) {
    if (word == "Rss:" && rollup >> kib) sizes["rss_mib"] = kib / 1024;
    if (word == "Pss:" && rollup >> kib) sizes["pss_mib"] = kib / 1024;
    if ((word == "Private_Clean:" || word == "Private_Dirty:") && rollup >> kib) own += kib / 1024;
  }
  sizes["private_mib"] = own;
  return sizes;
}

// Measures from the moment a click is posted by another thread, as the window system does, until the page that it opens
// and its children are painted.
class ClickWatch : public QObject {
 public:
  void expect(QWidget* page) {
    posted_ = Clock::now();
    page_ = page;
  }
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint && watched == page_.load()) {
      page_ = nullptr;
      painting_ = true;
    }
    return false;
  }
  void event_ended() {
    if (std::exchange(painting_, false)) latency.push_back(ms_between(posted_, Clock::now()));
  }
  std::vector<double> latency;  // read after the last click

 private:
  std::atomic<Clock::time_point> posted_;
  std::atomic<QWidget*> page_{nullptr};
  bool painting_ = false;
};

// Times the frames. The tick posts an event of the lowest priority, which is delivered after the update requests of the
// same round of events.
class FrameWatch : public QObject {
 public:
  void tick(Clock::time_point begun, double thread_cpu) {
    constexpr std::chrono::milliseconds kInterval(FrameClock::kFrameMs);
    due_ = begun_ == Clock::time_point() ? begun : std::min(next_due_, begun);
    // Like QTimer: a tick that comes a whole interval late moves the ones after it.
    next_due_ = (due_ + kInterval < begun ? begun : due_) + kInterval;
    begun_ = begun;
    begun_cpu_ = thread_cpu;
    QCoreApplication::postEvent(this, new QEvent(QEvent::User), std::numeric_limits<int>::min());
  }
  bool event(QEvent* event) override {
    if (event->type() != QEvent::User) return QObject::event(event);
    const Clock::time_point end = Clock::now();
    total_.push_back(ms_between(due_, end));
    late_.push_back(ms_between(due_, begun_));
    work_.push_back(ms_between(begun_, end));
    cpu_.push_back(thread_cpu_ms() - begun_cpu_);
    return true;
  }
  Json summary() const {
    return {{"total", spread(total_)},
            {"late", spread(late_)},
            {"work", spread(work_)},
            {"cpu", spread(cpu_)},
            {"over_33ms",
             std::count_if(total_.begin(), total_.end(), [](double ms) { return ms > FrameClock::kFrameMs; })}};
  }

 private:
  std::vector<double> total_, late_, work_, cpu_;  // ms of each frame: from due, until begun, from begun, of the thread
  Clock::time_point due_, next_due_, begun_;
  double begun_cpu_ = 0;  // ms
};

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
    event_begun = Clock::now();
    event_cpu = thread_cpu_ms();
    const bool answer = QApplication::notify(receiver, event);
    const double ms = ms_between(event_begun, Clock::now());
    busy.push_back(ms);
    if (type == QEvent::UpdateRequest) painting.push_back(ms);
    if (ms > FrameClock::kFrameMs)
      slow.push_back({{"receiver", name}, {"event", type}, {"ms", ms}, {"cpu_ms", thread_cpu_ms() - event_cpu}});
    clicks.event_ended();
    --depth_;
    return answer;
  }
  Clock::time_point event_begun;  // of the outermost event
  double event_cpu = 0;           // ms of the thread when it began
  ClickWatch clicks;
  std::vector<double> busy, painting;             // ms of each event, and of each that paints
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

class Bench {
 public:
  Bench(const Options& options, TimedApplication& application)
      : options_(options), application_(application), window_({options.experiment, options.runs, MW_RESOURCES, {}}) {
    window_.resize(1280, 800);
    experiment::Experiment e = window_.document().experiment();
    experiment::apply_sets(e, options.sets);
    window_.document().replace(e, u"benchmark"_s);
    window_.show();
  }

  Json run() {
    application_.busy.reserve(1 << 20);
    Json sizes{{"start", (idle(), memory())}};
    for (int page = kPages; page-- > 0;) window_.show_page(static_cast<Page>(page)), idle();
    sizes["all_pages"] = memory();
    window_.runs().start(window_.document().experiment());
    wait([&] { return window_.runs().shown() && window_.runs().shown()->view.step() >= 1; }, 120);
    const long first = window_.runs().shown()->view.step();
    window_.show_page(Page::train);
    measure(Clicks::none, frames_);
    measure(Clicks::pages, frames_with_clicks_);
    const views::RunView& view = window_.runs().shown()->view;
    const bool training = window_.runs().is_busy();
    const long last = view.step();
    sizes["training"] = memory();
    window_.runs().stop();
    wait([&] { return !window_.runs().is_busy(); }, 60);
    idle();
    sizes["trained"] = memory();
    const std::vector<double>& clicks = application_.clicks.latency;
    const auto& busy = application_.busy;
    const auto long_events =
        std::count_if(busy.begin(), busy.end(), [](double ms) { return ms > FrameClock::kFrameMs; });
    Json charts = Json::object();
    for (const auto& [title, ms] : application_.charts) charts[ss(title)] = spread(ms);
    return {{"seconds", options_.seconds},
            {"steps", last - first},
            {"trained_throughout", training},
            {"frames", frames_.summary()},
            {"frames_with_clicks", frames_with_clicks_.summary()},
            {"event_handling", spread(busy)},
            {"events_over_33ms", long_events},
            {"painting", spread(application_.painting)},
            {"chart_paint", charts},
            {"slow_events", application_.slow},
            {"click_to_paint", spread(clicks)},
            {"clicks_over_50ms", std::count_if(clicks.begin(), clicks.end(), [](double ms) { return ms > 50; })},
            {"memory", sizes}};
  }

 private:
  template <class Done>
  void wait(Done done, double seconds) {
    QElapsedTimer clock;
    clock.start();
    while (!done()) {
      if (static_cast<double>(clock.elapsed()) > seconds * 1e3)
        throw Error("BENCH", "the run did not come so far in time",
                    {.found = window_.runs().shown() ? window_.runs().shown()->view.error() : ""}, Error::Kind::failed);
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 20);
    }
  }

  // Handles events for a second.
  void idle() {
    QEventLoop loop;
    QTimer::singleShot(1000, &loop, &QEventLoop::quit);
    loop.exec();
  }

  // Clicks two page buttons alternately, at intervals that do not align with the frame clock.
  void click_about(std::stop_token stop, QToolButton* train, QToolButton* runs) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(271));
      QToolButton* button = i % 2 == 0 ? runs : train;
      application_.clicks.expect(i % 2 == 0 ? static_cast<QWidget*>(&window_.pages().runs) : &window_.pages().train);
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

  // Half of the time: without clicks on the Train page, and with clicks that switch pages.
  enum class Clicks { none, pages };
  void measure(Clicks clicks, FrameWatch& frames) {
    const auto ticks = QObject::connect(&window_.clock(), &FrameClock::drain, &window_, [this, &frames] {
      frames.tick(application_.event_begun, application_.event_cpu);
    });
    application_.measuring = true;
    window_.pages().train.installEventFilter(&application_.clicks);
    window_.pages().runs.installEventFilter(&application_.clicks);
    std::jthread clicker;
    if (clicks == Clicks::pages)
      clicker = std::jthread([this, train = button(u"Train page"_s), runs = button(u"Runs page"_s)](
                                 std::stop_token stop) { click_about(std::move(stop), train, runs); });
    QEventLoop loop;
    QTimer::singleShot(static_cast<int>(options_.seconds * 500), &loop, &QEventLoop::quit);
    loop.exec();
    application_.measuring = false;
    clicker = {};
    QObject::disconnect(ticks);
  }

  Options options_;
  TimedApplication& application_;
  MainWindow window_;
  FrameWatch frames_, frames_with_clicks_;
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
