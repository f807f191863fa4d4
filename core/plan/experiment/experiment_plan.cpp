// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/experiment_plan.h"
#include "core/base/counted.h"
#include "core/plan/calibration/intervals.h"

#include <algorithm>
#include <cmath>

#include "core/model/catalogue.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/prediction/plan_figures.h"
#include "core/plan/request/local_model.h"
#include "core/train/settings.h"

namespace mw::plan {
namespace {

void add_points(const experiment::BoundExperiment& config, ExperimentPlan& out) {
  const options::Sizing& sizes = config.size;
  for (const SizeCase& size : size_cases(sizes)) {
    SizePoint& point = out.points.emplace_back(SizePoint{size, predict(with_case(out.request, sizes, size))});
    point.rows_in_budget = rows_in_budget(config.budget, point.plan, size.batch);
  }
  const SizePoint* shown = nullptr;
  for (const SizePoint& p : out.points)
    if (p.size.workload == out.points.front().size.workload && (!shown || p.size.batch > shown->size.batch)) shown = &p;
  if (!shown) return;
  out.request = with_case(out.request, sizes, shown->size);
  out.plan = shown->plan;
}

// Predicts the step time for each candidate length and reports the one nearest to the measurement.
void add_guesses(const options::Measured& measured, ExperimentPlan& out) {
  out.measured_step = measured.seconds_per_step;
  out.measured_hours = measured.hours;
  out.measured_source = measured.source;
  if (out.measured_step <= 0 || out.request.work != Work::train) return;
  std::vector<int> lens{out.request.lengths.max_len};
  for (const int len : measured.max_lens)
    if (len > 0 && std::find(lens.begin(), lens.end(), len) == lens.end()) lens.push_back(len);
  for (const int len : lens) {
    Request r = out.request;
    r.lengths.max_len = len;
    r.lengths.packed_rows = 0;
    const double seconds = predict(r).step.seconds.value;
    out.guesses.push_back({len, seconds, seconds / out.measured_step - 1});
  }
  std::sort(out.guesses.begin(), out.guesses.end(),
            [](const auto& a, const auto& b) { return std::abs(a.off) < std::abs(b.off); });
  std::string all;
  for (const LengthGuess& g : out.guesses)
    all += (all.empty() ? "" : ", ") + counted(g.max_len, "token") + ": " + number_text(g.seconds, 3) + " s (" +
           (g.off < 0 ? "" : "+") + number_text(100 * g.off, 2) + " %)";
  out.problems.push_back({.id = "MEASURED",
                          .severity = Severity::info,
                          .message = out.guesses.size() > 1 ? "rows of " + std::to_string(out.guesses.front().max_len) +
                                                                  " tokens fit the measured step time best"
                                                            : "predicted step time beside the measured one",
                          .place = "data.max_len",
                          .found = all,
                          .expected = number_text(out.measured_step, 3) + " s measured (" + out.measured_source + ")"});
}

// An error becomes a warning, because the settings of serving may be wrong while those of the training are not.
void add_cost(const experiment::Experiment& e, const PlanContext& context, ExperimentPlan& out) try {
  out.cost = cost_plan(e, context, {}, out.request.work == Work::train ? &out.plan : nullptr);
} catch (const Error& error) {
  Problem problem = error.problem();
  problem.severity = Severity::warning;
  problem.message = "the total cost is not known: " + problem.message;
  out.problems.push_back(std::move(problem));
}

void add_budget(const options::Budget& budget, ExperimentPlan& out) {
  out.budget = budget_plan(budget, out.request, out.plan);
  if (budget.usd > 0 && out.plan.run.usd_per_hour <= 0)
    out.problems.push_back({.id = "BUDGET",
                            .severity = Severity::warning,
                            .message = "the budget in dollars is not applied, because the price is not known",
                            .place = "budget.usd",
                            .fix = "set price.usd_per_chip_hour, or limit budget.hours"});
  if (!out.budget || out.budget->holds_the_run()) return;
  out.problems.push_back(
      {.id = "BUDGET",
       .severity = Severity::info,
       .message = "the budget holds a part of the run",
       .place = out.budget->bound,
       .found = counted(out.plan.run.steps, "step") + ", " + to_text(Seconds(out.plan.run.hours.value * 3600)),
       .expected = to_text(*out.budget)});
}

void add_tco(const options::Serving& serve, const PlanContext& context, ExperimentPlan& out) {
  out.serve_hours = serve.hours;
  if (serve.target.empty() || out.request.work != Work::train) return;
  const hardware::Target server = context.catalogue.target(serve.target, "serve.target");
  double each = serve.usd_per_chip_hour;
  if (const hardware::Price* listed = context.catalogue.price(server.chip.id); each <= 0 && listed)
    each = listed->usd_per_chip_hour;
  const bool trained = out.plan.run.usd_per_hour > 0;
  if (!trained || each <= 0) {
    const std::string place = trained ? "serve.usd_per_chip_hour" : "price.usd_per_chip_hour";
    out.problems.push_back({.id = "COST",
                            .severity = Severity::warning,
                            .message = "the total cost is not known, because the price of " +
                                       (trained ? serve.target : out.request.target.id) + " is not",
                            .place = place,
                            .fix = "set " + place});
    return;
  }
  Tco tco{.name = out.request.target.id + ", served on " + serve.target,
          .train_hours = out.plan.run.hours.value,
          .train_usd_per_hour = out.plan.run.usd_per_hour,
          .serve_usd_per_hour = each * server.chips()};
  out.tco = tco;
  if (out.measured_hours <= 0) return;
  tco.train_hours = out.measured_hours;
  out.measured_tco = tco;
}

// The engine takes a rank per module from its own options. Tunix trains one A for K and V, which a PEFT file holds
// twice.
train::Trainable trained(const experiment::BoundExperiment& config, const Request& r) {
  const model::TensorInventory inventory(r.model);
  if (r.method == model::TrainMethod::full) return train::trainable_weights(inventory, train::save_dtype(config.train));
  if (r.stack == model::Stack::engine && !r.targets.empty())
    return train::trainable_adapters(inventory, train::adapter_shapes(r.model, config.lora));
  train::Trainable out = train::trainable_adapters(inventory, adapter_shapes(r, inventory));
  const double held = local_model(r, mesh::ShardingUse::training).adapters(model::DType::f32).total;
  out.params = static_cast<std::int64_t>(held);
  return out;
}

Problem planning_only(const ExperimentPlan& planned) {
  const model::Config& config = planned.request.model;
  return {.id = "PLANNING-ONLY",
          .severity = Severity::warning,
          .message = "the engine does not run this model; the prediction applies its formulas to the shapes",
          .file = config.id,
          .found = config.hf_model_type,
          .expected = "a Gemma model, to run it here"};
}

Json ledger_json(const Ledger& ledger) {
  Json memory = Json::object();
  for (const MemoryCategory category : all_values<MemoryCategory>())
    memory[std::string(to_string(category))] = ledger[category].value;
  memory["total"] = ledger.total().value;
  return memory;
}

// The ledger of each device.
Json devices_json(const Plan& plan) {
  Json devices = Json::array();
  const DeviceMemory& memory = plan.memory;
  for (size_t d = 0; d < static_cast<size_t>(plan.devices); ++d) {
    const Ledger& held = d < memory.devices.size() ? memory.devices[d].at_peak : memory.at_peak;
    devices.push_back({{"id", d}, {"capacity_bytes", memory.capacity.value}, {"memory", ledger_json(held)}});
  }
  return devices;
}

Json estimate_json(const Estimate& e) {
  return {{"value", e.value},     {"low", e.low},       {"high", e.high},    {"origin", to_string(e.origin)},
          {"formula", e.formula}, {"inputs", e.inputs}, {"source", e.source}};
}

Json terms_json(const StepTime& step) {
  Json all = Json::array();
  for (const Term& t : step.terms)
    all.push_back({{"phase", to_string(t.phase)},
                   {"part", t.part},
                   {"layers", t.layers},
                   {"compute_s", estimate_json(t.compute)},
                   {"memory_s", estimate_json(t.memory)},
                   {"communication_s", estimate_json(t.communication)},
                   {"hidden_s", t.hidden},
                   {"seconds", t.seconds()}});
  return all;
}

Json serve_json(const ServeNumbers& n, const ServeWork& work) {
  return {{"input_len", work.input_len},
          {"output_len", work.output_len},
          {"kv_tokens", n.kv_tokens},
          {"longest_request", n.longest_request},
          {"kv_bytes_per_token", n.kv_bytes_per_token},
          {"ttft_ms", n.ttft.value * 1e3},
          {"tpot_ms", n.decode_step.value * 1e3},
          {"running", n.running},
          {"tpot_under_load_ms", n.tpot.value > 0 ? Json(n.tpot.value * 1e3) : Json(nullptr)},
          {"output_tokens_per_second", n.output_tokens_per_second},
          {"usd_per_million_output_tokens",
           n.usd_per_million_output_tokens > 0 ? Json(n.usd_per_million_output_tokens) : Json(nullptr)}};
}

Json tco_json(const Tco& tco, const std::vector<double>& hours) {
  Json rows = Json::array();
  for (const double h : hours) rows.push_back({{"serve_hours", h}, {"usd", tco.after(h).value}});
  return {{"name", tco.name}, {"train_hours", tco.train_hours}, {"train_usd", tco.train().value}, {"rows", rows}};
}

Json point_json(const SizePoint& p) {
  const Plan& plan = p.plan;
  return {{"mode", to_string(p.size.workload)},
          {"batch", p.size.batch},
          {"predicted",
           {{"fits", plan.fits()},
            {"peak_bytes", plan.memory.at_peak.total().value},
            {"peak_instant", plan.memory.peak_instant},
            {"seconds", plan.step.seconds.value},
            {"seconds_per_token", 1 / plan.run.padded_tokens_per_second},
            {"rows_in_budget", p.rows_in_budget ? Json(*p.rows_in_budget) : Json(nullptr)}}}};
}

// "6N, tokens without padding" -> "6N, real tokens", the key that scripts read since version 0.1.
std::string utilisation_key(const std::string& name) {
  constexpr std::string_view kUnpadded = "tokens without padding";
  return name.ends_with(kUnpadded) ? name.substr(0, name.size() - kUnpadded.size()) + "real tokens" : name;
}

}  // namespace

ExperimentPlan plan_experiment(const experiment::Experiment& e, const PlanContext& context, ReadData read_data,
                               const std::stop_token& stop) {
  ExperimentPlan out;
  out.request = plan_request(e, context);
  const experiment::BoundExperiment& config = e.config();
  if (out.request.engine && out.request.work == Work::train) {
    train::plan_settings(config, out.request.model.family);  // refuses what the engine does not have
    if (read_data == ReadData::yes) read_rows(config, out.request, stop);
  }
  if (config.kind == experiment::Kind::size)
    add_points(config, out);
  else
    out.plan = predict(out.request);
  if (!runs_here(out.request))
    set_intervals(out.plan, out.request,
                  interval_factors(calibration_of(context), out.request.stack, out.request.target.chip.id,
                                   work_size(out.request)));
  out.diagnosis =
      diagnose(e, context, {.plan = &out.plan, .request = &out.request},
               read_data == ReadData::yes || !out.plan.memory.is_bound ? Fixes::searched : Fixes::at_hand, stop);
  for (const Diagnostic& d : out.diagnosis.found) out.problems.push_back(d.problem);
  if (out.request.engine && model::is_planning_only(out.request.model)) out.problems.push_back(planning_only(out));
  out.plan.sources.insert(out.plan.sources.begin(),
                          "shapes: " + (config.model.path.empty() ? "catalogue entry " + out.request.model.id
                                                                  : (config.model.path / "config.json").string()));
  if (out.request.work == Work::train) {
    out.trainable = trained(config, out.request);
    if (out.plan.refusals.empty()) add_budget(config.budget, out);
  }
  if (out.plan.refusals.empty()) add_guesses(config.measured, out);
  const bool runs = out.plan.refusals.empty();
  if (runs) add_tco(config.serve, context, out);
  if (runs) add_cost(e, context, out);
  return out;
}

Diagnosis diagnostics(const experiment::Experiment& experiment, const PlanContext& context,
                      const std::stop_token& stop) {
  try {
    return plan_experiment(experiment, context, ReadData::yes, stop).diagnosis;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) throw;
    return diagnose(experiment, context);  // reports why it cannot be planned
  }
}

PlanComparison against(const ExperimentPlan& a, const ExperimentPlan& b) {
  PlanComparison out;
  out.name = a.request.target.id;
  out.other = b.request.target.id;
  const auto ratio = [](double x, double y) { return x > 0 ? y / x : 0; };
  out.step_ratio = ratio(a.plan.step.seconds.value, b.plan.step.seconds.value);
  out.run_ratio = ratio(a.plan.run.hours.value, b.plan.run.hours.value);
  out.cost_ratio = ratio(a.plan.run.usd.value, b.plan.run.usd.value);
  const auto both = [](double x, double y) { return x > 0 && y > 0; };
  if (both(a.measured_step, b.measured_step) || both(a.measured_hours, b.measured_hours))
    out.measured = PlanComparison::Measured{.step_ratio = ratio(a.measured_step, b.measured_step),
                                            .run_ratio = ratio(a.measured_hours, b.measured_hours),
                                            .cost_ratio = ratio(a.measured_usd(), b.measured_usd()),
                                            .usd = a.measured_usd(),
                                            .other_usd = b.measured_usd(),
                                            .source = a.measured_source,
                                            .other_source = b.measured_source};
  const auto add = [&](const Tco& x, const Tco& y, bool measured) {
    for (const double hours : a.serve_hours)
      out.rows.push_back({hours, x.after(hours).value, y.after(hours).value, measured});
    out.break_even_hours = break_even_hours(x, y);
  };
  if (a.tco && b.tco) add(*a.tco, *b.tco, false);
  if (a.measured_tco && b.measured_tco) add(*a.measured_tco, *b.measured_tco, true);
  return out;
}

Json memory_json(const DeviceMemory& memory) {
  Json out = ledger_json(memory.at_peak);
  if (memory.devices.size() < 2) return out;
  out["devices"] = Json::array();
  for (const DeviceUse& d : memory.devices) out["devices"].push_back(ledger_json(d.at_peak));
  return out;
}

Json planned_json(const ExperimentPlan& p) {
  const Plan& plan = p.plan;
  Json diagnostics = to_json(p.diagnosis.found), buffers = Json::array(), utilisation = Json::object();
  for (size_t i = p.diagnosis.found.size(); i < p.problems.size(); ++i)
    diagnostics.push_back(to_json(Diagnostic{.problem = p.problems[i], .why = {}, .evidence = {}}));
  for (const Buffer& b : plan.memory.buffers)
    buffers.push_back({{"name", b.name},
                       {"category", to_string(b.category)},
                       {"bytes", b.bytes.value},
                       {"unpadded_bytes", b.unpadded.value},
                       {"formula", b.formula}});
  for (const Utilisation& u : plan.run.utilisation) utilisation[utilisation_key(u.name)] = u.share;
  const RunTotals& run = plan.run;
  const bool refused = !plan.refusals.empty(), priced = run.usd_per_hour > 0 && !refused;
  Json refusals = Json::array();
  for (const Problem& problem : plan.refusals) refusals.push_back({{"id", problem.id}, {"message", to_text(problem)}});
  const bool counted = !p.request.engine || knows_steps(p.request);
  const auto usd = [&](double v) { return priced ? Json(v) : Json(nullptr); };
  Json out{{"target", p.request.target.id},
           {"fits", plan.fits()},
           {"refusals", std::move(refusals)},
           {"devices", devices_json(plan)},
           {"peak_instant", plan.memory.peak_instant},
           {"step", step_json(plan.step)},
           {"run",
            {{"steps", counted ? Json(run.steps) : Json(nullptr)},
             {"hours", refused || !counted ? Json(nullptr) : Json(run.hours.value)},
             {"usd", counted ? usd(run.usd.value) : Json(nullptr)},
             {"tokens_per_second", run.tokens_per_second},
             {"padded_tokens_per_second", run.padded_tokens_per_second},
             {"usd_per_million_tokens", usd(run.usd_per_million_tokens)},
             {"usd_per_million_padded_tokens", usd(run.usd_per_million_padded)},
             {"real_share", run.real_share},
             {"packed_speedup", run.packed_speedup},
             {"compile_s", plan.compile.value},
             {"mfu", utilisation}}},
           {"memory",
            {{"peak_instant", plan.memory.peak_instant},
             {"total", estimate_json(plan.memory.total)},
             {"category_peaks", ledger_json(plan.memory.category_peaks)},
             {"buffers", buffers}}},
           {"price", price_json(p.request)},
           {"mesh", mesh::to_text(p.request.mesh)},
           {"stack", model::to_string(p.request.stack)},
           {"diagnostics", diagnostics},
           {"unchecked", to_json(p.diagnosis.unchecked)},
           {"sources", plan.sources}};
  if (p.budget) out["budget"] = to_json(*p.budget);
  if (p.trainable) out["trainable"] = to_json(*p.trainable);
  if (plan.serve) out["serve"] = serve_json(*plan.serve, p.request.serve);
  if (p.carried) out["carried"] = to_json(*p.carried);
  if (p.tco) out["tco"] = tco_json(*p.tco, p.serve_hours);
  if (p.measured_tco) out["tco_measured"] = tco_json(*p.measured_tco, p.serve_hours);
  if (p.cost) out["cost"] = to_json(*p.cost);
  if (!p.points.empty()) {
    out["points"] = Json::array();
    for (const SizePoint& point : p.points) out["points"].push_back(point_json(point));
  }
  return out;
}

Json step_json(const StepTime& step) {
  return {{"seconds", step.seconds.value}, {"low_s", step.seconds.low},
          {"high_s", step.seconds.high},   {"compute_s", step.compute.value},
          {"memory_s", step.memory.value}, {"communication_s", step.communication.value},
          {"hidden_s", step.hidden},       {"fixed_s", step.fixed.value},
          {"overlap", step.overlap},       {"terms", terms_json(step)}};
}

Json against_json(const PlanComparison& a) {
  Json rows = Json::array();
  for (const PlanComparison::Row& r : a.rows)
    rows.push_back({{"serve_hours", r.serve_hours},
                    {"usd", r.usd},
                    {"other_usd", r.other_usd},
                    {"ratio", r.ratio()},
                    {"training_hours", r.measured ? "measured" : "predicted"}});
  const auto known = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
  Json measured = nullptr;
  if (const auto& m = a.measured)
    measured = {{"step_ratio", known(m->step_ratio)}, {"run_ratio", known(m->run_ratio)},
                {"cost_ratio", known(m->cost_ratio)}, {"usd", known(m->usd)},
                {"other_usd", known(m->other_usd)},   {"sources", {m->source, m->other_source}}};
  return {{"target", a.name},
          {"other", a.other},
          {"step_ratio", a.step_ratio},
          {"run_ratio", a.run_ratio},
          {"cost_ratio", a.cost_ratio},
          {"measured", measured},
          {"tco", rows},
          {"break_even_hours", a.break_even_hours ? Json(*a.break_even_hours) : Json(nullptr)}};
}

}  // namespace mw::plan
