// SPDX-License-Identifier: GPL-3.0-or-later
// Test data only: a sweep's record of made-up but consistent numbers, told from (rate, input length) by hand: TTFT is
// slow * input_len / 10 ms, doubled beyond 16 requests/s, where the server is overloaded; TPOT 10 ms + rate / 10.
#pragma once
#include "core/formats/results/bench_result.h"
#include "core/store/store.h"

namespace mw::test {

struct SweepShape {
  std::vector<double> rates{1, 2, 4, 8, 16, 32};
  std::vector<int> input_lens{512, 4096};
  int requests = 60, output_len = 32;
  formats::ResultProvenance provenance = formats::ResultProvenance::predicted;
  std::string target = "v6e-8";
  double slow = 1;
};
formats::BenchPoint sweep_point(int input_len, double rate, const SweepShape& shape);
std::vector<Event> sweep_events(const std::string& name, const SweepShape& shape);
store::RunId add_sweep(const std::filesystem::path& runs_folder, const std::string& name, const SweepShape& shape = {});

}  // namespace mw::test
