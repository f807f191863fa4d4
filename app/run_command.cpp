// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/commands.h"
#include "app/narrator.h"
#include "core/jobs/job.h"

namespace mw::app {
namespace {

void summarise(const event::Finished& f, const store::RunId& run) {
  print_text("%s %s: %ld steps, %s tokens in %s, peak %s\n", run.c_str(), std::string(to_string(f.state)).c_str(),
             f.steps, count_text(static_cast<double>(f.tokens)).c_str(), to_text(Seconds(f.seconds)).c_str(),
             to_text(f.peak).c_str());
  if (f.summary.is_object() && f.summary.contains("answers")) {
    const Json& a = f.summary["answers"];
    print_text("held-out prompts answered right: base %ld of %ld, tuned %ld of %ld\n", a.value("base_right", 0L),
               a.value("asked", 0L), a.value("tuned_right", 0L), a.value("asked", 0L));
  }
}

// What a mesh's devices sent in a mean step.
void summarise(const views::TrafficTimeline& traffic) {
  if (traffic.empty()) return;
  const auto steps = static_cast<double>(traffic.points.size());
  views::TrafficTotals sum;
  for (const views::TrafficPoint& point : traffic.points) {
    const views::TrafficTotals flow = views::sum(point);
    sum.bytes += flow.bytes, sum.seconds += flow.seconds, sum.waited += flow.waited;
  }
  print_text("%zu devices sent %s a step to each other; each was %s a step in collectives, %s of it waiting\n",
             traffic.points.front().devices.size(),
             to_text(Bytes(static_cast<std::int64_t>(sum.bytes / steps))).c_str(),
             to_text(Seconds(sum.seconds / steps)).c_str(), to_text(Seconds(sum.waited / steps)).c_str());
}

}  // namespace

int run_command(const Common& common, const RunArgs& args) {
  jobs::JobRequest request{.experiment = {}, .runs_folder = common.runs_folder, .resume = std::nullopt};
  if (args.resume.empty()) {
    request.experiment = load_experiment(common);
  } else {
    request.resume = args.resume;
    request.resume_sets = common.sets;
  }
  store::RunId run;
  request.on_run = [&](const store::RunId& id) { run = id; };
  Narrator narrator;
  const EventSink sink = [&](const Event& event) {
    narrator.tell(event);
    if (common.output == Output::json) print_json_line(to_json(event, run));
  };
  const auto [finished, error] = jobs::run_blocking(request, sink, common.stop);
  if (common.output == Output::text) {
    summarise(finished, run);
    summarise(narrator.view().traffic());
  }
  if (finished.state == RunState::cancelled) return 130;
  if (finished.state == RunState::done) return 0;
  return error == Error::Kind::bad_input ? 2 : 1;
}

}  // namespace mw::app
