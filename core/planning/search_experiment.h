// SPDX-License-Identifier: Apache-2.0
// Searches plans for an experiment, prints them (`search --json`) and converts them to edits of the document.
// Thread-safe.
#pragma once
#include <map>
#include <optional>

#include "core/plan/search/smallest_changes.h"
#include "core/planning/plan_request.h"

namespace mw::planning {

struct ExperimentSearch {
  plan::Request request;  // of the document itself
  struct Base {
    std::string target;
    plan::Stack stack;
    plan::PlanChoice choice;
    Json price;  // price_json() of the target
  };
  std::vector<Base> bases{};  // the document's choice on each target and stack
  // By target: keys to remove from the document when a plan of that target is applied.
  std::map<std::string, std::vector<std::string>> dropped{};
  bool fits = false;  // whether the unchanged document fits into memory
  plan::SearchResult result;
  std::vector<plan::PlanChange> changes{};  // the smallest changes that fit, if it does not
  // The fastest plan on a smaller target with the same chip, if it is faster than all on the document's target, which
  // may not be used in part: a mesh has all devices of its target.
  struct FewerChips {
    plan::Candidate plan;
    int chips = 0, of = 0;
  };
  std::optional<FewerChips> fewer_chips{};
};
ExperimentSearch search_experiment(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                   const plan::PlanContext& context, const plan::SearchOptions& options,
                                   std::stop_token stop = {});

// Returns the edits that change the document from plan `from` to plan `to`: target with dependent keys, and all varied
// keys.
std::vector<lint::Edit> edits_to(const ExperimentSearch& searched, const plan::PlanChoice& from,
                                 const plan::PlanChoice& to);

// Both print the first `top` candidates (0: all).
Json searched_json(const ExperimentSearch& searched, size_t top);
std::string searched_text(const ExperimentSearch& searched, size_t top);

}  // namespace mw::planning
