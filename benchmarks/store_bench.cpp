// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of the hash chain of a run: recording an event, its link alone, and a checkpoint's bytes.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "core/base/files.h"
#include "core/store/chain.h"

namespace mw {
namespace {

namespace fs = std::filesystem;

class BenchFolder {
 public:
  BenchFolder() { make_folders(path); }
  ~BenchFolder() { remove_tree(path); }
  const fs::path path = fs::temp_directory_path() / "meshwright-store-bench";
};

Event metric(long step) {
  return {static_cast<double>(step), event::Metric{"train/loss", step, 1.0 / static_cast<double>(step + 1)}};
}

// Events of a run, committed by the store as they are during training.
void record_event(benchmark::State& state) {
  const BenchFolder folder;
  store::Store store(folder.path);
  const store::RunId run = store.create(experiment::Experiment(), "bench");
  long step = 0;
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) store.append(run, metric(++step));
    store.flush();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(record_event)->Unit(benchmark::kMillisecond);

void link_event(benchmark::State& state) {
  const Event event = metric(12);
  const store::EventColumns columns = store::columns_of(event);
  const std::string json = to_json(event, "run-1").dump();
  Sha256 sha;
  Sha256Digest link{};
  for (auto _ : state) link = store::next_link(sha, link, columns, json);
  benchmark::DoNotOptimize(link);
}
BENCHMARK(link_event);

void hash_checkpoint(benchmark::State& state) {
  const BenchFolder folder;
  const auto bytes = static_cast<size_t>(state.range(0)) << 20;
  write_file_atomically(folder.path / "trainer_state.safetensors", std::string(bytes, 'w'));
  for (auto _ : state) benchmark::DoNotOptimize(store::hashed_files(folder.path));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(hash_checkpoint)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mw

BENCHMARK_MAIN();
