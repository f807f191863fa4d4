// SPDX-License-Identifier: Apache-2.0
// The smallest changes of settings that make a plan fit. Any thread.
#pragma once
#include "core/plan/search/search.h"

namespace mw::plan {

// For a plan that does not fit: the changes that make it fit and of which no part alone does, fewest settings first,
// then by what they cost in time. f32 weights may become bf16. `larger`: the same request on other targets.
struct PlanChange {
  std::vector<lint::Edit> edits{};
  std::string label{};  // "Lower the batch to 1 (accumulation 8)"
  int settings = 1;     // how many are changed
  double slowdown = 0;  // seconds of a step against those of the plan that does not fit, less 1; negative: faster
  double seconds = 0, usd = 0;
  Bytes peak{};
};
std::vector<PlanChange> smallest_changes(const Request& request, std::span<const Request> larger = {},
                                         const SearchOptions& options = {}, std::stop_token stop = {});
lint::Fix fix_of(const PlanChange& change);

}  // namespace mw::plan
