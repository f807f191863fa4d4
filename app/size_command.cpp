// SPDX-License-Identifier: GPL-3.0-or-later
// `size`: measures time and memory by batch size, or predicts them for another target. It prints a table while the
// points arrive, or the points as JSON.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/text.h"
#include "core/experiment/bound_experiment.h"
#include "core/jobs/job.h"
#include "core/jobs/size_run.h"
#include "core/views/run_view.h"

namespace mw::app {
namespace {

struct SizeOptions {
  std::filesystem::path adapter{};  // PEFT folder that replaces lora.adapter
};

std::string milliseconds(const Json& measured, const char* key) {
  return measured.contains(key) ? number_text(1e3 * measured[key].get<double>(), 3) : std::string("-");
}

std::string bytes_at(const Json& memory, const char* category) {
  return to_text(Bytes(memory.value(category, std::int64_t{0})));
}

bool is_predicted(const Json& point) {
  return point["measured"].is_null() && point["predicted"].contains("seconds");
}

std::string table_title(const Json& point) {
  return point["mode"].get<std::string>() + (point["adapters"].get<bool>() ? ", with LoRA adapters" : "");
}

void print_predicted_header(const std::string& title) {
  print_text("\n%s, predicted\n%7s %10s %21s %10s %10s  %11s %11s %11s %11s %11s\n", title.c_str(), "batch", "seconds",
             "(low to high)", "ms/token", "tokens/s", "weights", "activations", "logits", "kv_cache", "peak");
}

void print_predicted_row(const Json& point) {
  const Json &predicted = point["predicted"], &memory = predicted["memory"];
  const auto seconds = [&](const char* key) { return number_text(predicted[key].get<double>(), 4); };
  print_text("%7d %10s %21s %10s %10s  %11s %11s %11s %11s %11s\n", point["batch"].get<int>(),
             seconds("seconds").c_str(),
             ("(" + seconds("seconds_low") + " to " + seconds("seconds_high") + ")").c_str(),
             milliseconds(predicted, "seconds_per_token").c_str(),
             count_text(predicted["tokens_per_second"].get<double>()).c_str(), bytes_at(memory, "weights").c_str(),
             bytes_at(memory, "activations").c_str(), bytes_at(memory, "logits").c_str(),
             bytes_at(memory, "kv_cache").c_str(), bytes_at(memory, "total").c_str());
}

void print_size_cells(const std::array<std::string, 11>& texts) {
  std::vector<TableCell> cells;
  for (const std::string& text : texts) cells.push_back({text, cells.empty() ? 7 : cells.size() < 5 ? 10 : 11});
  print_text("%s\n", table_row(cells).c_str());
}

void print_size_header(const std::string& mode) {
  print_text("\n%s\n", mode.c_str());
  print_size_cells({"batch", "seconds", "ms/token", "ms/step", "tokens/s", "weights", "activations", "logits",
                    "kv_cache", "peak", "predicted"});
}

void print_size_row(const Json& point, const char* refused) {
  const std::string predicted = bytes_at(point["predicted"]["memory"], "total");
  if (!point["predicted"]["fits"].get<bool>()) {
    print_text("%7d %s: predicted %s of %s; largest batch that fits: %d\n", point["batch"].get<int>(), refused,
               predicted.c_str(), to_text(Bytes(point["predicted"]["capacity_bytes"].get<std::int64_t>())).c_str(),
               point["predicted"]["largest_batch"].get<int>());
    return;
  }
  if (is_predicted(point)) return print_predicted_row(point);
  const Json& measured = point["measured"];
  if (measured.is_null()) {
    print_text("%7d failed: %s\n", point["batch"].get<int>(), point.value("error", "").c_str());
    return;
  }
  const Json& memory = measured["memory"];
  print_size_cells({std::to_string(point["batch"].get<int>()), number_text(measured["seconds"].get<double>(), 4),
                    milliseconds(measured, "seconds_per_token"), milliseconds(measured, "step_seconds"),
                    count_text(measured["tokens_per_second"].get<double>()), bytes_at(memory, "weights"),
                    bytes_at(memory, "activations"), bytes_at(memory, "logits"), bytes_at(memory, "kv_cache"),
                    bytes_at(memory, "total"), predicted});
}

void show_size_progress(const Event& event, const views::RunView& view, ProgressLine& line) {
  if (const auto* progress = std::get_if<event::Progress>(&event.body)) {
    std::string text =
        progress->phase + "  " + std::to_string(100 * progress->done / std::max(1L, progress->total)) + " %";
    if (const auto eta = view.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
    line.update(text);
  }
  if (const auto* log = std::get_if<event::Log>(&event.body)) line.message(log->level + ": " + log->text);
}

void add_size_options(CLI::App& command, CommonOptions& common, SizeOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--adapter", options.adapter, "PEFT adapter to attach");
}

int run_size(const CommonOptions& common, const SizeOptions& options) {
  jobs::JobRequest request{
      .experiment = load_experiment(common), .runs_folder = common.runs_folder, .resume = std::nullopt};
  request.experiment.set_value("kind", "size");
  request.context = plan::load_once(load_context);
  const bool predicts = jobs::are_sizes_predicted(request.experiment.valid_values());
  if (predicts && !options.adapter.empty())
    throw Error("USAGE", "sizes on another target are predicted with and without adapters of lora.rank",
                {.place = "--adapter",
                 .found = options.adapter.string(),
                 .fix = "remove the option, or set target.id to cpu to measure this adapter"});
  if (!options.adapter.empty()) request.experiment.set("lora.adapter", options.adapter.string());
  views::RunView view;
  ProgressLine line;
  Json points = Json::array();
  const EventSink sink = [&](const Event& event) {
    view.feed(event);
    show_size_progress(event, view, line);
    const auto* point = std::get_if<event::ResultPoint>(&event.body);
    if (!point) return;
    if (common.output == Output::text) {
      line.clear();
      const std::string title = table_title(point->values);
      if (points.empty() || table_title(points.back()) != title)
        predicts ? print_predicted_header(title) : print_size_header(title);
      print_size_row(point->values, predicts ? "does not fit" : "not started");
      std::fflush(stdout);
    }
    points.push_back(point->values);
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  line.clear();
  if (common.output == Output::json && finished.state != RunState::failed) print_json({{"points", points}});
  return exit_code(finished.state, error);
}

}  // namespace

Subcommand size_subcommand() {
  return make_subcommand("size",
                         "Measure how time and memory grow with the batch size, or predict it for another target",
                         add_size_options, run_size);
}

}  // namespace mw::app
