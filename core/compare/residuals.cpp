// SPDX-License-Identifier: Apache-2.0
#include "core/compare/residuals.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/compare/comparison_parts.h"
#include "core/experiment/bound_experiment.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/prediction/predict.h"
#include "core/present/table.h"

namespace mw::compare {
namespace {

using formats::BenchPoint;
using formats::RequestResult;

Error refused(const ComparedRun& run, std::string message, std::string fix) {
  return Error("RESIDUALS", std::move(message), {.place = run.name, .fix = std::move(fix)});
}

plan::Estimate exactly(double value) {
  return {.value = value, .low = value, .high = value};
}

double median_of(std::vector<double> values) {
  return values.empty() ? formats::kUnknown : formats::percentile_of(std::move(values), 50);
}

void add(Residuals& out, ResidualGroup group, std::string key, std::string label, const char* unit,
         std::optional<plan::Estimate> predicted, std::optional<double> measured) {
  if (predicted || measured)
    out.rows.push_back({group, std::move(key), std::move(label), unit, std::move(predicted), measured});
}

// The measured seconds of a step by what they were spent on.
struct MeasuredStep {
  std::optional<double> all, compute, memory, collectives, waiting, host;
};

// Median of a sum over the entries of each step's traffic.
template <class Value>
std::optional<double> traffic_median(const views::RunView& run, Value value) {
  std::vector<double> seconds;
  for (const views::TrafficPoint& point : run.traffic().points) seconds.push_back(value(views::sum(point)));
  return known(median_of(std::move(seconds)));
}

MeasuredStep measured_step(const views::RunView& run, double tokens_per_step) {
  MeasuredStep out;
  if (const views::MetricSeries* speed = run.metric("train/tokens_per_second")) {
    std::vector<double> rates(speed->raw.y().begin(), speed->raw.y().end());
    if (rates.size() > 1) rates.erase(rates.begin());  // the first step also fills caches or compiles
    out.all = known(tokens_per_step / median_of(std::move(rates)));
  }
  out.collectives = traffic_median(run, [](const views::TrafficTotals& t) { return t.seconds - t.waited; });
  out.waiting = traffic_median(run, [](const views::TrafficTotals& t) { return t.waited; });
  if (!run.finished() || !run.finished()->summary.is_object()) return out;
  const Json parts = run.finished()->summary.value("step_seconds", Json());
  if (!parts.is_object()) return out;
  const Json all = parts.value("seconds", Json());
  const auto part = [&](const char* key) {  // its share of all steps, of the median step
    const Json value = parts.value(key, Json());
    return out.all && value.is_number() && all.is_number() && all.get<double>() > 0
               ? known(value.get<double>() / all.get<double>() * *out.all)
               : std::nullopt;
  };
  out.compute = part("compute");
  out.memory = part("memory");
  out.host = part("host");
  return out;
}

double tokens_of_step(const views::RunView& run) {
  const auto& finished = run.finished();
  return finished && finished->steps > 0 ? static_cast<double>(finished->tokens) / static_cast<double>(finished->steps)
                                         : formats::kUnknown;
}

void add_step(const ComparedRun& run, const plan::Plan& plan, double tokens_per_step, Residuals& out) {
  const auto row = [&](const char* key, const char* label, std::optional<plan::Estimate> predicted,
                       std::optional<double> measured) {
    add(out, ResidualGroup::step, std::string("step.") + key, label, "s", std::move(predicted), measured);
  };
  const MeasuredStep measured = measured_step(*run.training, tokens_per_step);
  plan::Estimate exposed = plan.step.communication;
  exposed.value = std::max(0.0, exposed.value - plan.step.hidden);
  exposed.low = std::max(0.0, exposed.low - plan.step.hidden);
  exposed.high = std::max(0.0, exposed.high - plan.step.hidden);
  row("seconds", "step", plan.step.seconds, measured.all);
  row("compute", "compute (matrix products)", plan.step.compute, measured.compute);
  row("memory", "memory (passes over arrays, update)", plan.step.memory, measured.memory);
  if (run.training->devices() > 1 || plan.devices > 1)
    row("collectives", "collectives (not overlapped)", exposed, measured.collectives);
  if (measured.waiting) row("queue", "queue (waiting for other devices)", std::nullopt, measured.waiting);
  row("host", "host", plan.step.fixed, measured.host);
  if (!measured.compute)
    out.notes.push_back("the run does not record what its steps spend their time on; only the whole step is compared");
}

// The recorded memory of the device with the largest total, at that time.
std::optional<std::pair<int, Ledger>> measured_memory(const views::RunView& run) {
  std::optional<std::pair<int, Ledger>> fullest;
  for (const auto& [device, timeline] : run.memory())
    for (const views::MemoryPoint& point : timeline.points)
      if (!fullest || point.bytes.total() > fullest->second.total()) fullest.emplace(device, point.bytes);
  return fullest;
}

void add_memory(const ComparedRun& run, const plan::Plan& plan, Residuals& out) {
  const auto measured = measured_memory(*run.training);
  if (!measured) return out.notes.push_back("the run records no memory");
  auto recorded = run.training->predicted(measured->first);
  if (!recorded) recorded = run.training->predicted();
  const Ledger predicted = recorded.value_or(plan.memory.at_peak);
  out.notes.push_back(recorded ? "memory: predicted at the start of the run, of device " +
                                     std::to_string(measured->first) + " at its peak"
                               : "memory: planned with the calibration in force; device " +
                                     std::to_string(measured->first) + " at its peak");
  const auto row = [&](const std::string& key, const std::string& label, Bytes a, Bytes b) {
    if (a.value == 0 && b.value == 0) return;
    add(out, ResidualGroup::memory, "memory." + key, label, "bytes", exactly(static_cast<double>(a.value)),
        static_cast<double>(b.value));
  };
  row("total", "peak", predicted.total(), measured->second.total());
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    const std::string name(to_string(category));
    row(name, name, predicted[category], measured->second[category]);
  }
}

Residuals of_training(const ComparedRun& run, const plan::PlanContext& context, const std::stop_token& stop) {
  Residuals out;
  if (run.training->kind() == "size")
    throw refused(run, "a size run has no plan of a training step", "choose a training run or a sweep");
  if (run.training->finished() && run.training->finished()->state == RunState::failed)
    throw refused(run, "the run failed, so that its steps are not compared",
                  "choose a run that is done or was cancelled");
  const double step_tokens = tokens_of_step(*run.training);
  if (step_tokens <= 0) throw refused(run, "the run counted no tokens", "choose a run with at least one step");
  plan::Request request = plan::plan_request(run.experiment, plan::without_run(context, run.id));
  const std::string rows = plan::set_rows_of_run(run.experiment.config(), step_tokens, request, stop);
  out.notes.push_back("time: planned as before the run" + (rows.empty() ? "" : ", " + rows));
  const plan::Plan plan = plan::predict(request);
  add_step(run, plan, step_tokens, out);
  add_memory(run, plan, out);
  return out;
}

// Medians over the completed requests of a point, in ms.
struct Stages {
  double queue = formats::kUnknown, prefill = formats::kUnknown;
};
Stages stages_of(const BenchPoint& point) {
  std::vector<double> queue, prefill;
  for (const RequestResult& r : point.requests) {
    if (!r.completed() || !std::isfinite(r.scheduled_s) || !std::isfinite(r.first_token_s)) continue;
    queue.push_back(1e3 * (r.scheduled_s - r.intended_s));
    prefill.push_back(1e3 * (r.first_token_s - r.scheduled_s));
  }
  return {median_of(std::move(queue)), median_of(std::move(prefill))};
}

Residuals of_sweep(const ComparedRun& run, const plan::PlanContext& context, const std::stop_token& stop) {
  Residuals out;
  const experiment::Experiment server = server_of(run);
  out.notes.push_back("predicted by the simulator with the plan of " + server.valid_values().target.id +
                      ", at the loads of the run");
  long skipped = 0, without_stages = 0;
  for (const BenchPoint& p : run.sweep->set.points) {
    if (!std::isfinite(p.request_rate) || p.request_rate <= 0 || p.input_len <= 0) {
      ++skipped;
      continue;
    }
    const BenchPoint predicted =
        simulated_point(server, {p.request_rate, p.input_len}, context, plan::Queueing::as_offered, stop);
    const Stages a = stages_of(predicted), b = stages_of(p);
    if (!std::isfinite(b.queue)) ++without_stages;
    const std::string key = comparing::cell_key(p);
    const auto row = [&](const char* name, const char* unit, double forecast, double measured) {
      const auto value = known(forecast);
      add(out, ResidualGroup::serving, key + "." + name, key + " " + name, unit,
          value ? std::optional(exactly(*value)) : std::nullopt, known(measured));
    };
    row("queue_ms", "ms", a.queue, b.queue);
    row("prefill_ms", "ms", a.prefill, b.prefill);
    row("ttft_ms", "ms", predicted.ttft.median, p.ttft.median);
    row("tpot_ms", "ms", predicted.tpot.median, p.tpot.median);
    row("output_throughput", "tokens/s", predicted.output_throughput, p.output_throughput);
  }
  if (skipped > 0)
    out.notes.push_back(std::to_string(skipped) +
                        " points without a request rate are omitted; they have no simulation");
  if (without_stages > 0)
    out.notes.push_back(std::to_string(without_stages) +
                        " points do not record when requests were scheduled, so that queue and prefill are unknown");
  if (out.rows.empty())
    throw refused(run, "no point of the sweep can be simulated", "choose a sweep over request rates");
  return out;
}

}  // namespace

std::optional<double> Residual::difference() const {
  return predicted && measured ? std::optional(predicted->value - *measured) : std::nullopt;
}

std::optional<double> Residual::relative() const {
  const auto off = difference();
  return off && *measured != 0 ? std::optional(*off / *measured) : std::nullopt;
}

bool Residual::is_outside() const {
  return predicted && measured && (*measured < predicted->low || *measured > predicted->high);
}

Residuals residuals(const ComparedRun& run, const plan::PlanContext& context, const std::stop_token& stop) {
  if (run.provenance == formats::ResultProvenance::predicted)
    throw refused(run, "the run is a prediction, so that nothing was measured", "choose a measured or imported run");
  if (run.sweep) return of_sweep(run, context, stop);
  if (!run.has_all_settings)
    throw refused(run, "the run does not record its settings, so that it has no plan",
                  "import the folder of an exported recipe, or a run of this program");
  if (!run.training || run.training->step() == 0)
    throw refused(run, "the run has no finished step", "choose a run with at least one step");
  return of_training(run, context, stop);
}

std::string value_text(const Residual& row, double value) {
  if (row.unit == "bytes") return mw::to_text(Bytes(std::llround(value)));
  if (row.unit == "s") return mw::to_text(Seconds(value));
  return number_text(value, 4) + " " + row.unit;
}

Json to_json(const Residuals& residuals) {
  Json rows = Json::array();
  for (const Residual& r : residuals.rows) {
    Json one{{"group", to_string(r.group)},
             {"key", r.key},
             {"label", r.label},
             {"unit", r.unit},
             {"predicted", nullptr},
             {"measured", or_null(r.measured)},
             {"difference", or_null(r.difference())},
             {"relative", or_null(r.relative())}};
    if (r.predicted) {
      one["predicted"] = r.predicted->value;
      one["low"] = r.predicted->low;
      one["high"] = r.predicted->high;
      one["outside"] = r.is_outside();
    }
    rows.push_back(std::move(one));
  }
  return {{"rows", rows}, {"notes", residuals.notes}, {"can_calibrate", false}};  // a key of version 1.0
}

std::string to_text(const Residuals& residuals) {
  present::Table table = present::left_table({"term", "predicted", "measured", "difference", "relative"});
  for (const Residual& r : residuals.rows) {
    const auto text = [&](const std::optional<double>& value) {
      return value ? value_text(r, *value) : std::string("-");
    };
    const auto off = r.difference(), relative = r.relative();
    table.add({r.label, text(r.predicted ? std::optional(r.predicted->value) : std::nullopt), text(r.measured),
               off ? (*off < 0 ? "-" : "+") + value_text(r, std::abs(*off)) : "-",
               (relative ? change_text(*relative) : "-") + (r.is_outside() ? "  outside" : "")});
  }
  std::string out = present::to_text(table, 2);
  for (const std::string& note : residuals.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace mw::compare
