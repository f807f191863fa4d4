// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/output.h"

#include <unistd.h>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::app {
namespace {

// Returns the code point at the start of `text` if it is a control character or reorders text, else 0. NUL is
// returned as 0x100.
unsigned control_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x20 || lead == 0x7f) return lead == 0 ? 0x100 : lead;
  if (lead == 0xC2 && byte(1) < 0xA0) return byte(1);
  if (lead == 0xE2 && byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) return 0x2000u + (byte(2) & 0x3fu);
  if (lead == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 0x2040u + (byte(2) & 0x3fu);
  return 0;
}

size_t bytes_of(unsigned control) {
  return control > 0x100 ? 3 : control >= 0x80 && control != 0x100 ? 2 : 1;
}

// Returns valid UTF-8 in which control characters (except newline and tab) and bidirectional marks are escaped.
std::string terminal_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size();) {
    const unsigned control = control_at(std::string_view(valid).substr(i));
    const bool kept = control == 0 || control == '\n' || control == '\t';
    const unsigned shown = control == 0x100 ? 0 : control;
    out += kept ? std::string(1, valid[i]) : formatted(control > 0x100 ? "\\u%04x" : "\\x%02x", shown);
    i += kept ? 1 : bytes_of(control);
  }
  return out;
}

void write_escaped(std::FILE* stream, const char* format, std::va_list arguments) {
  std::va_list copy;
  va_copy(copy, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  if (size < 0) return;
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  text = terminal_text(text);
  std::fwrite(text.data(), 1, text.size(), stream);
}

// Escapes DEL and the control characters above it; the JSON library escapes only those below space.
void write_json(std::string text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const unsigned control = text[i] == '\n' ? 0 : control_at(std::string_view(text).substr(i));
    const size_t n = control == 0 ? 1 : bytes_of(control);
    out += control == 0 ? std::string(1, text[i]) : formatted("\\u%04x", control);
    i += n;
  }
  out += '\n';
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void print_text(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_escaped(stdout, format, arguments);
  va_end(arguments);
}

void print_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_escaped(stderr, format, arguments);
  va_end(arguments);
}

void print_note(const std::string& note) {
  print_error("note: %s\n", note.c_str());
}

void print_answer(const CommonOptions& common, const Json& json, const std::string& text) {
  if (common.output == Output::json)
    print_json(json);
  else
    print_text("%s", text.c_str());
}

void print_json(const Json& json) {
  write_json(dump_utf8(json, 2));
}

void print_json_line(const Json& json) {
  write_json(dump_utf8(json));
}

void print_external_result(const std::string& run, const event::Finished& finished) {
  print_text("%s %s: %s in %s%s%s\n", run.c_str(), std::string(to_string(finished.state)).c_str(),
             counted(finished.steps, "step").c_str(), to_text(Seconds(finished.seconds)).c_str(),
             finished.error.empty() ? "" : "; ", finished.error.c_str());
}

std::string number_or_dash(double value, int digits) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "inf" : number_text(value, digits);
}

using namespace std::chrono_literals;

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
void ProgressLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
  if (!unseen_.empty()) print_error("%s\n", std::exchange(unseen_, {}).c_str());
}

void ProgressLine::update(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? 100ms : 5000ms)) {
    if (!terminal_) unseen_ = text;
    return;
  }
  last_ = now;
  unseen_.clear();
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
