// SPDX-License-Identifier: Apache-2.0
// Formats plans as text tables.
#include <algorithm>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/prediction/plan_figures.h"
#include "core/present/table.h"

namespace mw::plan {
namespace {

using present::Align;

std::string memory_text(const ExperimentPlan& p) {
  const DeviceMemory& m = p.plan.memory;
  const std::vector<std::string> devices = device_lines(p.request.mesh, m);
  std::string out =
      formatted("\nmemory of each device: %s%s of %s at the %s%s\n", m.is_bound ? "at most " : "",
                to_text(m.at_peak.total()).c_str(), to_text(m.capacity).c_str(), m.peak_instant.c_str(),
                devices.empty() ? "" : (" on the fullest of " + counted(devices.size(), "device")).c_str());
  present::Table buffers{
      .columns = {{"category", {}, Align::left}, {"bytes"}, {"buffer", {}, Align::left}, {"formula", {}, Align::left}}};
  for (const Buffer& b : m.buffers)
    buffers.add({std::string(to_string(b.category)), to_text(b.bytes), b.name, b.formula});
  out += present::to_text(buffers, 2);
  for (const std::string& device : devices) out += "  " + device + "\n";
  return out;
}

std::string time_text(const StepTime& step) {
  std::string out =
      formatted("\nstep: %s s (%s to %s) = %s compute + %s memory + %s collectives - %s hidden + %s fixed\n",
                number_text(step.seconds.value, 3).c_str(), number_text(step.seconds.low, 3).c_str(),
                number_text(step.seconds.high, 3).c_str(), number_text(step.compute.value, 3).c_str(),
                number_text(step.memory.value, 3).c_str(), number_text(step.communication.value, 3).c_str(),
                number_text(step.hidden, 2).c_str(), number_text(step.fixed.value, 2).c_str());
  present::Table terms = present::left_table({"phase", "part"});
  for (const char* title : {"compute", "memory", "collectives", "hidden", "seconds"})
    terms.columns.push_back({.title = title});
  const auto seconds = [](double value) { return formatted("%.4f", value); };
  for (const Term& t : step.terms)
    terms.add({std::string(to_string(t.phase)), t.part, seconds(t.compute.value), seconds(t.memory.value),
               seconds(t.communication.value), seconds(t.hidden), seconds(t.seconds())});
  return out + present::to_text(terms, 2) + "  " + step.overlap + "\n";
}

std::string run_text(const ExperimentPlan& p) {
  const RunTotals& r = p.plan.run;
  const auto duration = [](double h) { return to_text(Seconds(h * 3600)); };
  const bool counted = !p.request.engine || knows_steps(p.request);
  std::string out = counted ? formatted("\nrun: %lld steps, %s (%s to %s)", static_cast<long long>(r.steps),
                                        duration(r.hours.value).c_str(), duration(r.hours.low).c_str(),
                                        duration(r.hours.high).c_str())
                            : std::string("\nrun: the number of steps is not known");
  out += r.usd_per_hour > 0 ? formatted(", %s at $%s an hour\n", to_text(Usd(r.usd.value)).c_str(),
                                        number_text(r.usd_per_hour).c_str())
                            : std::string(", price unknown\n");
  out += formatted("  %s tokens/s of %s computed (%.0f %% real)", number_text(r.tokens_per_second).c_str(),
                   number_text(r.padded_tokens_per_second).c_str(), 100 * r.real_share);
  if (r.usd_per_hour > 0)
    out += formatted(", $%s per million tokens", number_text(r.usd_per_million_tokens, 3).c_str());
  out += "\n";
  if (p.budget)
    out += formatted("  budget (%s): %s%s of %lld steps, %s\n", p.budget->bound.c_str(),
                     p.budget->holds_the_run() ? "more than the run: " : "",
                     count_text(static_cast<double>(p.budget->steps)).c_str(), static_cast<long long>(r.steps),
                     to_text(*p.budget).c_str());
  if (p.trainable)
    out += formatted("  trained: %s, saved in %s\n", to_text(*p.trainable).c_str(), to_text(p.trainable->file).c_str());
  for (const Utilisation& u : r.utilisation) out += formatted("  MFU (%s): %.1f %%\n", u.name.c_str(), 100 * u.share);
  return out;
}

std::string serve_text(const ServeNumbers& n, const ServeWork& work, double usd_per_hour) {
  std::string out = formatted(
      "\nserving requests of %d + %d tokens: %s tokens of KV cache (%s per token and device); first token of an idle "
      "server %.1f ms; with %.0f requests at once %.2f ms for a step that only decodes, ",
      work.input_len, work.output_len, count_text(static_cast<double>(n.kv_tokens)).c_str(),
      to_text(Bytes(static_cast<std::int64_t>(n.kv_bytes_per_token))).c_str(), n.ttft.value * 1e3, n.running,
      n.decode_step.value * 1e3);
  if (n.tpot.value > 0) out += formatted("%.2f ms per token beside the prompts of others (TPOT), ", n.tpot.value * 1e3);
  out += number_text(n.output_tokens_per_second) + " tokens/s";
  if (usd_per_hour <= 0) return out + ", price unknown\n";
  return out + ", " + to_text(Usd(usd_per_hour)) + " an hour, " + to_text(Usd(n.usd_per_million_output_tokens)) +
         " per million output tokens\n";
}

std::string tco_text(const char* what, const Tco& tco, const std::vector<double>& hours) {
  std::string out = formatted("\ncost of %s, training %s (%s)\n", tco.name.c_str(), what,
                              to_text(Seconds(tco.train_hours * 3600)).c_str());
  for (const double h : hours)
    out += formatted("  with %s h of serving: %s\n", number_text(h, 3).c_str(), to_text(tco.after(h)).c_str());
  return out;
}

std::string points_text(const std::vector<SizePoint>& points) {
  const bool limited = std::any_of(points.begin(), points.end(), [](const auto& p) { return p.rows_in_budget; });
  present::Table table = present::figure_table({"workload", "batch", "", "peak", "s per token"});
  if (limited) table.columns.push_back({.title = "rows in the budget"});
  for (const SizePoint& p : points)
    table.add({std::string(to_string(p.size.workload)), std::to_string(p.size.batch),
               p.plan.fits() ? "fits" : "does not fit", to_text(p.plan.memory.at_peak.total()),
               p.plan.fits() ? number_text(1 / p.plan.run.padded_tokens_per_second, 3) : "-",
               p.rows_in_budget ? std::to_string(*p.rows_in_budget) : ""});
  return "\n" + present::to_text(table, 2);
}

}  // namespace

std::vector<std::string> device_lines(const mesh::Mesh& mesh, const DeviceMemory& memory) {
  std::vector<std::string> lines;
  if (memory.devices.size() < 2) return lines;
  for (size_t d = 0; d < memory.devices.size(); ++d) {
    const Ledger& ledger = memory.devices[d].at_peak;
    const std::vector<int> at = mesh::coordinate(mesh, static_cast<int>(d));
    std::string place;
    for (size_t a = 0; a < at.size(); ++a)
      place += (place.empty() ? "" : ", ") + mesh.axes[a].name + " " + std::to_string(at[a]);
    std::vector<std::pair<Bytes, std::string>> parts;
    for (const MemoryCategory category : all_values<MemoryCategory>())
      if (ledger[category].value > 0) parts.emplace_back(ledger[category], std::string(to_string(category)));
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text = "device " + std::to_string(d) + " (" + place + "): " + to_text(ledger.total());
    for (size_t i = 0; i < std::min<size_t>(3, parts.size()); ++i)
      text += (i == 0 ? ", of which " : ", ") + parts[i].second + " " + to_text(parts[i].first);
    lines.push_back(std::move(text));
  }
  return lines;
}

std::string planned_text(const ExperimentPlan& p) {
  const bool refused = !p.plan.refusals.empty();
  std::string out = formatted("%s, %s, %s: %s\n", p.request.target.id.c_str(), mesh::to_text(p.request.mesh).c_str(),
                              std::string(model::to_string(p.request.stack)).c_str(),
                              refused         ? "cannot run as it is, see the errors below"
                              : p.plan.fits() ? "fits"
                                              : "does not fit");
  if (p.carried) out += to_text(*p.carried);
  if (!refused) out += memory_text(p) + time_text(p.plan.step);
  if (!refused && p.request.work == Work::train) out += run_text(p);
  if (!refused && p.plan.serve) out += serve_text(*p.plan.serve, p.request.serve, p.plan.run.usd_per_hour);
  if (p.tco) out += tco_text("as predicted", *p.tco, p.serve_hours);
  if (p.measured_tco) out += tco_text("as measured", *p.measured_tco, p.serve_hours);
  if (p.cost) out += "\n" + to_text(*p.cost);
  if (!p.points.empty()) out += points_text(p.points);
  out += "\n";
  for (const Problem& problem : p.problems) out += line_text(problem);
  for (const std::string& source : p.plan.sources) out += "from " + source + "\n";
  return out;
}

std::string against_text(const PlanComparison& a) {
  const auto times = [](double ratio) { return ratio > 0 ? formatted("%.2f x", ratio) : std::string("-"); };
  std::string out = formatted("\n%s against %s\n  %-10s %10s %10s %10s\n", a.other.c_str(), a.name.c_str(), "", "step",
                              "run", "cost");
  const auto row = [&](const char* what, double step, double run, double cost) {
    out += formatted("  %-10s %10s %10s %10s", what, times(step).c_str(), times(run).c_str(), times(cost).c_str());
  };
  row("predicted", a.step_ratio, a.run_ratio, a.cost_ratio);
  out += "\n";
  if (const auto& m = a.measured) {
    row("measured", m->step_ratio, m->run_ratio, m->cost_ratio);
    if (m->usd > 0 && m->other_usd > 0)
      out += formatted("  (%s against %s)", to_text(Usd(m->other_usd)).c_str(), to_text(Usd(m->usd)).c_str());
    out += "\n";
    for (const std::string* source : {&m->source, &m->other_source})
      if (!source->empty()) out += "  from " + *source + "\n";
  }
  for (const PlanComparison::Row& r : a.rows)
    out += formatted("  with %s h of serving, training hours %s: %s against %s, %.2f times\n",
                     number_text(r.serve_hours, 3).c_str(), r.measured ? "measured" : "predicted",
                     to_text(Usd(r.usd)).c_str(), to_text(Usd(r.other_usd)).c_str(), r.ratio());
  if (!a.rows.empty())
    out += a.break_even_hours
               ? formatted("  both cost the same after %s h of serving\n", number_text(*a.break_even_hours, 3).c_str())
               : std::string("  no break-even: one of them is cheaper at any number of hours\n");
  return out;
}

}  // namespace mw::plan
