// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/predict.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/memory.h"
#include "core/plan/prediction/plan_figures.h"
#include "core/plan/prediction/steady_state.h"
#include "core/plan/prediction/step_time.h"
#include "core/plan/request/estimate.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/refusals.h"

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
  if (peak <= 0 || r.engine) return;  // the engine's products have several peaks
  const double n = active_parameters(model);
  // 6N counts products of frozen weights and lookups that a step does not compute: above 100 % it says nothing.
  const auto add = [&](const char* name, double factor, double tokens) {
    if (const double share = factor * n * tokens / peak; share <= 1) run.utilisation.push_back({name, share});
  };
  add("6N, padded tokens", 6, padded);
  if (r.method == model::TrainMethod::lora) add("4N, padded tokens", 4, padded);
  add("6N, tokens without padding", 6, real);
  if (r.method == model::TrainMethod::lora) add("4N, tokens without padding", 4, real);
}

RunTotals train_totals(const LocalModel& model, const Plan& plan) {
  const Request& r = *model.request;
  const RowStatistics f = train_rows(model);
  RunTotals run;
  const double rows = static_cast<double>(r.train.batch) * std::max(1, r.train.accumulation);
  run.steps = train_steps(r, f.batches_rows);
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
  if (r.lengths.rows == RowLayout::padded && r.lengths.computes_padding && f.packed_rows > 0)
    run.packed_speedup = f.rows / f.packed_rows;
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

double usd_per_million(const LocalModel& model, double tokens_per_second) {
  const Request& r = *model.request;
  const double hourly = r.price.usd_per_chip_hour * r.target.chips();
  return tokens_per_second > 0 ? hourly / 3600 / tokens_per_second * 1e6 : 0;
}

void scale(StepTime& step, double n) {
  for (Term& t : step.terms) {
    t.compute = t.compute * n;
    t.memory = t.memory * n;
    t.communication = t.communication * n;
    t.hidden *= n;
  }
  for (Estimate* e : {&step.seconds, &step.compute, &step.memory, &step.communication, &step.fixed}) *e = *e * n;
  step.hidden *= n;
}

// Converts the parts of a server's step to terms: reads count as memory, work per token as compute.
StepTime step_of(const ServeStepModel::Parts& p, const Efficiencies& efficiencies) {
  const Estimate dispatch = 1 * efficiencies.step_s, each = p.padded_requests * efficiencies.sequence_s;
  StepTime out;
  const auto add = [&](const char* part, Estimate Term::*where, const Estimate& seconds) {
    Term& term = out.terms.emplace_back();
    term.phase = Term::Phase::decode;
    term.part = part;
    term.*where = seconds;
  };
  add("weights", &Term::memory, p.base - dispatch);
  add("products of the sequences", &Term::compute, p.sequences - each);
  add("KV reads", &Term::memory, p.kv_reads);
  add("sums between devices", &Term::communication, p.communication);
  for (const Term& t : out.terms) {
    out.compute += t.compute;
    out.memory += t.memory;
    out.communication += t.communication;
  }
  out.fixed = dispatch + each;
  out.seconds = p.total;
  out.overlap = "a step waits for its sums";
  if (p.products_bound_reads)
    out.overlap +=
        "; KV reads wait for the products of the kernel's whole blocks: a smaller serve.kv_dtype holds more "
        "tokens, but does not shorten them";
  return out;
}

// Time to first token of a prompt in an idle server, summed over its chunks.
Estimate first_token(const ServeStepModel& model, const ServeWork& s) {
  const double window = model.window() > 0 ? model.window() : s.input_len;
  Estimate sum;
  for (int done = 0; done < s.input_len;) {
    const int now = std::min(s.input_len - done, std::max(1, s.max_num_batched_tokens));
    const double middle = done + now / 2.0;
    const auto p = model.parts({.prefill_tokens = now,
                                .prefilling = 1,
                                .prefill_pairs = now * middle,
                                .prefill_window_pairs = now * std::min(middle, window)});
    sum = done == 0 ? p.total : sum + p.total;
    done += now;
  }
  return sum;
}

// Predicted figures of a server or a rollout. Servers use ServeStepModel, as the simulator does.
struct ServePrediction {
  ServeNumbers numbers;
  StepTime step;  // a decode step (serve), or the whole rollout
};

ServePrediction serve(const LocalModel& m, const DeviceMemory& memory) {
  const Request& r = *m.request;
  const ServeWork& s = r.serve;
  const ServeStepModel model(m);
  ServePrediction out;
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(m, s.max_model_len);
  const auto cache = static_cast<double>(memory.at_peak[MemoryCategory::kv_cache].value);
  n.kv_tokens = n.kv_bytes_per_token > 0 ? static_cast<std::int64_t>(cache / n.kv_bytes_per_token) * m.batch_ways : 0;
  const LoadedServer load = loaded_server(model, s);
  const auto step = model.parts(load.decoding);
  out.step = step_of(step, r.efficiencies);
  n.longest_request = longest_request(m, cache);
  n.running = load.decoding.decoding;
  n.decode_step = step.total;
  n.tpot = step.total * (load.steady.tpot_s / step.total.value);
  n.tpot.formula = "time of a request beside the prompts of others, from its first token to its last / tokens between";
  n.tpot.inputs.clear();
  n.ttft = first_token(model, s) + 1 * r.efficiencies.request_s + s.input_len * r.efficiencies.token_s;
  n.output_tokens_per_second = load.steady.output_tokens_per_s;
  n.usd_per_million_output_tokens = usd_per_million(m, n.output_tokens_per_second);
  return out;
}

ServePrediction rollout(const LocalModel& model) {
  const Request& r = *model.request;
  const RolloutWork& w = r.rollout;
  ServePrediction out;
  const RolloutShape shape = rollout_shape(r);
  const StepTime prefill = prefill_time(model, shape.rows, w.prompt);
  out.step = decode_time(model, shape.rows, shape.context);
  ServeNumbers& n = out.numbers;
  n.kv_bytes_per_token = kv_bytes_per_token(model, shape.cache);
  n.kv_tokens = static_cast<std::int64_t>(shape.rows * shape.cache);
  n.tpot = n.decode_step = out.step.seconds;
  n.ttft = prefill.seconds;
  scale(out.step, w.new_tokens);
  for (Term t : prefill.terms) {
    t.phase = Term::Phase::prefill;
    out.step.terms.push_back(std::move(t));
  }
  out.step.compute += prefill.compute;
  out.step.memory += prefill.memory;
  out.step.communication += prefill.communication;
  out.step.fixed += prefill.fixed;
  out.step.hidden += prefill.hidden;
  out.step.seconds += prefill.seconds;
  n.output_tokens_per_second = shape.rows * w.new_tokens / out.step.seconds.value;
  n.usd_per_million_output_tokens = usd_per_million(model, n.output_tokens_per_second);
  return out;
}

Estimate compile_time(const LocalModel& model) {
  const Efficiency& layer = model.request->efficiencies.compile_s;
  Estimate out = model.layers() * layer;
  out.formula = "layers x seconds";
  out.inputs = (count_of(model.layers()) * seconds_text(layer.value)).text;
  return out;
}

// The settings that make buffers of this category smaller.
std::string remedy_for(MemoryCategory category, Work work) {
  const bool serves = work == Work::serve;
  switch (category) {
    case MemoryCategory::weights:
    case MemoryCategory::collectives:
      return serves ? "a smaller model, or more devices along tp"
                    : "train.dtype=bf16, a smaller model, or more devices along fsdp or tp";
    case MemoryCategory::adapters:
    case MemoryCategory::gradients:
    case MemoryCategory::optimizer:
      return "fewer trained weights (train.method=lora, a lower lora.rank), or more devices along fsdp";
    case MemoryCategory::logits:
      return serves ? "fewer serve.max_num_seqs" : "a smaller train.loss_chunk, or a smaller batch";
    case MemoryCategory::kv_cache:
      return "more devices along tp, or fewer serve.max_num_seqs";
    default:
      return serves                ? "more devices along tp, or fewer serve.max_num_batched_tokens"
             : work == Work::train ? "a smaller batch, a shorter data.max_len, train.remat=layer, or more devices"
                                   : "a smaller batch, or more devices along fsdp or tp";
  }
}

// On each device; on this machine also the limit that would hold the work, in GiB.
std::string memory_remedy(const Request& request, const DeviceMemory& memory) {
  const auto& categories = all_values<MemoryCategory>();
  const MemoryCategory largest = *std::max_element(
      categories.begin(), categories.end(), [&](auto a, auto b) { return memory.at_peak[a] < memory.at_peak[b]; });
  const double gib = static_cast<double>(memory.at_peak.total().value) / 1073741824.0;
  return "the " + std::string(to_string(largest)) + " hold " + to_text(memory.at_peak[largest]) + ": " +
         remedy_for(largest, request.work) +
         (request.engine ? "; or target.memory_gib=" + number_text(gib * 1.001, 3) : "");
}

void add_memory_problem(const Request& request, Plan& plan) {
  if (plan.memory.fits()) return;
  const bool serves = request.work == Work::serve;
  plan.problems.push_back(
      {.id = "MEMORY",
       .message = serves ? "the server does not fit" : "the work does not fit its devices",
       .place = "target.id",
       .found = to_text(plan.memory.at_peak.total()) + " at " + plan.memory.peak_instant + ", most of it " +
                plan.memory.buffers.front().name,
       .expected = "at most " + to_text(plan.memory.capacity) + " on each of " + counted(plan.devices, "device"),
       .fix = memory_remedy(request, plan.memory)});
}

void add_length_notes(const Request& request, Plan& plan) {
  if (plan.run.real_share >= 0.7 || request.lengths.rows != RowLayout::padded) return;
  plan.problems.push_back({.id = "PADDING",
                           .severity = Severity::warning,
                           .message = "most of the computation is padding",
                           .place = "data.packing",
                           .found = number_text(100 * (1 - plan.run.real_share), 3) + " % of the tokens",
                           .expected = "at most 30 %",
                           .fix = "with data.packing=true the same examples take 1/" +
                                  number_text(std::max(1.0, plan.run.packed_speedup), 3) + " of the steps"});
}

// Servers are refused: SERVE-3, and by the engine when its cache is laid out, as its trainings are.
void add_context_note(const Request& request, Plan& plan) {
  const bool trains = request.work == Work::train, rolls = request.work == Work::rollout;
  const std::int64_t longest = trains  ? request.lengths.max_len
                               : rolls ? std::int64_t{request.rollout.prompt} + request.rollout.new_tokens
                                       : request.forward.len;
  const int most = request.model.max_positions;
  if (request.work == Work::serve || (trains && request.engine) || most <= 0 || longest <= most) return;
  plan.problems.push_back({.id = "CONTEXT",
                           .severity = trains ? Severity::warning : Severity::error,
                           .message = "rows are longer than the model's context",
                           .place = trains  ? "data.max_len"
                                    : rolls ? "size.new_tokens"
                                            : "size.forward_len",
                           .found = counted(longest, "token"),
                           .expected = "at most " + std::to_string(most)});
}

void add_epoch_note(const Request& request, Plan& plan) {
  if (knows_steps(request)) return;
  plan.problems.push_back({.id = "EPOCHS",
                           .severity = Severity::warning,
                           .message = "train.epochs is set, but the number of rows is not known: one step is planned",
                           .place = "data.rows",
                           .found = number_text(request.train.epochs) + " epochs of no rows",
                           .expected = "data.path with a tokenizer, data.lengths or data.rows",
                           .fix = "set data.rows, or set train.steps instead of train.epochs"});
}

void add_price_note(const Request& request, Plan& plan) {
  if (request.price.usd_per_chip_hour == 0 && !request.price.source.empty())
    plan.problems.push_back({.id = "PRICE-NONE",
                             .severity = Severity::info,
                             .message = "no price of this chip is published, so that the plan has no cost",
                             .place = "price.usd_per_chip_hour",
                             .found = request.price.source + ", " + request.price.date,
                             .expected = "a price per chip-hour",
                             .fix = "set price.usd_per_chip_hour and price.date"});
  if (request.price.usd_per_chip_hour == 0 || request.price_days.value_or(0) <= hardware::kPriceDays) return;
  plan.problems.push_back(
      {.id = "PRICE-OLD",
       .severity = Severity::warning,
       .message =
           "the price may have changed: its date is more than " + std::to_string(hardware::kPriceDays) + " days ago",
       .place = "price.usd_per_chip_hour",
       .found = "$" + number_text(request.price.usd_per_chip_hour) + " per chip-hour of " + request.price.date,
       .expected = "a price of the last " + std::to_string(hardware::kPriceDays) + " days",
       .fix = "set price.usd_per_chip_hour and price.date, or add today's price to prices.json in the configuration "
              "folder"});
}

std::vector<std::string> sources_of(const Request& request) {
  const hardware::Chip& chip = request.target.chip;
  const auto figure = [](const char* what, const hardware::Figure& f) {
    return what + f.source + (f.kind == hardware::Provenance::unverified ? " (unverified)" : "");
  };
  std::vector<std::string> out{figure("capacity: ", chip.memory), figure("peak: ", chip.bf16_flops),
                               figure("bandwidth: ", chip.memory_bandwidth)};
  if (request.products == model::DType::fp8) out.push_back(figure("fp8 peak: ", chip.fp8_flops));
  if (request.price.usd_per_chip_hour > 0) {
    std::string price = "price: $" + number_text(request.price.usd_per_chip_hour) + " per chip-hour";
    for (const std::string& part :
         {request.price.price_class, request.price.region, request.price.date, request.price.source})
      if (!part.empty()) price += ", " + part;
    out.push_back(price + (request.price.verified ? "" : " (unverified)"));
  }
  out.push_back("stack: " + request.profile.source);
  if (!request.calibrated.empty()) out.push_back("efficiencies: " + request.calibrated);
  out.push_back("share of peak in products " + number_text(request.efficiencies.matmul.value, 3) + ": " +
                request.efficiencies.matmul.source);
  out.push_back("share of memory bandwidth " + number_text(request.efficiencies.memory.value, 3) + ": " +
                request.efficiencies.memory.source);
  if (const std::string& kernels = request.efficiencies.engine.source; !kernels.empty())
    out.push_back("kernels of the engine: " + kernels);
  return out;
}

// `engine`: its memory, if it does the work.
Plan predict(const Request& request, std::optional<DeviceMemory> engine) {
  if (mesh::Mesh ordered = canonical_order(request.mesh); ordered != request.mesh) {
    Request same = request;
    same.mesh = std::move(ordered);
    return predict(same, std::move(engine));
  }
  const bool samples = request.work == Work::rollout || request.work == Work::serve;
  const LocalModel m = local_model(request, samples ? mesh::ShardingUse::sampling : mesh::ShardingUse::training);
  Plan plan;
  plan.devices = request.mesh.devices();
  plan.problems = m.placement.problems;
  plan.compile = compile_time(m);
  const auto memory = [&](auto of_stack) { return engine ? std::move(*engine) : of_stack(m); };
  switch (request.work) {
    case Work::train:
      plan.memory = memory(train_memory);
      plan.step = train_time(m);
      plan.run = train_totals(m, plan);
      add_length_notes(request, plan);
      add_epoch_note(request, plan);
      break;
    case Work::forward:
      plan.memory = memory(forward_memory);
      plan.step = forward_time(m);
      plan.run = forward_totals(m, plan, static_cast<double>(request.forward.batch) * request.forward.len);
      break;
    case Work::rollout: {
      plan.memory = memory(rollout_memory);
      ServePrediction served = rollout(m);
      plan.step = std::move(served.step);
      plan.serve = served.numbers;
      plan.run = forward_totals(m, plan, static_cast<double>(request.rollout.batch) * request.rollout.new_tokens);
      break;
    }
    case Work::serve: {
      plan.memory = memory(serve_memory);
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
  add_price_note(request, plan);
  add_context_note(request, plan);
  const bool served = plan.serve && request.work == Work::serve && plan.memory.fits();
  plan.refusals = refusals(request, m.placement, served ? std::optional(plan.serve->longest_request) : std::nullopt);
  plan.sources = sources_of(request);
  if (request.engine) plan.sources.push_back("memory: " + plan.memory.total.source);
  return plan;
}

}  // namespace

Plan predict(const Request& request) {
  check_request(request);
  // The engine numbers its devices in the order in which the document has the axes.
  return predict(request, request.engine ? std::optional(engine_memory(request)) : std::nullopt);
}

}  // namespace mw::plan
