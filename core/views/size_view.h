// SPDX-License-Identifier: Apache-2.0
// Content of the page of a size run, built from its events. Thread-safe.
#pragma once
#include <optional>
#include <vector>

#include "core/serve/load/sizing.h"
#include "core/views/run_view.h"

namespace mw::views {

// Throws POINT if the values are not a point of a size run.
serve::SizePoint size_point(const Json& values);

struct SizeView {
  struct Line {  // one workload
    serve::Workload workload{};
    std::vector<serve::SizePoint> points{};  // by batch
  };
  std::vector<Line> lines;   // in order of measurement; includes planned workloads without points
  std::vector<int> batches;  // planned or measured, ascending
  std::optional<Bytes> capacity;
  Bytes highest;            // largest measured total
  Bytes largest_refused;    // largest predicted total of the batches that do not fit; 0 if all fit
  Ledger category_most;     // largest value of each category, measured or predicted
  std::size_t ignored = 0;  // invalid points
  bool empty() const;       // whether there is no point yet
};
SizeView size_view(const RunView& run);

}  // namespace mw::views
