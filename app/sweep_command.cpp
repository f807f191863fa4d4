// SPDX-License-Identifier: GPL-3.0-or-later
// `sweep`: measures latency over request rates and input lengths. It prints a table while the points arrive, or the
// points as JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/jobs/job.h"
#include "core/store/store.h"
#include "core/views/run_view.h"
#include "core/views/sweep_view.h"

namespace mw::app {
namespace {

struct SweepOptions {
  std::string backend, url;     // replace those of the experiment; empty: unchanged
  std::filesystem::path out{};  // folder for one file per point
  std::string resume;           // run id
};

// A row of numbers and the verdict. The share of prompt tokens from the prefix cache is of interest if the server keeps
// its cache between the rates.
void print_sweep_cells(std::vector<std::string> numbers, bool shows_hits, const std::string& hits,
                       const std::string& verdict) {
  if (shows_hits) numbers.push_back(hits);
  std::vector<TableCell> cells;
  for (size_t i = 0; i < numbers.size(); ++i) cells.push_back({numbers[i], i == 0 ? 7 : i < 5 ? 9 : 10});
  cells.push_back({verdict, 0});
  print_text("%s\n", table_row(cells).c_str());
}

void print_sweep_header(bool shows_hits) {
  print_sweep_cells(
      {"input", "rate", "done", "failed", "out tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "ITL p99", "E2E p50"},
      shows_hits, "hits", " verdict");
  print_sweep_cells({"tokens", "req/s", "", "", "", "ms", "ms", "ms", "ms", "ms"}, shows_hits, "%", "");
}

void print_sweep_row(const formats::BenchPoint& p, bool shows_hits) {
  const std::string rate =
      std::isnan(p.request_rate) ? counted(p.max_concurrency, "user") : number_or_dash(p.request_rate);
  print_sweep_cells(
      {std::to_string(p.input_len), rate, std::to_string(p.completed), std::to_string(p.failed),
       number_or_dash(p.output_throughput), number_or_dash(p.ttft.median), number_or_dash(p.ttft.percentile(99)),
       number_or_dash(p.tpot.median), number_or_dash(p.itl.percentile(99)), number_or_dash(p.e2el.median)},
      shows_hits, (p.is_cold ? "cold " : "") + number_or_dash(100 * p.prefix_hits), " " + serve::verdict_text(p));
  std::fflush(stdout);
}

void print_sweep_summary(const views::SweepView& view) {
  for (const views::SweepLine& line : view.lines) {
    const serve::Capacity& c = line.capacity;
    const std::string tokens = counted(line.input_len, "token");
    if (!std::isnan(c.knee)) print_text("%s: knee at %s requests/s\n", tokens.c_str(), number_or_dash(c.knee).c_str());
    if (view.slo.any()) print_text("%s: %s\n", tokens.c_str(), serve::slo_text(c).c_str());
  }
  std::vector<std::pair<std::string, int>> texts;  // each text once, with its number of points
  for (const audit::AuditFinding& f : view.findings) {
    if (f.verdict == audit::Verdict::fine) continue;
    const std::string text = std::string(to_string(f.verdict)) + ": " + f.text;
    const auto same = std::find_if(texts.begin(), texts.end(), [&](const auto& entry) { return entry.first == text; });
    if (same == texts.end())
      texts.emplace_back(text, 1);
    else
      ++same->second;
  }
  for (const auto& [text, points] : texts)
    print_text("%s%s\n", text.c_str(), points > 1 ? ("  (" + counted(points, "point") + ")").c_str() : "");
}

// The 90 % intervals of predicted points, which are the same share of every point.
void print_sweep_intervals(const Json& point) {
  std::string text;
  for (const auto& [field, name] :
       {std::pair{"output_throughput", "output tokens/s"}, {"median_tpot_ms", "TPOT"}, {"median_ttft_ms", "TTFT"}}) {
    const std::string low = std::string(field) + "_low", high = std::string(field) + "_high";
    if (!point.contains(low) || !point.contains(field)) continue;
    const double value = point[field].get<double>();
    text += (text.empty() ? "" : ", ") + std::string(name) + " -" +
            number_text(100 * (1 - point[low].get<double>() / value), 2) + " to +" +
            number_text(100 * (point[high].get<double>() / value - 1), 2) + " %";
  }
  if (!text.empty()) print_text("90 %% intervals: %s\n", text.c_str());
}

// A null is an unknown value, or no rate that meets the SLO.
Json capacity_json(const views::SweepView& view) {
  Json all = Json::array();
  for (const views::SweepLine& line : view.lines) {
    const serve::Capacity c = view.slo.any() ? line.capacity : serve::Capacity{.knee = line.capacity.knee};
    all.push_back({{"input_len", line.input_len},
                   {"knee", or_null(c.knee)},
                   {"at_slo", or_null(c.at_slo)},
                   {"beyond_last", c.beyond_last},
                   {"failing_below", c.failing_below},
                   {"too_short", c.too_short}});
  }
  return all;
}

// "3_input512_rate4.json": the step makes the names of repeated points unique.
std::string point_file_name(const formats::BenchPoint& p, long step) {
  const std::string load = std::isnan(p.request_rate) ? "users" + std::to_string(p.max_concurrency)
                                                      : "rate" + number_or_dash(p.request_rate, 6);
  return std::to_string(step) + "_input" + std::to_string(p.input_len) + "_" + load + ".json";
}

jobs::JobRequest sweep_request(const CommonOptions& common, const SweepOptions& options) {
  jobs::JobRequest request{.experiment = {}, .runs_folder = common.runs_folder, .resume = std::nullopt};
  request.context = plan::load_once(load_context);
  request.hardware_folder = measured_folder(common);
  if (!options.resume.empty()) {
    request.resume = run_named(store::Store(common.runs_folder), options.resume);
    request.resume_sets = common.sets;
    if (!options.url.empty()) request.resume_sets.push_back("sweep.url=" + options.url);
    return request;
  }
  if (common.file.empty())
    throw Error("USAGE", "sweep needs an experiment file or --resume RUN",
                {.fix = "for example: meshwright sweep resources/examples/tiny-serve.json"});
  request.experiment = load_experiment(common);
  request.experiment.set_value("kind", "serve");
  if (!options.backend.empty()) request.experiment.set("sweep.backend", options.backend);
  if (!options.url.empty()) request.experiment.set("sweep.url", options.url);
  return request;
}

void show_sweep_progress(const Event& event, const views::RunView& view, ProgressLine& line) {
  if (const auto* started = std::get_if<event::Started>(&event.body))
    line.message(started->info.value("run", std::string()) + ": " + started->info.value("source", std::string()) +
                 ", " + started->info["set"].value("tool", std::string()));
  if (const auto* progress = std::get_if<event::Progress>(&event.body)) {
    std::string text =
        progress->phase + "  " + std::to_string(progress->done) + " of " + std::to_string(progress->total);
    if (const auto eta = view.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
    line.update(text);
  }
  if (const auto* log = std::get_if<event::Log>(&event.body))
    line.message((log->level == "info" ? "" : log->level + ": ") + log->text);
}

// Writes a point in the format of `vllm bench serve`. `set` is info.set of the Started event.
void write_point(const std::filesystem::path& folder, const formats::BenchPoint& point, long step, const Json& set) {
  Json file = formats::to_json(point, formats::Detail::requests);
  file["model_id"] = set.value("model", std::string());
  file["backend"] = set.value("tool", std::string());
  write_file_atomically(folder / point_file_name(point, step), dump_utf8(file, 1));
}

void add_sweep_options(CLI::App& command, CommonOptions& common, SweepOptions& options) {
  add_file_and_set_options(command, common, "Experiment file", FileArgument::optional);
  command.add_option("--backend", options.backend, "Backend that serves, instead of sweep.backend")
      ->check(CLI::IsMember({"engine", "model", "http"}));
  command.add_option("--url", options.url,
                     "Server URL for --backend http, instead of sweep.url; its user and password are not recorded");
  command.add_option("--out", options.out, "Folder for one file per point, with the fields of vLLM bench");
  command.add_option("--resume", options.resume, "Continue this sweep and keep its finished points");
}

int run_sweep(const CommonOptions& common, const SweepOptions& options) {
  const jobs::JobRequest request = sweep_request(common, options);
  if (!options.out.empty()) make_folders(options.out);
  views::RunView view;
  ProgressLine line;
  Json points = Json::array(), set = Json::object();
  bool shows_hits = false;
  const auto take = [&](const Event& event) {
    view.feed(event);
    if (const auto* started = std::get_if<event::Started>(&event.body)) {
      if (common.output == Output::text && set.empty()) {
        shows_hits = formats::bench_set(started->info["set"]).condition("prompts") == "replayed";
        print_sweep_header(shows_hits);
      }
      set = started->info["set"];
    }
    const auto* measured = std::get_if<event::ResultPoint>(&event.body);
    if (!measured) return;
    const formats::BenchPoint point = formats::bench_point(measured->values);
    if (common.output == Output::text) {
      line.clear();
      print_sweep_row(point, shows_hits);
    }
    points.push_back(formats::to_json(point, formats::Detail::summary));
    if (!options.out.empty()) write_point(options.out, point, measured->step, set);
  };
  if (request.resume)  // the finished points belong to the answer
    store::Store(common.runs_folder).read_events(*request.resume, [&](const store::StoredEvent& stored) {
      take(stored.event);
    });
  const EventSink sink = [&](const Event& event) {
    take(event);
    show_sweep_progress(event, view, line);
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  line.clear();
  if (common.output == Output::json && finished.state != RunState::failed)
    print_json({{"points", points}, {"capacity", capacity_json(views::sweep_view(view))}});
  if (common.output == Output::text && !points.empty()) {
    print_sweep_intervals(points[0]);
    print_sweep_summary(views::sweep_view(view));
  }
  return exit_code(finished.state, error);
}

}  // namespace

Subcommand sweep_subcommand() {
  return make_subcommand("sweep", "Sweep request rates and input lengths and measure latency", add_sweep_options,
                         run_sweep);
}

}  // namespace mw::app
