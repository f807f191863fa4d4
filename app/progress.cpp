// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/progress.h"

#include <unistd.h>

#include <cstdio>

#include "app/output.h"
#include "core/base/units.h"

namespace mw::app {

using namespace std::chrono_literals;

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void ProgressLine::update(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? 100ms : 5000ms)) return;
  last_ = now;
  if (!terminal_) {
    print_error("%s\n", text.c_str());
    return;
  }
  clear();
  print_error("%s", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::message(const std::string& text) {
  clear();
  print_error("%s\n", text.c_str());
}

void RunProgressPrinter::feed(const Event& event) {
  view_.feed(event);
  if (const auto* metric = std::get_if<event::Metric>(&event.body)) print_metric(*metric);
  if (const auto* progress = std::get_if<event::Progress>(&event.body)) print_progress(*progress);
  if (const auto* log = std::get_if<event::Log>(&event.body))
    line_.message((log->level == "info" ? "" : log->level + ": ") + log->text);
  if (const auto* checkpoint = std::get_if<event::Checkpoint>(&event.body))
    line_.message("checkpoint of step " + std::to_string(checkpoint->step) + ": " + checkpoint->path);
  if (const auto* started = std::get_if<event::Started>(&event.body))
    line_.message("started " + started->info.value("run", std::string()));
}

void RunProgressPrinter::print_metric(const event::Metric& metric) {
  if (metric.name == "train/loss") loss_ = metric.value;
  if (metric.name == "train/tokens_per_second") tokens_per_second_ = metric.value;
  if (metric.name == "eval/loss")
    line_.message("step " + std::to_string(metric.step) + ": eval/loss " + number_text(metric.value));
}

void RunProgressPrinter::print_progress(const event::Progress& progress) {
  if (!view_.activity()) return line_.clear();
  std::string text = progress.phase;
  if (progress.total > 0) text += " " + std::to_string(progress.done) + "/" + std::to_string(progress.total);
  if (progress.phase == "training") {
    text += "  loss " + number_text(loss_) + "  " + count_text(tokens_per_second_) + " tokens/s";
    if (const auto eta = view_.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
  }
  line_.update(text);
}

}  // namespace mw::app
