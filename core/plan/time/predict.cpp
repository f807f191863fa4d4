// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/predict.h"

#include <algorithm>

#include "core/base/optimizer_steps.h"
#include "core/plan/memory/device_memory.h"
#include "core/plan/request/expression.h"
#include "core/plan/request/lengths.h"
#include "core/plan/time/serve_prediction.h"
#include "core/plan/time/step_time.h"

namespace mw::plan {
namespace {

Expression count_of(std::int64_t n) {  // every digit
  return {static_cast<double>(n), std::to_string(n)};
}

// The parameters that a token uses: of the experts only the chosen ones.
double active_parameters(const LocalModel& model) {
  const model::Config& c = model.request->model;
  if (c.experts == 0) return static_cast<double>(model.parameters);
  const double each = 3.0 * c.expert_dim * c.dim * static_cast<double>(c.layers.size());
  return static_cast<double>(model.parameters) - each * (c.experts - c.experts_per_token);
}

void add_utilisation(const LocalModel& model, RunTotals& run, double seconds, double padded, double real) {
  const Request& r = *model.request;
  const double peak = r.target.chip.bf16_flops.value * r.target.chips() * seconds;
  if (peak <= 0) return;
  const double n = active_parameters(model);
  const auto add = [&](const char* name, double factor, double tokens) {
    run.utilisation.push_back({name, factor * n * tokens / peak});
  };
  add("6N, padded tokens", 6, padded);
  if (r.method == model::TrainMethod::lora) add("4N, padded tokens", 4, padded);
  add("6N, real tokens", 6, real);
  if (r.method == model::TrainMethod::lora) add("4N, real tokens", 4, real);
}

RunTotals train_totals(const LocalModel& model, const Plan& plan) {
  const Request& r = *model.request;
  const RowStatistics f = row_statistics(r.lengths, rows_on_device(model, r.train.batch));
  RunTotals run;
  const double rows = static_cast<double>(r.train.batch) * std::max(1, r.train.accumulation);
  const double epoch_rows = r.train.epoch_rows > 0 ? r.train.epoch_rows : f.batches_rows;
  run.steps = r.train.steps > 0 ? r.train.steps
                                : steps_of_epochs(epoch_rows, r.train.epochs,
                                                  {.batch = r.train.batch, .accumulation = r.train.accumulation});
  const double step = plan.step.seconds.value, padded = rows * f.computed, real = rows * f.real;
  run.hours = (plan.step.seconds * static_cast<double>(run.steps) + plan.compile) * (1.0 / 3600);
  run.hours.formula = "(steps x seconds of a step + compilation) / 3600";
  run.hours.inputs =
      ((count_of(run.steps) * seconds_text(step) + seconds_text(plan.compile.value)) / Expression{3600, "3600"}).text;
  run.usd_per_hour = r.price.usd_per_chip_hour * r.target.chips();
  run.usd = run.hours * run.usd_per_hour;
  run.usd.formula = "hours x chips x price of a chip-hour";
  run.usd.inputs = (Expression{run.hours.value, number_text(run.hours.value) + " h"} * count_of(r.target.chips()) *
                    Expression{r.price.usd_per_chip_hour, "$" + number_text(r.price.usd_per_chip_hour)})
                       .text;
  run.usd.source = r.price.source + (r.price.date.empty() ? "" : ", " + r.price.date);
  run.tokens_per_second = real / step;
  run.padded_tokens_per_second = padded / step;
  const double per_second = run.usd_per_hour / 3600;
  run.usd_per_million_tokens = per_second / run.tokens_per_second * 1e6;
  run.usd_per_million_padded = per_second / run.padded_tokens_per_second * 1e6;
  run.real_share = f.real / f.computed;
  if (r.lengths.rows == RowLayout::padded && f.packed_rows > 0) run.packed_speedup = f.rows / f.packed_rows;
  add_utilisation(model, run, step, padded, real);
  return run;
}

RunTotals forward_totals(const LocalModel& model, const Plan& plan, double tokens) {
  RunTotals run;
  run.steps = 1;
  run.hours = plan.step.seconds * (1.0 / 3600);
  run.usd_per_hour = model.request->price.usd_per_chip_hour * model.request->target.chips();
  run.usd = run.hours * run.usd_per_hour;
  run.tokens_per_second = run.padded_tokens_per_second = tokens / plan.step.seconds.value;
  run.usd_per_million_tokens = run.usd_per_million_padded = run.usd_per_hour / 3600 / run.tokens_per_second * 1e6;
  return run;
}

Estimate compile_time(const LocalModel& model) {
  const Efficiency& e = model.request->efficiencies.compile_s;
  const double layers = model.layers();
  return {.value = layers * e.value,
          .low = layers * e.low,
          .high = layers * e.high,
          .origin = e.origin,
          .formula = "layers x seconds",
          .inputs = (count_of(model.layers()) * seconds_text(e.value)).text,
          .source = e.source};
}

void add_memory_problem(const Request& request, Plan& plan) {
  if (plan.fits()) return;
  plan.problems.push_back(
      {.id = "MEMORY",
       .message = request.work == Work::serve ? "the server does not fit" : "the work does not fit its devices",
       .place = "target.id",
       .found = to_text(plan.memory.at_peak.total()) + " at " + plan.memory.peak_instant + ", most of it " +
                plan.memory.buffers.front().name,
       .expected =
           "at most " + to_text(plan.memory.capacity) + " on each of " + std::to_string(plan.devices) + " devices",
       .fix = "more devices along fsdp or tp, a smaller batch, train.remat=layer, or a loss chunk"});
}

void add_length_notes(const Request& request, Plan& plan) {
  if (plan.run.real_share >= 0.7 || request.lengths.rows != RowLayout::padded) return;
  const double saved = 1 - 1 / std::max(1.0, plan.run.packed_speedup);
  plan.problems.push_back({.id = "PADDING",
                           .severity = Severity::warning,
                           .message = "most of the computation is padding",
                           .place = "data.packing",
                           .found = number_text(100 * (1 - plan.run.real_share), 3) + " % of the tokens",
                           .expected = "at most 30 %",
                           .fix = "data.packing=true would be " + number_text(plan.run.packed_speedup, 3) +
                                  " times as fast: " + number_text(saved * plan.run.hours.value, 3) + " h and " +
                                  to_text(Usd(saved * plan.run.usd.value)) + " less"});
}

void add_epoch_note(const Request& request, Plan& plan) {
  const bool known = request.train.epoch_rows > 0 || request.lengths.count > 0 || !request.lengths.histogram.empty();
  if (request.train.steps > 0 || known) return;
  plan.problems.push_back({.id = "EPOCHS",
                           .severity = Severity::warning,
                           .message = "train.epochs is set, but the number of rows is not known: one step is planned",
                           .place = "data.rows",
                           .found = number_text(request.train.epochs) + " epochs of no rows",
                           .expected = "data.path with a tokenizer, data.lengths or data.rows",
                           .fix = "set data.rows, or set train.steps instead of train.epochs"});
}

std::vector<std::string> sources_of(const Request& request) {
  std::vector<std::string> out{"capacity: " + request.target.chip.memory.source,
                               "peak: " + request.target.chip.bf16_flops.source,
                               "bandwidth: " + request.target.chip.memory_bandwidth.source};
  if (request.price.usd_per_chip_hour > 0)
    out.push_back("price: $" + number_text(request.price.usd_per_chip_hour) + " per chip-hour, " +
                  request.price.price_class + ", " + request.price.region +
                  (request.price.date.empty() ? "" : ", " + request.price.date) + ", " + request.price.source);
  out.push_back("stack: " + request.profile.source);
  if (!request.calibrated.empty()) out.push_back("efficiencies: " + request.calibrated);
  out.push_back("share of peak in products " + number_text(request.efficiencies.matmul.value, 3) + ": " +
                request.efficiencies.matmul.source);
  out.push_back("share of memory bandwidth " + number_text(request.efficiencies.memory.value, 3) + ": " +
                request.efficiencies.memory.source);
  return out;
}

}  // namespace

Plan predict(const Request& request) {
  check_request(request);
  const bool samples = request.work == Work::rollout || request.work == Work::serve;
  const LocalModel m = local_model(request, samples ? mesh::ShardingUse::sampling : mesh::ShardingUse::training);
  Plan plan;
  plan.devices = request.mesh.devices();
  plan.problems = m.placement.problems;
  plan.compile = compile_time(m);
  switch (request.work) {
    case Work::train:
      plan.memory = train_memory(m);
      plan.step = train_time(m);
      plan.run = train_totals(m, plan);
      add_length_notes(request, plan);
      add_epoch_note(request, plan);
      break;
    case Work::forward:
      plan.memory = forward_memory(m);
      plan.step = forward_time(m);
      plan.run = forward_totals(m, plan, static_cast<double>(request.forward.batch) * request.forward.len);
      break;
    case Work::rollout: {
      plan.memory = rollout_memory(m);
      ServePrediction served = rollout(m);
      plan.step = std::move(served.step);
      plan.serve = served.numbers;
      plan.run = forward_totals(m, plan, static_cast<double>(request.rollout.batch) * request.rollout.new_tokens);
      break;
    }
    case Work::serve: {
      plan.memory = serve_memory(m);
      ServePrediction served = serve(m, plan.memory);
      plan.step = std::move(served.step);
      plan.serve = served.numbers;
      plan.run.usd_per_hour = request.price.usd_per_chip_hour * request.target.chips();
      plan.run.tokens_per_second = plan.run.padded_tokens_per_second = plan.serve->output_tokens_per_second;
      plan.run.usd_per_million_tokens = plan.serve->usd_per_million_output_tokens;
      break;
    }
  }
  add_memory_problem(request, plan);
  plan.sources = sources_of(request);
  return plan;
}

}  // namespace mw::plan
