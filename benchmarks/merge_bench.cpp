// SPDX-License-Identifier: GPL-3.0-or-later
// Measures train::merge until all data is on disk, and the check of all its weights: seconds and peak memory of each.
// merge_speed.sh compares the merge with copying the same bytes.
//   mw_merge_bench BASE ADAPTER OUT
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "core/base/elapsed.h"
#include "core/base/error.h"
#include "core/train/merge.h"
#include "core/train/merge_check.h"

namespace {

long most_held() {  // bytes
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss * 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "mw_merge_bench BASE ADAPTER OUT\n"), 2;
  try {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const mw::formats::Adapter adapter = mw::train::read_adapter(argv[2], argv[1]);
    const mw::train::MergeResult merged = mw::train::merge(argv[1], adapter, argv[3], 0);
    const double seconds = mw::seconds_since(start);
    const long peak = most_held();
    const auto checking = Clock::now();
    const mw::train::MergeCheck check = mw::train::check_weights(argv[1], adapter, argv[3], 0);
    const double checked = mw::seconds_since(checking);
    std::printf("%.3f %ld %ld %ld %.3f %ld %s\n", seconds, static_cast<long>(merged.written.value), merged.merged, peak,
                checked, most_held(), std::string(mw::to_string(check.verdict)).c_str());
  } catch (const mw::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
