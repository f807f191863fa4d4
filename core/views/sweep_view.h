// SPDX-License-Identifier: Apache-2.0
// Content of the Serve page, built from the events of a sweep. Thread-safe.
#pragma once
#include <vector>

#include "core/audit/audit.h"
#include "core/formats/results/bench_result.h"
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
  std::vector<audit::AuditFinding> findings{};
  options::Slo slo{};
  std::size_t ignored = 0;  // invalid points
};
SweepView sweep_view(const RunView& run);
// Builds the view of a running sweep incrementally. Drops the inter-token times, which no chart shows.
class GrowingSweep {
 public:
  explicit GrowingSweep(const Json& info);  // of event::Started
  void add(const event::Point& point);
  SweepView view() const;
  SweepView take();  // moves the data out; call last

 private:
  formats::BenchSet set_;
  options::Slo slo_;
  std::size_t ignored_ = 0;
};
SweepView sweep_view(formats::BenchSet set, const options::Slo& slo);  // of a file or a shipped set

}  // namespace mw::views
