// SPDX-License-Identifier: Apache-2.0
#include "core/compare/replay_explained.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/units.h"
#include "core/compare/attribution.h"
#include "core/views/sweep_view.h"

namespace mw::compare {
namespace {

constexpr std::pair<const char*, double ReplayFigures::*> kFigures[] = {
    {"ttft_p99_ms", &ReplayFigures::ttft_p99_ms},
    {"tpot_p99_ms", &ReplayFigures::tpot_p99_ms},
    {"e2el_p99_ms", &ReplayFigures::e2el_p99_ms},
    {"usd", &ReplayFigures::usd},
    {"usd_per_million_output_tokens", &ReplayFigures::usd_per_million_output_tokens}};

std::vector<ReplayFigures> figures_of(const formats::BenchSet& set) {
  std::vector<ReplayFigures> out;
  for (const formats::BenchPoint& point : set.points) out.push_back(replay_figures(point, set.usd_per_hour));
  return out;
}

ReplayFigures difference_of(const ReplayFigures& after, const ReplayFigures& before) {
  ReplayFigures out;
  for (const auto& [key, figure] : kFigures) out.*figure = after.*figure - before.*figure;
  return out;
}

Json figures_json(const ReplayFigures& figures) {
  Json out;
  for (const auto& [key, figure] : kFigures)
    out[key] = std::isfinite(figures.*figure) ? Json(figures.*figure) : Json(nullptr);
  return out;
}

ReplayFigures figures_from(const Json& json) {
  ReplayFigures out;
  for (const auto& [key, figure] : kFigures)
    if (const Json* value = find_member(json, key); value && value->is_number()) out.*figure = value->get<double>();
  return out;
}

// Settings of the load and names do not matter: the load is that of the recording.
bool is_same_server(const experiment::Experiment& a, const experiment::Experiment& b) {
  Json x = a.json(), y = b.json();
  for (Json* json : {&x, &y})
    for (const char* key : {"sweep", "name", "note", "kind"}) json->erase(key);
  return x == y;
}

}  // namespace

ReplayFigures replay_figures(const formats::BenchPoint& point, double usd_per_hour) {
  return {.ttft_p99_ms = point.ttft.percentile(99),
          .tpot_p99_ms = point.tpot.percentile(99),
          .e2el_p99_ms = point.e2el.percentile(99),
          .usd = usd_per_hour * point.duration_s / 3600,
          .usd_per_million_output_tokens = views::usd_per_million(usd_per_hour, point.output_throughput)};
}

ReplayExplanation explain_replay(const Recording& recording, const experiment::Experiment& recorded_server,
                                 const experiment::Experiment& server, const plan::PlanContext& context,
                                 const OnReplayed& progress, const std::stop_token& stop) {
  std::vector<FactorChange> changes = factor_changes(recorded_server, server);
  std::erase_if(changes, [](const FactorChange& change) { return change.name == kLoadFactor; });
  const long each = recording.requests(), all = each * (static_cast<long>(changes.size()) + 2);
  long before = 0;
  const auto simulate = [&](const experiment::Experiment& e) {
    formats::BenchSet set = replay(
        recording, e, context,
        [&](long done, long) {
          if (progress) progress(std::min(before + done, all), all);
        },
        stop);
    before += each;
    return set;
  };
  ReplayExplanation out{.predicted = simulate(server)};
  const std::vector<ReplayFigures> last = figures_of(out.predicted);
  std::vector<ReplayFigures> now = figures_of(simulate(recorded_server));
  out.before = figures_of(recording.set);
  out.recorded = std::any_of(out.before.begin(), out.before.end(),
                             [](const ReplayFigures& f) { return std::isfinite(f.e2el_p99_ms); });
  if (out.recorded)
    out.causes.push_back({"model's error", "recorded -> simulated on the recorded server", now});
  else
    out.before = now;
  std::string name, text;  // of the factors since the last cause
  const auto add = [&](std::vector<ReplayFigures> figures) {
    out.causes.push_back({std::exchange(name, {}), std::exchange(text, {}), std::move(figures)});
  };
  for (const FactorChange& change : changes) {
    name += (name.empty() ? "" : ", ") + change.name;
    text += (text.empty() ? "" : "; ") + change.text;
    if (is_same_server(change.server, server)) {
      add(last);
      continue;
    }
    try {
      add(figures_of(simulate(change.server)));
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) throw;
    }
  }
  if (!name.empty()) add(last);
  const std::vector<ReplayFigures>& reached = out.causes.empty() ? out.before : out.causes.back().after;
  for (size_t i = 0; i < last.size(); ++i)
    if (figures_json(reached[i]) != figures_json(last[i])) {
      name = "the rest", text = "keys that belong to no factor";
      add(last);
      break;
    }
  if (progress) progress(all, all);
  return out;
}

Json to_json(const ReplayExplanation& explanation) {
  Json points = Json::array();
  for (size_t i = 0; i < explanation.predicted.points.size(); ++i) {
    const formats::BenchPoint& p = explanation.predicted.points[i];
    Json point{{"input_len", p.input_len},
               {"load", views::load_text(p)},
               {"recorded", explanation.recorded},
               {"before", figures_json(explanation.before[i])},
               {"causes", Json::array()}};
    const ReplayFigures* previous = &explanation.before[i];
    for (const ReplayCause& cause : explanation.causes) {
      point["causes"].push_back({{"name", cause.name},
                                 {"change", cause.text},
                                 {"after", figures_json(cause.after[i])},
                                 {"delta", figures_json(difference_of(cause.after[i], *previous))}});
      previous = &cause.after[i];
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<ReplayRow> replay_rows(const Json& explanation) {
  std::vector<ReplayRow> rows;
  for (const Json& point : explanation) {
    const std::string name = std::to_string(int_member(point, "input_len", "explained")) + " tokens, " +
                             string_member(point, "load", "explained");
    const Json* before = find_member(point, "before");
    const Json* causes = find_member(point, "causes");
    if (!before || !causes) throw Error("REPLAY", "the explanation of the replay is not complete", {.place = name});
    const Json* recorded = find_member(point, "recorded");
    const bool is_recorded = recorded && recorded->is_boolean() && recorded->get<bool>();
    rows.push_back({.point = name,
                    .name = is_recorded ? "as recorded" : "as recorded, simulated",
                    .figures = figures_from(*before)});
    for (const Json& cause : *causes) {
      const Json *after = find_member(cause, "after"), *delta = find_member(cause, "delta");
      rows.push_back({.point = name,
                      .name = string_member(cause, "name", "explained"),
                      .text = string_member(cause, "change", "explained"),
                      .figures = after ? figures_from(*after) : ReplayFigures(),
                      .delta = delta ? figures_from(*delta) : ReplayFigures()});
    }
    rows.push_back({.point = name, .name = "as replayed", .figures = rows.back().figures});
  }
  return rows;
}

}  // namespace mw::compare
