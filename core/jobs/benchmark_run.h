// SPDX-License-Identifier: Apache-2.0
// A benchmark of this machine as a run of the store: its LoRA steps are training steps, which `calibrate` accepts.
#pragma once
#include "core/jobs/machine_benchmark.h"
#include "core/plan/calibration/machine_rates.h"
#include "core/store/store.h"

namespace mw::jobs {

enum class BenchmarkLength { full, quick };  // quick: fewer and shorter rounds, and a LoRA step of one row

// `model`: a checkpoint's folder, or the id of a built-in model, which gets random weights. Throws the errors of
// reading the folder's config and MODEL-ID.
MachineBenchmarkRequest benchmark_request(const std::string& model, BenchmarkLength length, int threads = 0);

// The figures as the planner takes them; none if the model is not in the catalogue, or nothing fitted.
std::optional<plan::MachineRates> machine_rates(const MachineBenchmarkRequest& request,
                                                const MachineBenchmark& benchmark, const store::RunId& run);
struct SavedBenchmark {
  store::RunId run;
  std::string without_rates{};  // why plans of this machine do not take its rates; empty: they do, or it has none
};
// Stores the measured steps (none where they did not fit) and, as summary, to_json(benchmark), and keeps the rates in
// the user's hardware folder, for plans of this machine; empty: none. Throws the errors of the store and of files.
SavedBenchmark save_benchmark(store::Store& store, const MachineBenchmarkRequest& request,
                              const MachineBenchmark& benchmark, const std::filesystem::path& hardware_folder = {});

}  // namespace mw::jobs
