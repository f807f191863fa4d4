// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/out_of_memory.h"

#include <algorithm>

#include "core/lint/fixes/memory_fixes.h"

namespace mw::jobs {
namespace {

constexpr size_t kNamed = 8;

}  // namespace

MemoryReport report_of(const engine::OutOfMemory& failure, const experiment::Experiment& experiment,
                       const plan::PlanContext* context, std::stop_token stop) {
  const engine::OutOfMemory::State& m = failure.moment;
  Json largest = Json::array(), fixes = Json::array();
  for (size_t i = 0; i < std::min(kNamed, m.largest.size()); ++i)
    largest.push_back({{"tensor", m.largest[i].label},
                       {"category", to_string(m.largest[i].category)},
                       {"bytes", m.largest[i].bytes.value},
                       {"buffers", m.largest[i].buffers}});
  Problem problem = failure.problem();
  std::string smallest;
  for (const lint::MemoryFix& fix : lint::memory_fixes(experiment, context, std::move(stop))) {
    Json edits = Json::object();
    for (const auto& [key, value] : fix.edits) edits[key] = value;
    const lint::Fix offered = lint::fix_of(fix);
    fixes.push_back({{"edits", std::move(edits)},
                     {"label", offered.label},
                     {"cost", offered.cost},
                     {"slowdown", fix.slowdown ? Json(*fix.slowdown) : Json(nullptr)},
                     {"peak_bytes", fix.peak.value}});
    smallest += (smallest.empty() ? "set " : "; or ") + to_text(fix);
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

std::optional<lint::Diagnostic> memory_diagnostic(const event::Finished& finished) {
  const Json* report = finished.summary.is_object() ? find_member(finished.summary, "out_of_memory") : nullptr;
  const Json* fixes = report && report->is_object() ? find_member(*report, "fixes") : nullptr;
  if (!fixes || !fixes->is_array()) return std::nullopt;
  lint::Diagnostic out{.problem = {.id = "MEMORY", .message = finished.error}, .why = {}, .evidence = {}};
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
