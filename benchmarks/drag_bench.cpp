// SPDX-License-Identifier: GPL-3.0-or-later
// Measures dragging tp over a mesh of 256 chips, or of 256 per slice, on the Design page while every preview is priced
// again: the milliseconds that the window's thread works between two waits, for each such frame that paints the canvas.
// Prints JSON.
//   mw_drag_bench RESOURCES [--moves N] [--size WxH] [--slices N] [--pinned]
#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QTimer>
#include <algorithm>
#include <cstdio>

#include "core/base/json.h"
#include "ui/pages/design/axis_edit.h"
#include "ui/pages/design/design_page.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/shell/main_window.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr double kFrame = 16;  // ms

struct Options {
  std::filesystem::path resources;
  int moves = 400, slices = 1;
  QSize size{1280, 800};
  Meshes meshes = Meshes::one;
};

Options read_options(const QStringList& args) {
  Options o;
  for (int i = 1; i < args.size(); ++i) {
    const auto value = [&] { return i + 1 < args.size() ? args[++i] : QString(); };
    if (args[i] == u"--moves"_s)
      o.moves = value().toInt();
    else if (args[i] == u"--size"_s) {
      const QStringList parts = value().split(u'x');
      if (parts.size() == 2) o.size = {parts[0].toInt(), parts[1].toInt()};
    } else if (args[i] == u"--slices"_s)
      o.slices = std::max(1, value().toInt());
    else if (args[i] == u"--pinned"_s)
      o.meshes = Meshes::both;
    else
      o.resources = fspath(args[i]);
  }
  return o;
}

Json spread(std::vector<double> ms) {
  if (ms.empty()) return {{"count", 0}};
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) { return ms[static_cast<size_t>(share * static_cast<double>(ms.size() - 1))]; };
  return {
      {"count", ms.size()},    {"median_ms", at(0.5)},
      {"p95_ms", at(0.95)},    {"p99_ms", at(0.99)},
      {"worst_ms", ms.back()}, {"over_16ms", std::count_if(ms.begin(), ms.end(), [](double m) { return m > kFrame; })}};
}

// Sums the time that the thread spends on events until it waits again: the work of one frame.
class Frames : public QApplication {
 public:
  Frames(int& argc, char** argv) : QApplication(argc, argv) {
    connect(QAbstractEventDispatcher::instance(), &QAbstractEventDispatcher::aboutToBlock, this, [this] {
      if (measuring && busy_ns_ > 0) (painted_ ? painting : others).push_back(static_cast<double>(busy_ns_) * 1e-6);
      busy_ns_ = 0;
      painted_ = false;
    });
  }
  bool notify(QObject* receiver, QEvent* event) override {
    if (event->type() == QEvent::Paint && receiver == canvas) painted_ = true;
    if (!measuring || depth_ > 0) return QApplication::notify(receiver, event);
    ++depth_;
    QElapsedTimer clock;
    clock.start();
    const bool answer = QApplication::notify(receiver, event);
    busy_ns_ += clock.nsecsElapsed();
    --depth_;
    return answer;
  }
  QObject* canvas = nullptr;
  bool measuring = false;
  std::vector<double> painting, others;

 private:
  qint64 busy_ns_ = 0;
  int depth_ = 0;
  bool painted_ = false;
};

class Bench {
 public:
  Bench(const Options& options, Frames& frames)
      : options_(options),
        frames_(frames),
        window_({{}, std::filesystem::temp_directory_path() / "mw-drag-bench", options.resources, {}}) {
    experiment::Experiment e = experiment::Experiment::load(options.resources / "examples" / "paper-train-v5p-8.json");
    const int slices = options.slices;
    e.set_value("target.id", slices > 1 ? std::to_string(slices) + "xv5e-256" : "v5e-256");
    e.set_value("mesh", slices > 1 ? Json{{"data", slices}, {"fsdp", 64}, {"tp", 4}} : Json{{"fsdp", 64}, {"tp", 4}});
    e.set_value("train.batch", 64 * slices);
    if (slices > 1) e.set_value("train.stack", "maxtext");  // Tunix has no axis data
    window_.document().replace(e, u"benchmark"_s);
    window_.resize(options.size);
    window_.show();
    window_.show_page(Page::design);
  }

  Json run() {
    settle();
    const int chips = 256 * options_.slices;
    if (!window_.predictor().design() || window_.predictor().design()->request().mesh.devices() != chips)
      throw Error("BENCH", std::to_string(chips) + " chips could not be designed", {}, Error::Kind::failed);
    if (options_.meshes == Meshes::both) window_.pages().design.pin();
    settle();
    frames_.canvas = &canvas();
    const auto prices = QObject::connect(&window_.predictor(), &Predictor::changed, &window_, [&] {
      if (!window_.predictor().is_stale()) ++answers_;
    });
    frames_.measuring = true;
    drag();
    frames_.measuring = false;
    QObject::disconnect(prices);
    return {{"chips", chips},
            {"moves", options_.moves},
            {"window", {options_.size.width(), options_.size.height()}},
            {"meshes", options_.meshes == Meshes::both ? 2 : 1},
            {"platform", ss(QGuiApplication::platformName())},
            {"previews", previews_},
            {"priced", answers_},
            {"painting_frames", spread(frames_.painting)},
            {"other_frames", spread(frames_.others)}};
  }

 private:
  MeshCanvas& canvas() { return window_.pages().design.canvas(); }
  void settle() {
    for (int quiet = 0; quiet < 15;) {
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 20);
      quiet = window_.predictor().is_settled() ? quiet + 1 : 0;
    }
  }
  void send(QEvent::Type type, QPoint at, Qt::MouseButton button) {
    AxisChip* chip = canvas().chip(u"tp"_s);
    const QPointF local = chip->mapFrom(&canvas(), at);
    QMouseEvent event(type, local, chip->mapToGlobal(local), button, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(chip, &event);
  }

  // Moves to and fro over possible, refused and current sizes, one move every 16 ms.
  void drag() {
    const AxisChip* chip = canvas().chip(u"tp"_s);
    const QPoint from = chip->mapTo(&canvas(), chip->rect().center());
    QObject::connect(&canvas(), &MeshCanvas::previewed, &window_, [this] { ++previews_; });
    send(QEvent::MouseButtonPress, from, Qt::LeftButton);
    QEventLoop loop;
    QTimer timer;
    timer.setTimerType(Qt::PreciseTimer);
    int move = 0;
    QObject::connect(&timer, &QTimer::timeout, &loop, [&] {
      if (++move > options_.moves) return loop.quit();
      constexpr int kWave = 36;  // moves; 6 pixels each
      const int at = move % kWave;
      send(QEvent::MouseMove, from + QPoint(6 * (at < kWave / 2 ? at : kWave - at) - 66, 2), Qt::NoButton);
    });
    timer.start(16);
    loop.exec();
    timer.stop();
    send(QEvent::MouseButtonRelease, from, Qt::LeftButton);
  }

  Options options_;
  Frames& frames_;
  MainWindow window_;
  int previews_ = 0, answers_ = 0;
};

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM") && !qEnvironmentVariableIsSet("DISPLAY"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  mw::ui::Frames application(argc, argv);
  try {
    const mw::ui::Options options = mw::ui::read_options(QCoreApplication::arguments());
    std::printf("%s\n", mw::ui::Bench(options, application).run().dump(2).c_str());
    return 0;
  } catch (const mw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
