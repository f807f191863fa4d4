// SPDX-License-Identifier: GPL-3.0-or-later
// `watch -- COMMAND...`: another program's run, live in the store.
#include <cstdio>

#include "app/commands.h"
#include "core/import/watched.h"

namespace mw::app {

int watch_command(const Common& common, const WatchArgs& args) {
  store::RunId run;
  const EventSink sink = [&](const Event& event) {
    if (const auto* s = std::get_if<event::Started>(&event.body)) run = s->info.value("run", run);
    if (common.output == Output::json)
      print_json_line(to_json(event, run));
    else if (const auto* m = std::get_if<event::Metric>(&event.body))
      print_text("step %ld  %s %s\n", m->step, m->name.c_str(), number_text(m->value).c_str());
  };
  const importing::OnLine on_line = [&](const std::string& line) { print_error("%s\n", line.c_str()); };
  const auto [finished, error] = importing::watch(
      {.command = args.command, .runs_folder = common.runs_folder, .name = args.name}, sink, on_line, common.stop);
  if (common.output == Output::text)
    print_text("%s %s: %ld steps in %s%s%s\n", run.c_str(), std::string(to_string(finished.state)).c_str(),
               finished.steps, to_text(Seconds(finished.seconds)).c_str(), finished.error.empty() ? "" : "; ",
               finished.error.c_str());
  if (finished.state == RunState::cancelled) return 130;
  return finished.state == RunState::done ? 0 : 1;
}

}  // namespace mw::app
