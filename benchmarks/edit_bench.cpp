// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the price of an edit: from a changed setting of the document until the status strip has painted the plan of
// the changed document. Edits the shipped plan of Gemma 4 31B on v5p-8 in an offscreen window, one edit after another
// has been painted, and prints JSON in milliseconds: the latency, when the plan arrived, and the processor time of the
// window's thread and of all threads, which the load of the machine changes little.
//   mw_edit_bench RESOURCES [--edits N] [--size WxH]
#include <QApplication>
#include <QElapsedTimer>
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "core/base/json.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/shell/main_window.h"
#include "ui/shell/status_strip.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr double kFrame = 16;  // ms

double ms_of(qint64 ns) {
  return static_cast<double>(ns) * 1e-6;
}

double cpu_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Json spread(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) { return ms[static_cast<size_t>(share * static_cast<double>(ms.size() - 1))]; };
  return {{"median_ms", at(0.5)},
          {"p95_ms", at(0.95)},
          {"p99_ms", at(0.99)},
          {"worst_ms", ms.back()},
          {"over_16ms", std::count_if(ms.begin(), ms.end(), [](double m) { return m > kFrame; })}};
}

// Notes when a part of the strip is painted.
class Watch : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    const auto* widget = event->type() == QEvent::Paint ? qobject_cast<QWidget*>(receiver) : nullptr;
    if (widget && strip && (widget == strip || strip->isAncestorOf(widget))) strip_painted = true;
    return QApplication::notify(receiver, event);
  }
  const QWidget* strip = nullptr;
  bool strip_painted = false;
};

class Bench {
 public:
  Bench(const std::filesystem::path& resources, QSize size, Watch& watch)
      : watch_(watch),
        window_({resources / "examples" / "paper-train-v5p-8.json",
                 std::filesystem::temp_directory_path() / "mw-edit-bench",
                 resources,
                 {}}) {
    window_.resize(size);
    window_.show();
    window_.show_page(Page::design);
    watch_.strip = &window_.strip();
  }

  Json run(int edits) {
    settle();
    if (!window_.predictor().design()) throw Error("BENCH", "the example has no plan", {}, Error::Kind::failed);
    QObject::connect(&window_.predictor(), &Predictor::changed, &window_, [this] {
      if (!window_.predictor().is_outdated() && planned_ms_ < 0) planned_ms_ = ms_of(clock_.nsecsElapsed());
    });
    const std::pair<const char*, std::vector<Json>> kinds[] = {{"train.batch", {2, 1}},
                                                               {"lora.rank", {32, 64}},
                                                               {"data.max_len", {3072, 4096}},
                                                               {"train.loss_chunk", {256, 0}},
                                                               {"train.warmup_steps", {50, 100}}};
    for (int i = 0; i < edits; ++i) {
      const auto& [key, values] = kinds[static_cast<size_t>(i) % std::size(kinds)];
      edit(key, values[static_cast<size_t>(i) / std::size(kinds) % values.size()]);
    }
    Json by_setting = Json::object();
    for (size_t k = 0; k < std::size(kinds); ++k) {
      std::vector<double> of_kind;
      for (size_t i = k; i < latency_.size(); i += std::size(kinds)) of_kind.push_back(latency_[i]);
      if (!of_kind.empty()) by_setting[kinds[k].first] = spread(of_kind);
    }
    return {{"edits", latency_.size()},
            {"model", window_.predictor().design()->request().model.id},
            {"target", window_.predictor().design()->request().target.id},
            {"window", {window_.width(), window_.height()}},
            {"platform", ss(QGuiApplication::platformName())},
            {"document_to_painted_strip", spread(latency_)},
            {"document_to_plan", spread(planned_)},
            {"cpu_of_the_window", spread(window_cpu_)},
            {"cpu_of_all_threads", spread(all_cpu_)},
            {"by_setting", std::move(by_setting)}};
  }

 private:
  void settle() {
    for (int quiet = 0; quiet < 5;) {
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 20);
      quiet = window_.predictor().is_settled() ? quiet + 1 : 0;
    }
  }
  void edit(const std::string& key, const Json& value) {
    planned_ms_ = -1;
    const double window_cpu = cpu_ms(CLOCK_THREAD_CPUTIME_ID), all_cpu = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    clock_.start();
    window_.document().set(key, value);
    if (window_.document().has_errors())
      throw Error("BENCH", key + " refuses " + value.dump(), {}, Error::Kind::failed);
    watch_.strip_painted = false;
    while (window_.predictor().is_outdated() || !watch_.strip_painted) {
      if (window_.predictor().is_outdated()) watch_.strip_painted = false;  // with the figures before the edit
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }
    latency_.push_back(ms_of(clock_.nsecsElapsed()));
    planned_.push_back(planned_ms_);
    window_cpu_.push_back(cpu_ms(CLOCK_THREAD_CPUTIME_ID) - window_cpu);
    all_cpu_.push_back(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - all_cpu);
    settle();
  }

  Watch& watch_;
  MainWindow window_;
  QElapsedTimer clock_;  // since the edit
  double planned_ms_ = -1;
  std::vector<double> latency_, planned_, window_cpu_, all_cpu_;
};

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  mw::ui::Watch application(argc, argv);
  int edits = 500;
  QSize size(1280, 800);
  std::filesystem::path resources;
  const QStringList arguments = QCoreApplication::arguments();
  for (int i = 1; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == QStringLiteral("--edits") && has_value)
      edits = std::max(1, arguments[++i].toInt());
    else if (arguments[i] == QStringLiteral("--size") && has_value) {
      const QStringList parts = arguments[++i].split(u'x');
      size = {parts.value(0).toInt(), parts.value(1).toInt()};
    } else
      resources = mw::ui::fspath(arguments[i]);
  }
  try {
    std::printf("%s\n", mw::ui::Bench(resources, size, application).run(edits).dump(2).c_str());
    return 0;
  } catch (const mw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
