// SPDX-License-Identifier: Apache-2.0
// The smallest changes of settings that make a plan fit. Any thread.
#pragma once
#include "core/plan/search/search.h"

namespace mw::plan {

// One set of changes that makes a plan fit, of which no proper subset does.
struct PlanChange {
  std::vector<lint::Edit> edits{};
  std::string label{};  // "Lower the batch to 1 (accumulation 8)"
  int settings = 1;     // number of changed settings
  double slowdown = 0;  // relative to the plan that does not fit: 0.1 is 10 % slower
  double seconds = 0, usd = 0;
  Bytes peak{};
};
// The changes that make a plan fit, the smallest first: on the same chips before other targets, then by the number of
// settings, then loss chunk, remat, batch, length of packed rows, sequences, mesh, KV type, weights. Empty if it fits.
// May change f32 weights to bf16. `larger`: the same request on other targets.
std::vector<PlanChange> smallest_changes(const Request& request, std::span<const Request> larger = {},
                                         const SearchOptions& options = {}, std::stop_token stop = {});
lint::Fix fix_of(const PlanChange& change);
// "30 % slower", "2.5 times as slow", "20 % less time", "4 times as fast", or "as fast" within 0.5 %.
std::string slowdown_text(double slowdown);

}  // namespace mw::plan
