// SPDX-License-Identifier: GPL-3.0-or-later
// `search`: every legal plan of the experiment, ranked.
#include <cstdio>
#include <thread>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/planning/search_experiment.h"

namespace mw::app {

int search_command(const Common& common, const SearchArgs& args) {
  const experiment::Experiment experiment = load_experiment(common);
  const auto catalogue = load_catalogue();
  ProgressLine line;
  plan::SearchOptions options;
  options.by = args.by == "cost" ? plan::RankBy::cost : args.by == "memory" ? plan::RankBy::memory : plan::RankBy::time;
  options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.progress = [&](std::int64_t done, std::int64_t total) {
    if (done % 64 == 0) line.update("search  " + std::to_string(100 * done / std::max<std::int64_t>(1, total)) + " %");
  };
  const planning::ExperimentSearch found =
      planning::search_experiment(experiment, args.targets, catalogue, options, common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(planning::searched_json(found, args.top));
  else
    print_text("%s", planning::searched_text(found, args.top).c_str());
  return 0;
}

}  // namespace mw::app
