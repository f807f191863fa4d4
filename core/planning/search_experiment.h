// SPDX-License-Identifier: Apache-2.0
// A search from a document: its targets as requests, the answer of `search --json`, and the best plans as edits. Any
// thread.
#pragma once
#include <map>

#include "core/plan/search/smallest_changes.h"
#include "core/planning/plan_request.h"

namespace mw::planning {

// The document's own target first, then the others (the document retargeted). Throws Error as plan_request does.
std::vector<plan::Request> search_requests(const experiment::Experiment& experiment,
                                           const std::vector<std::string>& targets,
                                           const hardware::Catalogue& catalogue);

struct ExperimentSearch {
  plan::Request request;  // the document's own
  // By target: keys that a document leaves behind when it takes a plan of that target.
  std::map<std::string, std::vector<std::string>> dropped{};
  bool fits = false;  // as it stands
  plan::SearchResult result;
  std::vector<plan::PlanChange> changes{};  // the smallest that fit, where it does not
};
ExperimentSearch search_experiment(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                   const hardware::Catalogue& catalogue, const plan::SearchOptions& options,
                                   std::stop_token stop = {});

// Printed by `search --json`: the first `top` candidates (0: all).
// From the document as it stands to a plan that was found: its target, with what goes with it, and all that is varied.
std::vector<lint::Edit> edits_to(const ExperimentSearch& searched, const plan::PlanChoice& from,
                                 const plan::PlanChoice& to);

Json searched_json(const ExperimentSearch& searched, size_t top);
std::string searched_text(const ExperimentSearch& searched, size_t top);

}  // namespace mw::planning
