// SPDX-License-Identifier: GPL-3.0-or-later
// Measures opening one run of N metric events, and then two for a comparison. Arguments: a folder, which is created
// with its two runs if it is missing, and N. Prints JSON: wall and CPU milliseconds, and the largest memory of this
// process.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "core/base/files.h"
#include "core/compare/comparison.h"

namespace mw {
namespace {

void make_runs(const std::filesystem::path& folder, long events) {
  store::Store store(folder);
  for (int i = 0; i < 2; ++i) {
    experiment::Experiment e;
    e.set_value("train.seed", i);
    const store::RunId run = store.create(e, "long " + std::to_string(i));
    store.append(run, {0.1, event::Started{Json{{"steps", events / 4}}}});
    for (long step = 1; step <= events / 4; ++step) {
      const double x = static_cast<double>(step), time = 0.1 + 0.0371 * x;
      for (const char* name : {"train/loss", "train/grad_norm", "train/learning_rate", "train/tokens_per_second"})
        store.append(run, {time, event::Metric{name, step, 3.0 / (x + i + static_cast<double>(name[6]))}});
      if (step % 1000 == 0) store.flush();
    }
    store.append(run, {1e5, event::Finished{RunState::done, events / 4, 1000, 1e5, Bytes(300 << 20), "", Json()}});
  }
}

double memory_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class Work>
Json timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const double before = cpu_ms();
  work();
  return {{"wall_ms", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()},
          {"cpu_ms", cpu_ms() - before},
          {"largest_memory_mib", memory_mib()}};
}

Json run(const std::filesystem::path& folder, long events) {
  if (!is_folder(folder)) make_runs(folder, events);
  Json out{{"events", events}};
  store::Store store(folder);
  std::vector<compare::ComparedRun> runs;
  out["start"] = timed([] {});
  out["open one"] = timed([&] { runs.push_back(compare::compared(store, "run-1")); });
  out["open the other and compare"] = timed([&] {
    runs.push_back(compare::compared(store, "run-2"));
    compare::compare(runs);
  });
  return out;
}

}  // namespace
}  // namespace mw

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: mw_events_bench FOLDER EVENTS\n");
    return 2;
  }
  std::printf("%s\n", mw::run(argv[1], std::atol(argv[2])).dump(2).c_str());
  return 0;
}
