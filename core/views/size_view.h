// SPDX-License-Identifier: Apache-2.0
// What the page of a size run draws and lists, from its events alone. Plain values; any thread.
#pragma once
#include <optional>
#include <vector>

#include "core/serve/load/sizing.h"
#include "core/views/run_view.h"

namespace mw::views {

// Throws Error for values that are no point of a sizing.
serve::SizePoint size_point(const Json& values);

struct SizeView {
  struct Line {  // one workload
    serve::Workload workload{};
    std::vector<serve::SizePoint> points{};  // by batch
  };
  std::vector<Line> lines;   // as they are measured; those without a point yet too, where the run says them
  std::vector<int> batches;  // asked for or measured, ascending
  std::optional<Bytes> capacity;
  Bytes highest;            // largest measured total
  Bytes largest_refused;    // largest predicted total of the batches that do not fit; 0: all fit
  Ledger category_most;     // largest value of each category, measured or predicted
  std::size_t ignored = 0;  // points that could not be read
  bool empty() const;       // no point yet
};
SizeView size_view(const RunView& run);

}  // namespace mw::views
