// SPDX-License-Identifier: Apache-2.0
// Searches plans for an experiment, prints them (`search --json`) and converts them to edits of the document.
// Thread-safe.
#pragma once
#include <map>
#include <optional>

#include "core/lint/check.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/serving_search.h"
#include "core/plan/search/search.h"

namespace mw::plan {

struct ExperimentSearch {
  Request request;  // of the document itself
  struct Base {
    std::string target;
    model::Stack stack;
    PlanChoice choice;
    Json price;  // price_json() of the target
  };
  std::vector<Base> bases{};  // the document's choice on each target and stack
  // By target: keys to remove from the document when a plan of that target is applied.
  std::map<std::string, std::vector<std::string>> dropped{};
  // Simulated sweeps of a server: cells[i] is that of result.candidates[i]. Candidates that are not simulated follow,
  // ranked by the steady state.
  std::vector<ServingCell> cells{};
  std::string not_simulated{};      // why the others are not
  bool fits = false;                // whether the unchanged document fits into memory
  std::vector<Diagnostic> found{};  // about the server and its requests
  SearchResult result;
  std::vector<lint::Fix> changes{};  // the smallest changes that fit, planned, if it does not
  // The fastest plan on a smaller target with the same chip, if it is faster than all on the document's target, which
  // may not be used in part: a mesh has all devices of its target.
  struct FewerChips {
    Candidate plan;
    int chips = 0, of = 0;
    std::vector<formats::BenchPoint> points{};  // of the simulated sweep
  };
  std::optional<FewerChips> fewer_chips{};
};
// Requests that a search simulates at most, unless one sweep has more: about half a minute of one core.
inline constexpr long kMostSimulated = 500'000;
// A search of a serving experiment also tries replicas, simulates the sweep of the candidates, the first of the steady
// state first until `most_simulated` requests are reached (0: none), and ranks by what it finds. Throws the
// errors of plan_request() and read_rows(), and cancelled() after a stop.
ExperimentSearch search_experiment(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                   const PlanContext& context, const SearchOptions& options, std::stop_token stop = {},
                                   long most_simulated = kMostSimulated);

// Returns a search without results, as edits_to() needs it. `requests`: that of the document first.
ExperimentSearch choices_of(const experiment::Experiment& experiment, const std::vector<Request>& requests);
// Returns the edits that change the document from plan `from` to plan `to`: target with dependent keys, and all varied
// keys.
std::vector<lint::Edit> edits_to(const ExperimentSearch& searched, const PlanChoice& from, const PlanChoice& to);

// Both print the first `top` candidates (0: all).
Json searched_json(const ExperimentSearch& searched, size_t top);
std::string searched_text(const ExperimentSearch& searched, size_t top);

}  // namespace mw::plan
