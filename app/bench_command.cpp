// SPDX-License-Identifier: GPL-3.0-or-later
// `bench`: measures the engine on this machine with one model.
#include <CLI/CLI.hpp>
#include <cmath>

#include "app/output.h"
#include "app/progress.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/jobs/machine_benchmark.h"
#include "core/model/catalogue.h"

namespace mw::app {
namespace {

struct BenchOptions {
  std::string model = "gemma3-270m";
  int threads = 0;
  bool quick = false;
};

void add_bench_options(CLI::App& command, CommonOptions&, BenchOptions& options) {
  command.add_option("model", options.model,
                     "Folder of a checkpoint, or id of a built-in model with random weights (default: gemma3-270m)");
  command.add_option("--threads", options.threads, "Threads (default: all of the machine)")->check(CLI::Range(1, 1024));
  command.add_flag("--quick", options.quick, "Fewer and shorter rounds, and a LoRA step of one row");
}

jobs::MachineBenchmarkRequest benchmark_request(const BenchOptions& options) {
  jobs::MachineBenchmarkRequest request{.threads = options.threads};
  if (path_exists(options.model)) {
    request.config = formats::read_config(options.model);
    request.weights = options.model;
    if (request.config.id.empty()) request.config.id = options.model;
  } else {
    request.config = model::catalogue_config(options.model);
  }
  if (options.quick) {
    request.peak_seconds = 0.3, request.seconds = 1, request.least_rounds = 2;
    request.decode_tokens = 4, request.train_rows = 1;
  }
  return request;
}

int run_bench(const CommonOptions& common, const BenchOptions& options) {
  ProgressLine line;
  const jobs::MachineBenchmark benchmark = jobs::measure_machine(
      benchmark_request(options),
      [&](const jobs::BenchmarkProgress& progress) {
        std::string text =
            "bench  " + std::to_string(progress.done) + " of " + std::to_string(progress.total) + "  " + progress.part;
        if (progress.seconds_left) text += ", about " + std::to_string(std::lround(*progress.seconds_left)) + " s left";
        line.update(text);
      },
      common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(jobs::to_json(benchmark));
  else
    print_text("%s", jobs::to_text(benchmark).c_str());
  return 0;
}

}  // namespace

Subcommand bench_subcommand() {
  return make_subcommand("bench", "Measure this machine: peak rates, prefill, decoding and LoRA steps",
                         add_bench_options, run_bench);
}

}  // namespace mw::app
