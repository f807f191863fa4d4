// SPDX-License-Identifier: Apache-2.0
// What the Serve page draws of a sweep, from its events alone; live or reloaded. Plain values; any thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/audit/audit.h"
#include "core/serve/load/capacity.h"
#include "core/views/run_view.h"

namespace mw::views {

struct SweepLine {  // one input length
  int input_len = 0;
  std::vector<size_t> points;  // indices into set.points, by rate
  serve::Capacity capacity;
};
struct SweepView {
  formats::BenchSet set;
  std::vector<SweepLine> lines{};
  std::vector<serve::Finding> findings{};
  serve::Slo slo{};
  std::size_t ignored = 0;  // points that could not be read
};
SweepView sweep_view(const RunView& run);
// The same while a run goes: every point is read once. Gaps between tokens stay in the record, nothing draws them.
class GrowingSweep {
 public:
  explicit GrowingSweep(const Json& info);  // of event::Started
  void add(const event::Point& point);
  SweepView view() const;
  SweepView take();  // the last one

 private:
  formats::BenchSet set_;
  serve::Slo slo_;
  std::size_t ignored_ = 0;
};
SweepView sweep_view(formats::BenchSet set, const serve::Slo& slo);  // of a file or a shipped set

}  // namespace mw::views
