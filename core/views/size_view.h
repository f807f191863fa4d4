// SPDX-License-Identifier: Apache-2.0
// Content of the page of a size run, built from its events. Thread-safe.
#pragma once
#include <optional>
#include <vector>

#include "core/serve/load/sizing.h"
#include "core/views/run_view.h"

namespace mw::views {

// Throws POINT if the values are not a point of a size run.
serve::MeasuredSize size_point(const Json& values);

struct SizeView {
  struct Line {  // one workload with or without adapters
    options::Workload workload{};
    bool adapters = false;
    std::vector<serve::MeasuredSize> points{};  // by batch
  };
  std::vector<Line> lines;   // in order of measurement; includes planned workloads without points
  std::vector<int> batches;  // planned or measured, ascending
  std::optional<Bytes> capacity;
  bool is_predicted = false;  // for another target: points have predicted times
  std::string target;         // of a predicted run
  Bytes highest;              // largest measured total, or largest predicted one of a batch that fits
  Bytes largest_refused;      // largest predicted total of the batches that do not fit; 0 if all fit
  Ledger category_most;       // largest value of each category, measured or predicted
  std::size_t ignored = 0;    // invalid points
  bool empty() const;         // whether there is no point yet
  bool has_both() const;      // points with and without adapters
  const Line* find(options::Workload workload, bool adapters) const;  // null: none
};
SizeView size_view(const RunView& run);

}  // namespace mw::views
