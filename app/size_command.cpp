// SPDX-License-Identifier: GPL-3.0-or-later
// `size`: a run of kind size, told as a table (or as the contract's points).
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/jobs/job.h"
#include "core/views/run_view.h"

namespace mw::app {
namespace {

std::string milliseconds(const Json& measured, const char* key) {
  return measured.contains(key) ? number_text(1e3 * measured[key].get<double>(), 3) : std::string("-");
}

std::string bytes_at(const Json& memory, const char* category) {
  return to_text(Bytes(memory.value(category, std::int64_t{0})));
}

void print_header(const std::string& mode) {
  print_text("\n%s\n%7s %10s %10s %10s %10s  %11s %11s %11s %11s %11s %11s\n", mode.c_str(), "batch", "seconds",
             "ms/token", "ms/step", "tokens/s", "weights", "activations", "logits", "kv_cache", "peak", "predicted");
}

void print_row(const Json& p) {
  const std::string predicted = bytes_at(p["predicted"]["memory"], "total");
  if (!p["predicted"]["fits"].get<bool>()) {
    print_text("%7d not started: predicted %s of %s; largest batch that fits: %d\n", p["batch"].get<int>(),
               predicted.c_str(), to_text(Bytes(p["predicted"]["capacity_bytes"].get<std::int64_t>())).c_str(),
               p["predicted"]["largest_batch"].get<int>());
    return;
  }
  const Json& m = p["measured"];
  if (m.is_null()) {
    print_text("%7d failed: %s\n", p["batch"].get<int>(), p.value("error", "").c_str());
    return;
  }
  const Json& memory = m["memory"];
  print_text("%7d %10s %10s %10s %10s  %11s %11s %11s %11s %11s %11s\n", p["batch"].get<int>(),
             number_text(m["seconds"].get<double>(), 4).c_str(), milliseconds(m, "seconds_per_token").c_str(),
             milliseconds(m, "step_seconds").c_str(), count_text(m["tokens_per_second"].get<double>()).c_str(),
             bytes_at(memory, "weights").c_str(), bytes_at(memory, "activations").c_str(),
             bytes_at(memory, "logits").c_str(), bytes_at(memory, "kv_cache").c_str(),
             bytes_at(memory, "total").c_str(), predicted.c_str());
}

}  // namespace

int size_command(const Common& common, const SizeArgs& args) {
  jobs::JobRequest request{
      .experiment = load_experiment(common), .runs_folder = common.runs_folder, .resume = std::nullopt};
  request.experiment.set_value("kind", "size");
  if (!args.adapter.empty()) request.experiment.set("lora.adapter", args.adapter.string());
  views::RunView view;
  ProgressLine line;
  Json points = Json::array();
  const EventSink sink = [&](const Event& event) {
    view.feed(event);
    if (const auto* p = std::get_if<event::Progress>(&event.body)) {
      std::string text = p->phase + "  " + std::to_string(100 * p->done / std::max(1L, p->total)) + " %";
      if (const auto eta = view.eta_seconds()) text += "  ETA " + to_text(Seconds(*eta));
      line.update(text);
    }
    if (const auto* l = std::get_if<event::Log>(&event.body)) line.message(l->level + ": " + l->text);
    const auto* p = std::get_if<event::Point>(&event.body);
    if (!p) return;
    if (common.output == Output::text) {
      line.clear();
      if (points.empty() || points.back()["mode"] != p->values["mode"])
        print_header(p->values["mode"].get<std::string>());
      print_row(p->values);
      std::fflush(stdout);
    }
    points.push_back(p->values);
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  line.clear();
  if (common.output == Output::json && finished.state != RunState::failed) print_json({{"points", points}});
  if (finished.state == RunState::cancelled) return 130;
  if (finished.state == RunState::done) return 0;
  return error == Error::Kind::bad_input ? 2 : 1;
}

}  // namespace mw::app
