// SPDX-License-Identifier: GPL-3.0-or-later
// `sweep`: a run of kind serve, told as a table (or as the contract's points).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "app/result_files.h"
#include "core/base/files.h"
#include "core/jobs/job.h"
#include "core/views/run_view.h"
#include "core/views/sweep_charts.h"
#include "core/views/sweep_view.h"

namespace mw::app {
namespace {

void print_header() {
  print_text("%7s %9s %9s %9s %9s %10s %10s %10s %10s %10s  %s\n", "input", "rate", "done", "failed", "out tok/s",
             "TTFT p50", "TTFT p99", "TPOT p50", "ITL p99", "E2E p50", "verdict");
  print_text("%7s %9s %9s %9s %9s %10s %10s %10s %10s %10s\n", "tokens", "req/s", "", "", "", "ms", "ms", "ms", "ms",
             "ms");
}

void print_row(const formats::BenchPoint& p) {
  const std::string rate =
      std::isnan(p.request_rate) ? std::to_string(p.max_concurrency) + " users" : figure(p.request_rate);
  print_text("%7d %9s %9ld %9ld %9s %10s %10s %10s %10s %10s  %s\n", p.input_len, rate.c_str(), p.completed, p.failed,
             figure(p.output_throughput).c_str(), figure(p.ttft.median).c_str(), figure(p.ttft.percentile(99)).c_str(),
             figure(p.tpot.median).c_str(), figure(p.itl.percentile(99)).c_str(), figure(p.e2el.median).c_str(),
             p.verdict.c_str());
  std::fflush(stdout);
}

void print_end(const views::SweepView& view) {
  for (const views::SweepLine& line : view.lines) {
    const serve::Capacity& c = line.capacity;
    if (!std::isnan(c.knee)) print_text("%d tokens: knee at %s requests/s\n", line.input_len, figure(c.knee).c_str());
    if (view.slo.any()) print_text("%d tokens: %s\n", line.input_len, views::slo_text(c).c_str());
  }
  std::vector<std::pair<std::string, int>> said;  // the same of several points once
  for (const serve::Finding& f : view.findings) {
    if (f.verdict == serve::Verdict::fine) continue;
    const std::string text = std::string(to_string(f.verdict)) + ": " + f.text;
    const auto at = std::find_if(said.begin(), said.end(), [&](const auto& one) { return one.first == text; });
    if (at == said.end())
      said.emplace_back(text, 1);
    else
      ++at->second;
  }
  for (const auto& [text, points] : said)
    print_text("%s%s\n", text.c_str(), points > 1 ? ("  (" + std::to_string(points) + " points)").c_str() : "");
}

// null: not known, or no rate meets the SLO.
Json capacity_json(const views::SweepView& view) {
  const auto known = [](double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); };
  Json all = Json::array();
  for (const views::SweepLine& line : view.lines) {
    const serve::Capacity c = view.slo.any() ? line.capacity : serve::Capacity{.knee = line.capacity.knee};
    all.push_back({{"input_len", line.input_len},
                   {"knee", known(c.knee)},
                   {"at_slo", known(c.at_slo)},
                   {"beyond_last", c.beyond_last},
                   {"failing_below", c.failing_below}});
  }
  return all;
}

// input512_rate4.json; with its number where a point comes again.
std::string file_name(const formats::BenchPoint& p, long step) {
  const std::string load =
      std::isnan(p.request_rate) ? "users" + std::to_string(p.max_concurrency) : "rate" + figure(p.request_rate, 6);
  return std::to_string(step) + "_input" + std::to_string(p.input_len) + "_" + load + ".json";
}

jobs::JobRequest request_of(const Common& common, const SweepArgs& args) {
  jobs::JobRequest request{.experiment = {}, .runs_folder = common.runs_folder, .resume = std::nullopt};
  request.catalogue = load_catalogue;
  if (!args.resume.empty()) {
    request.resume = args.resume;
    request.resume_sets = common.sets;
    if (!args.url.empty()) request.resume_sets.push_back("sweep.url=" + args.url);
    return request;
  }
  if (common.file.empty())
    throw Error({.id = "USAGE",
                 .message = "sweep needs an experiment file or --resume RUN",
                 .fix = "for example: meshwright sweep resources/examples/tiny-serve.json"});
  request.experiment = load_experiment(common);
  request.experiment.set_value("kind", "serve");
  if (!args.backend.empty()) request.experiment.set("sweep.backend", args.backend);
  if (!args.url.empty()) request.experiment.set("sweep.url", args.url);
  return request;
}

}  // namespace

int sweep_command(const Common& common, const SweepArgs& args) {
  const jobs::JobRequest request = request_of(common, args);
  if (!args.out.empty()) make_folders(args.out);
  views::RunView view;
  ProgressLine line;
  Json points = Json::array(), facts = Json::object();
  const EventSink sink = [&](const Event& event) {
    view.feed(event);
    if (const auto* s = std::get_if<event::Started>(&event.body)) {
      facts = s->info["set"];
      line.message(s->info.value("run", std::string()) + ": " + s->info.value("source", std::string()) + ", " +
                   facts.value("tool", std::string()));
      if (common.output == Output::text) print_header();
    }
    if (const auto* p = std::get_if<event::Progress>(&event.body)) {
      std::string text = p->phase + "  " + std::to_string(p->done) + " of " + std::to_string(p->total);
      if (const auto eta = view.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
      line.update(text);
    }
    if (const auto* l = std::get_if<event::Log>(&event.body))
      line.message((l->level == "info" ? "" : l->level + ": ") + l->text);
    const auto* p = std::get_if<event::Point>(&event.body);
    if (!p) return;
    const formats::BenchPoint point = formats::bench_point(p->values);
    if (common.output == Output::text) {
      line.clear();
      print_row(point);
    }
    points.push_back(formats::to_json(point, formats::Detail::summary));
    if (!args.out.empty()) {
      Json file = formats::to_json(point, formats::Detail::requests);
      file["model_id"] = facts.value("model", std::string());
      file["backend"] = facts.value("tool", std::string());
      write_file_atomically(args.out / file_name(point, p->step),
                            file.dump(1, ' ', false, Json::error_handler_t::replace));
    }
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  line.clear();
  if (common.output == Output::json && finished.state != RunState::failed)
    print_json({{"points", points}, {"capacity", capacity_json(views::sweep_view(view))}});
  if (common.output == Output::text && !points.empty()) print_end(views::sweep_view(view));
  if (finished.state == RunState::cancelled) return 130;
  if (finished.state == RunState::done) return 0;
  return error == Error::Kind::bad_input ? 2 : 1;
}

}  // namespace mw::app
