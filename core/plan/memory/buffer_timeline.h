// SPDX-License-Identifier: Apache-2.0
// Follows the buffers of a device through the phases of a run of the engine, as core/engine/layout lists them: which
// are kept, replaced or released, and what is held at the peak. Any thread.
#pragma once
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/layout/phases.h"
#include "core/plan/memory/memory.h"

namespace mw::plan {

class BufferTimeline {
 public:
  // `lasting`: held during the whole run. The model must outlive this object.
  BufferTimeline(const engine::ModelShape& model, std::span<const engine::Allocation> lasting);
  void run(const engine::Phase& phase, const char* instant);
  void forget_peaks() { plan_ = {}; }  // of earlier phases
  const MemoryPlan& plan() const { return plan_; }

 private:
  void allocate(const engine::Allocation& allocation, const char* instant);
  void release(const engine::Allocation& allocation);
  void note_peak(const char* instant);
  void keep(const std::vector<engine::Allocation>& wanted, const char* instant);

  const engine::ModelShape& model_;
  Ledger held_;
  engine::StepShape step_;
  std::vector<engine::Allocation> activations_;                          // of step_
  std::map<std::pair<std::string_view, int>, engine::Allocation> kept_;  // by label, and number of this label
  MemoryPlan plan_;
};

}  // namespace mw::plan
