// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/out_of_memory.h"

#include <algorithm>

#include "core/plan/document/engine_request.h"
#include "core/plan/search/smallest_changes.h"

namespace mw::jobs {
namespace {

constexpr size_t kNamed = 8;

struct Remedy {
  std::vector<lint::Fix> fixes{};
  Bytes capacity{};
};
// Nothing if the experiment cannot be planned.
Remedy remedy_of(const experiment::Experiment& experiment, const plan::PlanContext& context,
                 const std::stop_token& stop) try {
  plan::Request request = plan::plan_request(experiment, context);
  if (request.work == plan::Work::train) plan::read_rows(experiment.config(), request, stop);
  const plan::Plan plan = plan::predict(request);
  return {plan::fixes_that_fit(experiment, context, request, plan, stop), plan.memory.capacity};
} catch (const Error&) {
  return {};
}

// "train.remat=layer (predicted peak 12 MiB of 16 MiB, 30 % slower)"
std::string to_text(const lint::Fix& fix, Bytes capacity) {
  std::string text;
  for (const auto& [key, value] : fix.edits)
    text += (text.empty() ? "" : " with ") + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text + " (predicted peak " + to_text(fix.outcome->peak) + " of " + to_text(capacity) +
         (fix.slowdown ? ", " + plan::slowdown_text(*fix.slowdown) : std::string()) + ")";
}

}  // namespace

MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       const plan::PlanContext* context, const std::stop_token& stop) {
  const engine::OutOfMemory::State& m = failure.moment;
  Json largest = Json::array(), fixes = Json::array();
  for (size_t i = 0; i < std::min(kNamed, m.largest.size()); ++i)
    largest.push_back({{"tensor", m.largest[i].label},
                       {"category", to_string(m.largest[i].category)},
                       {"bytes", m.largest[i].bytes.value},
                       {"buffers", m.largest[i].buffers}});
  Problem problem = failure.problem();
  std::string smallest;
  const Remedy remedy = remedy_of(experiment, context ? *context : plan::PlanContext{}, stop);
  for (const lint::Fix& fix : remedy.fixes) {
    Json edits = Json::object();
    for (const auto& [key, value] : fix.edits) edits[key] = value;
    fixes.push_back({{"edits", std::move(edits)},
                     {"label", fix.label},
                     {"cost", fix.cost},
                     {"slowdown", fix.slowdown ? Json(*fix.slowdown) : Json(nullptr)},
                     {"peak_bytes", fix.outcome->peak.value}});
    smallest += (smallest.empty() ? "set " : "; or ") + to_text(fix, remedy.capacity);
  }
  if (!smallest.empty()) problem.fix = smallest;
  return {Error(std::move(problem), failure.kind()),
          {{"out_of_memory",
            {{"device", m.device},
             {"category", to_string(m.category)},
             {"tensor", m.label},
             {"phase", m.phase},
             {"wanted_bytes", m.wanted.value},
             {"capacity_bytes", m.capacity.value},
             {"held", to_json(m.held)},
             {"largest", std::move(largest)},
             {"fixes", std::move(fixes)}}}}};
}

std::optional<plan::Diagnostic> memory_diagnostic(const event::Finished& finished) {
  const Json* report = finished.summary.is_object() ? find_member(finished.summary, "out_of_memory") : nullptr;
  const Json* fixes = report && report->is_object() ? find_member(*report, "fixes") : nullptr;
  if (!fixes || !fixes->is_array()) return std::nullopt;
  plan::Diagnostic out{.problem = {.id = "MEMORY", .message = finished.error}, .why = {}, .evidence = {}};
  const auto text = [](const Json& fix, const char* key) {
    const Json* value = fix.is_object() ? find_member(fix, key) : nullptr;
    return value && value->is_string() ? value->get<std::string>() : std::string();
  };
  for (const Json& fix : *fixes) {
    const Json* edits = fix.is_object() ? find_member(fix, "edits") : nullptr;
    if (!edits || !edits->is_object()) continue;
    lint::Fix& offered = out.fixes.emplace_back(lint::Fix{.label = text(fix, "label"), .cost = text(fix, "cost")});
    for (const auto& [key, value] : edits->items()) offered.edits.push_back({key, value});
  }
  return out;
}

}  // namespace mw::jobs
