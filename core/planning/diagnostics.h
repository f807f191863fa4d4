// SPDX-License-Identifier: Apache-2.0
// The checker's answers for an experiment: what is wrong with its value, then what the rules of core/mesh find, each
// with why, evidence and fixes that can be applied to the document. Any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/lint/check.h"
#include "core/planning/plan_request.h"

namespace mw::planning {

struct Diagnostic {
  Problem problem;            // fix: the first fix in words, with its --set
  std::string why, evidence;  // of the rule; empty for what the table of parameters says
  std::vector<lint::Fix> fixes{};
};
bool same(const Diagnostic& a, const Diagnostic& b);

// What is known besides the document; what is missing is said to be unchecked.
struct DiagnosticFacts {
  const plan::Plan* plan = nullptr;           // of the same document
  const plan::Request* request = nullptr;     // that the plan answers; null: the document's own
  std::optional<lint::MemoryInput> memory{};  // where there is no plan
  std::optional<double> real_share{};         // of the tokens of padded batches, likewise
  std::optional<bool> system_turns{};         // in the data
};
enum class Fixes { at_hand, searched };  // searched: also the smallest changes that fit, which takes a search
struct Diagnosis {
  std::vector<Diagnostic> found;  // the document's own first, then errors first
  std::vector<lint::UncheckedRule> unchecked{};
  size_t of_the_document = 0;  // how many of `found` its validation says
  std::vector<Diagnostic> beyond_the_document() const;
};
// Reads config.json, safetensors headers, histograms and folders that the document names, nothing else of files.
Diagnosis diagnose(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue,
                   const DiagnosticFacts& known = {}, Fixes fixes = Fixes::at_hand);
// With a plan made for the purpose where the document allows one.
Diagnosis diagnostics(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue);

lint::CheckInput check_facts(const experiment::Experiment& experiment, const plan::Request& request,
                             const DiagnosticFacts& known);

void apply(experiment::Experiment& experiment, const lint::Fix& fix);
std::string set_text(const lint::Fix& fix);  // "--set mesh.fsdp=2 --set mesh.tp=4"
// {id, severity, message, place, fix, fixes: [{label, cost, set: ["mesh.tp=4"]}], why, evidence}
Json to_json(const Diagnostic& diagnostic);
Json to_json(const std::vector<lint::UncheckedRule>& unchecked);  // [{id, needs}]

}  // namespace mw::planning
