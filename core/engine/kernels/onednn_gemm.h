// SPDX-License-Identifier: Apache-2.0
// Products of bf16 rows with panels of a weight (packed.h) through oneDNN, which generates AMX code for them. Panels of
// 32 columns are oneDNN's format BA16a32b2a, so that weights are read in place. The calling thread computes alone: the
// engine's pool decides who computes what. Every thread caches its primitives by shape.
#pragma once
#include <cstdint>

namespace mw::engine {

// Whether this processor and system have AMX for bf16 and oneDNN uses it (ONEDNN_MAX_CPU_ISA may forbid that).
bool has_onednn_amx();

// Rows of A and panels of B that one call multiplies, and its depth, a multiple of kAmxDepth: few shapes, so that the
// cache stays small. An output has the same bits in all of them, because a call does not split the depth.
inline constexpr std::int64_t kAmxRows[] = {128, 64, 32, 16}, kAmxPanels[] = {4, 1};
inline constexpr std::int64_t kAmxDepth = 32, kAmxMostDepth = 2048;
inline constexpr std::int64_t kOnednnScratchBytes = 8192;

// Rows of A with gaps are copied in slices of this depth.
inline constexpr std::int64_t kAmxCopiedDepth = 512;
// The depth of the slices in which rows of `depth` without gaps are multiplied; sums of slices are added in order.
constexpr std::int64_t amx_slice(std::int64_t depth) {
  return depth > kAmxMostDepth || depth % kAmxDepth > 0 ? kAmxCopiedDepth : depth;
}

struct PanelShape {
  int rows = 0, panels = 0;  // indices in kAmxRows and kAmxPanels
  std::int64_t depth = 0;
};

struct PanelOperands {
  const std::uint16_t* a;       // rows one after another, without gaps: oneDNN has no AMX code for others
  const std::uint16_t* panels;  // one after another, without gaps
  float* tile;                  // [rows, columns of the panels], receives the sums
  void* scratch;                // kOnednnScratchBytes, aligned to cache lines
};

class PanelProduct;
PanelProduct& panel_product(const PanelShape& shape);  // of the calling thread
void run(PanelProduct& product, const PanelOperands& operands);

}  // namespace mw::engine
