// SPDX-License-Identifier: GPL-3.0-or-later
// `search`: predicts every legal plan of the experiment and ranks them.
#include <CLI/CLI.hpp>
#include <thread>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/plan/experiment/search_experiment.h"

namespace mw::app {
namespace {

struct SearchOptions {
  size_t top = 10;  // 0: all
  std::string by = "time";
  std::vector<std::string> targets{};  // besides the experiment's own
};

void add_search_options(CLI::App& command, CommonOptions& common, SearchOptions& options) {
  add_file_and_set_options(command, common);
  command.add_option("--top", options.top, "Number of candidates to show; 0 shows all that fit")->capture_default_str();
  command.add_option("--by", options.by, "Ranking criterion")
      ->check(CLI::IsMember({"time", "cost", "memory"}))
      ->capture_default_str();
  command.add_option("--targets", options.targets, "Further targets to compare with the experiment's own")
      ->delimiter(',');
}

int run_search(const CommonOptions& common, const SearchOptions& options) {
  const experiment::Experiment experiment = load_experiment(common);
  const plan::PlanContext context = load_context();
  ProgressLine line;
  plan::SearchOptions search;
  search.by = options.by == "cost"     ? plan::RankBy::cost
              : options.by == "memory" ? plan::RankBy::memory
                                       : plan::RankBy::time;
  search.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  search.progress = [&](std::int64_t done, std::int64_t total) {
    line.update("search  " + std::to_string(100 * done / std::max<std::int64_t>(1, total)) + " %");
  };
  const plan::ExperimentSearch found =
      plan::search_experiment(experiment, options.targets, context, search, common.stop);
  line.clear();
  print_answer(common, plan::searched_json(found, options.top), plan::searched_text(found, options.top));
  return 0;
}

}  // namespace

Subcommand search_subcommand() {
  return make_subcommand("search", "Predict and rank every legal mesh, batch, remat policy and loss chunk",
                         add_search_options, run_search);
}

}  // namespace mw::app
