// SPDX-License-Identifier: Apache-2.0
// Diagnoses an experiment: validation errors first, then the findings of the checker's rules, each with the reason, the
// evidence and fixes that can be applied to the document. Thread-safe.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/lint/check.h"
#include "core/plan/document/plan_request.h"

namespace mw::plan {

struct Diagnostic {
  Problem problem;            // problem.fix describes the first fix, with its --set options
  std::string why, evidence;  // of the rule; empty for validation errors
  std::vector<lint::Fix> fixes{};
  bool operator==(const Diagnostic&) const = default;
};

// Facts besides the document. Rules whose facts are missing are reported as unchecked.
struct DiagnosticFacts {
  const Plan* plan = nullptr;                 // of the same document
  const Request* request = nullptr;           // request of the plan; null: made from the document
  std::optional<lint::MemoryInput> memory{};  // used without a plan
  std::optional<double> real_share{};         // share of real tokens in padded batches; used without a plan
  std::optional<bool> system_turns{};         // whether the data has system turns
};
enum class Fixes { at_hand, searched };  // searched: also searches for the smallest changes that fit into memory
struct Diagnosis {
  std::vector<Diagnostic> found;  // validation errors first, then by severity
  std::vector<lint::UncheckedRule> unchecked{};
  size_t of_the_document = 0;  // number of validation errors at the start of `found`
  std::vector<Diagnostic> beyond_the_document() const;
};
// Reads only config.json, safetensors headers and histograms of the files that the document references.
Diagnosis diagnose(const experiment::Experiment& experiment, const PlanContext& context,
                   const DiagnosticFacts& known = {}, Fixes fixes = Fixes::at_hand, const std::stop_token& stop = {});

// Those of the rules of servers (SERVE-1 ...), for commands that predict a server without showing its whole plan.
std::vector<Diagnostic> server_diagnostics(const experiment::Experiment& experiment, const PlanContext& context,
                                           const DiagnosticFacts& known);

// The smallest changes of settings that make a plan fit, of which none can be left out, with what the plan says after
// each: on the same devices first, then more virtual devices or a larger target, or one of `others`. `plan`: of
// `request`, whose data the changes share. Empty if nothing fits.
std::vector<lint::Fix> fixes_that_fit(const experiment::Experiment& experiment, const PlanContext& context,
                                      const Request& request, const Plan& plan, const std::stop_token& stop = {},
                                      std::span<const Request> others = {});

// Throws the first reason why the stack would not start the planned experiment, with the checker's fix. `request`: of
// the plan. A plan that does not fit passes.
void require_runnable(const experiment::Experiment& experiment, const PlanContext& context, const Request& request,
                      const Plan& plan);

lint::CheckInput check_facts(const experiment::BoundExperiment& config, const Request& request,
                             const DiagnosticFacts& known);

void apply(experiment::Experiment& experiment, const lint::Fix& fix);
Json sets_json(const std::vector<lint::Edit>& edits);  // ["mesh.fsdp=2", "mesh.tp=4"]
std::string set_text(const lint::Fix& fix);            // "--set mesh.fsdp=2 --set mesh.tp=4"
// {id, severity, message, place, fix, fixes: [{label, cost, set: ["mesh.tp=4"], slowdown?, outcome?: {fits,
// seconds_per_step, hours, usd, usd_per_million_tokens, peak_bytes}}], why, evidence}
Json to_json(const Diagnostic& diagnostic);
Json to_json(const std::vector<Diagnostic>& diagnostics);
std::string line_text(const Problem& problem);                    // "warning SERVE-5: ..." and a line end
Json positive_or_null(double value);                              // a price, or null without one
Json to_json(const std::vector<lint::UncheckedRule>& unchecked);  // [{id, needs}]

}  // namespace mw::plan
