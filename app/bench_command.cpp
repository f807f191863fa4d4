// SPDX-License-Identifier: GPL-3.0-or-later
// `bench`: measures the engine on this machine with one model.
#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/jobs/benchmark_run.h"

namespace mw::app {
namespace {

struct BenchOptions {
  std::string model = "gemma3-270m";
  int threads = 0;
  bool quick = false, save = false;
};

void add_bench_options(CLI::App& command, CommonOptions&, BenchOptions& options) {
  command.add_option("model", options.model,
                     "Folder of a checkpoint, or id of a built-in model with random weights (default: gemma3-270m)");
  command.add_option("--threads", options.threads, "Threads (default: all of the machine)")->check(CLI::Range(1, 1024));
  command.add_flag("--quick", options.quick, "Fewer and shorter rounds, and a LoRA step of one row");
  command.add_flag("--save", options.save, "Store the benchmark as a run, and its rates for plans of this machine");
}

int run_bench(const CommonOptions& common, const BenchOptions& options) {
  const jobs::MachineBenchmarkRequest request = jobs::benchmark_request(
      options.model, options.quick ? jobs::BenchmarkLength::quick : jobs::BenchmarkLength::full, options.threads);
  std::optional<store::Store> store;
  if (options.save) {  // before the measurement, so that an error costs no time
    store.emplace(common.runs_folder);
    plan::own_measurements(user_hardware_folder());
  }
  ProgressLine line;
  const jobs::MachineBenchmark benchmark = jobs::measure_machine(
      request,
      [&](const jobs::BenchmarkProgress& progress) {
        std::string text =
            "bench  " + std::to_string(progress.done) + " of " + std::to_string(progress.total) + "  " + progress.part;
        if (progress.seconds_left) text += ", about " + std::to_string(std::lround(*progress.seconds_left)) + " s left";
        line.update(text);
      },
      common.stop);
  line.clear();
  const jobs::SavedBenchmark saved =
      store ? jobs::save_benchmark(*store, request, benchmark, user_hardware_folder()) : jobs::SavedBenchmark();
  if (common.output == Output::json) {
    Json json = jobs::to_json(benchmark);
    if (store) json["run_id"] = saved.run;
    print_json(json);
  } else {
    print_text("%s", jobs::to_text(benchmark).c_str());
    if (store) print_text("\nSaved as %s\n", saved.run.c_str());
  }
  if (!saved.without_rates.empty()) line.message("warning: " + saved.without_rates);
  return 0;
}

}  // namespace

Subcommand bench_subcommand() {
  return make_subcommand("bench", "Measure this machine: peak rates, prefill, decoding and LoRA steps",
                         add_bench_options, run_bench);
}

}  // namespace mw::app
