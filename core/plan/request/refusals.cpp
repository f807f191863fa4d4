// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/refusals.h"

#include "core/base/counted.h"

namespace mw::plan {
namespace {

Problem problem_of(const lint::Finding& finding) {
  return {.id = finding.id,
          .severity = finding.severity,
          .message = finding.message,
          .place = finding.place,
          .found = finding.found,
          .expected = finding.expected};
}

}  // namespace

lint::CheckInput check_input(const Request& r) {
  lint::CheckInput input{.config = r.model, .inventory = model::TensorInventory({}, {})};
  input.target = r.target;
  input.stack = r.stack;
  input.purpose = r.work == Work::train ? lint::Purpose::train : lint::Purpose::serve;
  input.mesh = r.mesh;
  input.rules = r.rules;
  input.asked = r.places;
  input.remat = r.train.remat;
  input.dtype = weight_type(r.weights);
  input.batch = static_cast<int>(r.train.batch);
  input.accumulation = r.train.accumulation;
  input.max_len = r.lengths.max_len;
  input.loss_chunk = r.train.loss_chunk;
  input.packing = r.lengths.rows == RowLayout::packed;
  if (r.work == Work::serve) input.server = lint::ServerInput{r.serve};
  return input;
}

std::vector<Problem> refusals(const Request& request, const mesh::Placement& placement,
                              std::optional<std::int64_t> longest_request) {
  std::vector<Problem> out;
  for (const Problem& p : placement.problems)
    if (p.severity == Severity::error) out.push_back(p);
  lint::CheckInput input = check_input(request);
  if (input.server) input.server->longest_request = longest_request;
  for (const lint::Finding& f : lint::check_refusals(input)) out.push_back(problem_of(f));
  const int most = request.model.max_positions, longest = request.lengths.max_len;
  if (request.work == Work::train && request.engine && most > 0 && longest > most)
    out.push_back({.id = "CONTEXT",
                   .message = "rows are longer than the context of the model",
                   .place = "data.max_len",
                   .found = counted(longest, "token"),
                   .expected = "at most " + std::to_string(most),
                   .fix = "set data.max_len=" + std::to_string(most)});
  return out;
}

}  // namespace mw::plan
