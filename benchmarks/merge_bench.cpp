// SPDX-License-Identifier: GPL-3.0-or-later
// Measures merging until all data is on disk, with its check or without it: seconds, bytes, changed tensors, peak
// memory, CPU seconds and the verdict. merge_speed.sh compares it with copying the same bytes.
//   mw_merge_bench BASE ADAPTER OUT [unchecked]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/train/merge.h"

namespace {

rusage used_so_far() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}
double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_unchecked = argc == 5 && std::string(argv[4]) == "unchecked";
  if (argc != 4 && !is_unchecked) return std::fprintf(stderr, "mw_merge_bench BASE ADAPTER OUT [unchecked]\n"), 2;
  try {
    const auto start = std::chrono::steady_clock::now();
    const mw::formats::PeftAdapter adapter = mw::train::read_adapter(argv[2], argv[1]);
    mw::StagedFolder staged(argv[3]);
    mw::train::CheckedMerge done;
    if (is_unchecked)
      done.merged = mw::train::merge_into(staged.path(), argv[1], adapter, {});
    else
      done = mw::train::merge_checked(staged.path(), argv[1], adapter, {});
    staged.commit();
    const rusage used = used_so_far();
    std::printf("%.3f %ld %ld %ld %.2f %s\n", mw::seconds_since(start), static_cast<long>(done.merged.written.value),
                done.merged.merged, used.ru_maxrss * 1024, seconds(used.ru_utime) + seconds(used.ru_stime),
                std::string(mw::to_string(done.check.verdict)).c_str());
    return is_unchecked || done.check.verdict == mw::train::ParityVerdict::passed ? 0 : 1;
  } catch (const mw::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
