// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/buffer_timeline.h"

#include <algorithm>

namespace mw::plan {

using engine::Allocation;

BufferTimeline::BufferTimeline(const engine::ModelShape& model, std::span<const Allocation> lasting) : model_(model) {
  for (const Allocation& allocation : lasting) allocate(allocation, "weights and what is learned");
}

void BufferTimeline::run(const engine::Phase& phase, const char* instant) {
  for (const Allocation& own : phase.own) allocate(own, instant);
  if (step_.tokens == 0 || !step_.holds(phase.step)) {
    for (const Allocation& old : activations_) release(old);
    step_ = phase.step;
    activations_ = engine::lay_out_step(model_, step_).allocations;
    for (const Allocation& activations : activations_) allocate(activations, instant);
  }
  keep(phase.kept, instant);
  note_peak(instant);
  for (const Allocation& own : phase.own) release(own);
}

// Logits only grow here: micro-batches differ in size, and the engine keeps the largest while it is not four times too
// large.
void BufferTimeline::keep(const std::vector<Allocation>& wanted, const char* instant) {
  std::map<std::string_view, int> seen;
  for (const Allocation& allocation : wanted) {
    const std::pair key(allocation.label, seen[allocation.label]++);
    Allocation& kept = kept_[key];
    if (kept.bytes >= allocation.bytes) continue;
    release(kept);
    kept = allocation;
    allocate(kept, instant);
  }
}

void BufferTimeline::release(const Allocation& allocation) {
  held_[allocation.category] -= allocation.pages();
}

void BufferTimeline::allocate(const Allocation& allocation, const char* instant) {
  held_[allocation.category] += allocation.pages();
  note_peak(instant);
}

void BufferTimeline::note_peak(const char* instant) {
  for (size_t c = 0; c < kMemoryCategories; ++c)
    plan_.category_peaks.bytes[c] = std::max(plan_.category_peaks.bytes[c], held_.bytes[c]);
  if (held_.total() > plan_.at_peak.total()) plan_.at_peak = held_, plan_.peak_instant = instant;
}

}  // namespace mw::plan
