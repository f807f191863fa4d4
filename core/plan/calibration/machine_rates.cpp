// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/machine_rates.h"

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/model/catalogue.h"
#include "core/model/inventory.h"
#include "core/plan/time/serve_step.h"
#include "core/plan/time/step_time.h"

namespace mw::plan {
namespace fs = std::filesystem;
namespace {

constexpr int kSchema = 1;
constexpr double kMeasuredSpread = 1.15, kShippedSpread = 2.5;

template <class E>
E choice(JsonRow& row, const std::string& key) {
  const std::string text = row.text(key);
  std::string all;
  for (const E value : all_values<E>()) {
    if (to_string(value) == text) return value;
    all += (all.empty() ? "" : ", ") + std::string(to_string(value));
  }
  row.bad(key, "unknown value", text, all);
}

MachineFigure read_figure(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  MachineFigure f;
  f.work = choice<MachineWork>(row, "work");
  f.weights = choice<model::DType>(row, "weights");
  f.rows = row.whole("rows", 1, 1, 1 << 20);
  f.len = row.whole("len", 1, 1, 1 << 20);
  f.seconds = row.number("seconds");
  row.finish();
  return f;
}

MachineRates read_rates(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  MachineRates r;
  r.processor = row.text_or("processor", "");
  r.instructions = row.text("instructions");
  r.model = row.text("model");
  model::catalogue_config(r.model);  // throws for an unknown one
  r.threads = row.whole("threads", 1, 1, 4096);
  r.date = row.text("date");
  r.source = row.text("source");
  r.f32_flops = row.number("f32_flops");
  r.bf16_flops = row.number_or("bf16_flops", 0);
  r.read_bytes = row.number("read_bytes_per_s");
  const RowLocation inside = row.inside("figures");
  for (const Json& figure : row.list("figures")) r.figures.push_back(read_figure(figure, inside));
  row.finish();
  return r;
}

// FLOP/s of products with these weights: of bf16 and int8 in the faster of both ways.
hardware::Figure peak_of(const MachineRates& rates, model::DType weights, const std::string& source) {
  const double flops = weights == model::DType::f32 ? rates.f32_flops : std::max(rates.f32_flops, rates.bf16_flops);
  return {flops, flops, flops, hardware::Provenance::measured, source};
}

// The request of the benchmark's work on the machine of `request`, with the weights of a figure: one that was measured
// with other weights than the request's gives shares of its own peak.
Request benchmark_request(const MachineRates& rates, const MachineFigure& figure, const Request& request) {
  Request r;
  r.model = model::catalogue_config(rates.model);
  r.target = request.target;
  r.target.chip.devices_per_chip = 1;
  r.target.chip.bf16_flops = peak_of(rates, figure.weights, request.target.chip.bf16_flops.source);
  set_stack(r, model::Stack::engine);
  set_weights(r, figure.weights);
  r.efficiencies = request.efficiencies;
  r.mesh.axes = {{"fsdp", 1}, {"tp", 1}};
  r.lora.rank = kBenchmarkRank;
  using model::Role;
  r.targets = {Role::q_proj, Role::k_proj, Role::v_proj, Role::o_proj, Role::gate_proj, Role::up_proj, Role::down_proj};
  return r;
}

// The value between `low` and `high` with which the figure takes the measured seconds, else the nearer limit.
double solved(const MachineFigure& f, Request r, Efficiency Efficiencies::*member, double low, double high) {
  const auto seconds = [&](double value) {
    (r.efficiencies.*member).value = value;
    return planned_seconds(f, r);
  };
  const bool slower_with_more = seconds(high) > seconds(low);
  for (int i = 0; i < 18; ++i) {
    const double middle = std::sqrt(low * high);
    ((seconds(middle) > f.seconds) == slower_with_more ? high : low) = middle;
  }
  return std::sqrt(low * high);
}

const MachineFigure* figure_of(const MachineRates& rates, MachineWork work, model::DType weights, bool many_rows) {
  const auto best = [&](model::DType type) {
    const MachineFigure* found = nullptr;
    for (const MachineFigure& f : rates.figures)
      if (f.work == work && f.weights == type && (!found || (f.rows > found->rows) == many_rows)) found = &f;
    return found;
  };
  for (const model::DType type : {weights, model::DType::bf16, model::DType::f32})
    if (const MachineFigure* found = best(type)) return found;
  return nullptr;
}

}  // namespace

double planned_seconds(const MachineFigure& f, Request r) {
  if (f.work == MachineWork::train) {
    r.work = Work::train;
    r.lengths = {.max_len = f.len, .count = f.rows, .rows = RowLayout::padded, .computes_padding = false};
    r.train.batch = f.rows;
    r.train.steps = 1;
    return train_time(local_model(r, mesh::ShardingUse::training)).seconds.value;
  }
  r.work = Work::serve;
  r.targets.clear();
  const double tokens = 1.0 * f.rows * f.len, pairs = tokens * (f.len + 1) / 2;
  const ServeStepModel model(r);
  return f.work == MachineWork::decode
             ? model.seconds({.decoding = f.rows, .read_tokens = tokens, .read_window_tokens = tokens})
             : model.seconds({.prefill_tokens = static_cast<std::int64_t>(tokens),
                              .prefilling = f.rows,
                              .prefill_pairs = pairs,
                              .prefill_window_pairs = pairs});
}

std::vector<MachineRates> read_machine_rates(const fs::path& file) {
  const Json document = read_json(file);
  const Sources sources = read_sources(document, file.string());
  const Json& rows = member(document, "machines", file.string());
  if (!rows.is_array())
    throw Error({.id = "HARDWARE-FILE",
                 .message = "the value is not a list of rows",
                 .file = file.string(),
                 .place = "machines"});
  std::vector<MachineRates> all;
  for (size_t i = 0; i < rows.size(); ++i)
    all.push_back(read_rates(
        rows[i], RowLocation{sources, file.string(), "machines[" + std::to_string(i) + "]", "HARDWARE-ROW"}));
  return all;
}

std::vector<MachineRates> own_machine_rates(const fs::path& user_folder) {
  const fs::path file = user_folder / kMachineRatesFile;
  return !user_folder.empty() && path_exists(file) ? read_machine_rates(file) : std::vector<MachineRates>();
}

Json to_json(const MachineRates& rates) {
  Json figures = Json::array();
  for (const MachineFigure& f : rates.figures)
    figures.push_back({{"work", to_string(f.work)},
                       {"weights", to_string(f.weights)},
                       {"rows", f.rows},
                       {"len", f.len},
                       {"seconds", f.seconds}});
  Json out{{"instructions", rates.instructions},
           {"model", rates.model},
           {"threads", rates.threads},
           {"date", rates.date},
           {"source", rates.source},
           {"f32_flops", rates.f32_flops},
           {"read_bytes_per_s", rates.read_bytes},
           {"figures", std::move(figures)}};
  if (!rates.processor.empty()) out["processor"] = rates.processor;
  if (rates.bf16_flops > 0) out["bf16_flops"] = rates.bf16_flops;
  return out;
}

void save_machine_rates(const fs::path& user_folder, const MachineRates& rates) {
  const fs::path file = user_folder / kMachineRatesFile;
  Json machines = Json::array({to_json(rates)});
  for (const MachineRates& other : own_machine_rates(user_folder))
    if (other.processor != rates.processor || other.instructions != rates.instructions ||
        other.threads != rates.threads)
      machines.push_back(to_json(other));
  make_folders(user_folder);
  write_file_atomically(file, Json{{"schema", kSchema}, {"machines", std::move(machines)}}.dump(1) + "\n");
}

const MachineRates* rates_of(const std::vector<MachineRates>& own, const std::vector<MachineRates>& shipped,
                             const Processor& processor) {
  const MachineRates* best = nullptr;
  const auto apart = [&](const MachineRates& r) { return std::abs(std::log2(1.0 * r.threads / processor.threads)); };
  for (const MachineRates& r : own)
    if (r.processor == processor.model && r.instructions == processor.instructions &&
        (!best || apart(r) < apart(*best)))
      best = &r;
  if (best) return best;
  static constexpr std::string_view kAscending[] = {"avx2",        "avx_vnni",    "avx512",
                                                    "avx512_vnni", "avx512_bf16", "amx"};  // engine::Cpu
  const auto place = [](std::string_view name) {
    return std::find(std::begin(kAscending), std::end(kAscending), name);
  };
  const auto wanted = place(processor.instructions);
  for (const MachineRates& r : shipped)  // ascending
    if (!best || (wanted != std::end(kAscending) && place(r.instructions) <= wanted)) best = &r;
  return best;
}

void apply(const MachineRates& rates, RatesOrigin origin, double threads, Request& request) {
  const bool measured = origin == RatesOrigin::measured;
  const double spread = measured && threads == rates.threads ? kMeasuredSpread : kShippedSpread;
  const double scale = threads / rates.threads;
  const std::string source = (measured ? "measured here by bench, " + rates.source : rates.source) + ", " + rates.date +
                             ", " + std::to_string(rates.threads) + " threads" +
                             (!measured                   ? "; measure with `meshwright bench --save`"
                              : spread == kMeasuredSpread ? ""
                                                          : "; scaled to " + number_text(threads, 2) + " a device");
  // The interval is that of the efficiencies; the peaks are those that they are shares of.
  hardware::Chip& chip = request.target.chip;
  chip.bf16_flops = peak_of(rates, request.weights, source);
  chip.f32_flops = chip.vector_ops = peak_of(rates, model::DType::f32, source);
  chip.memory_bandwidth = {rates.read_bytes, rates.read_bytes, rates.read_bytes, hardware::Provenance::measured,
                           source};
  // The measured seconds contain every fixed cost, and nothing is compiled.
  for (Efficiency Efficiencies::*member : {&Efficiencies::kernel_s, &Efficiencies::step_s, &Efficiencies::layer_s,
                                           &Efficiencies::prompt_layer_s, &Efficiencies::compile_s})
    request.efficiencies.*member = {0, 0, 0, Origin::measured, source};
  const auto set = [&](Efficiency Efficiencies::*member, double value) {
    const Origin known = measured ? Origin::measured : Origin::transferred;
    request.efficiencies.*member = {value, value / spread, value * spread, known, source};
  };
  const auto solve = [&](const MachineFigure& f, Efficiency Efficiencies::*member, double low, double high) {
    set(member, solved(f, benchmark_request(rates, f, request), member, low, high));
  };
  if (request.work == Work::train) {
    if (const MachineFigure* f = figure_of(rates, MachineWork::train, request.weights, true))
      solve(*f, &Efficiencies::matmul, 1e-3, 1.5);
  } else {
    if (const MachineFigure* f = figure_of(rates, MachineWork::prefill, request.weights, true))
      solve(*f, &Efficiencies::matmul, 1e-3, 1.5);
    const MachineFigure *one = figure_of(rates, MachineWork::decode, request.weights, false),
                        *many = figure_of(rates, MachineWork::decode, request.weights, true);
    set(&Efficiencies::sequence_s, 0);
    for (int i = 0; i < 4 && one; ++i) {  // each depends on the other
      solve(*one, &Efficiencies::memory, 1e-3, 4);
      if (many->rows > one->rows) solve(*many, &Efficiencies::sequence_s, 1e-7, 10);
    }
  }
  // What sequences take beyond the products by which prefill is planned, because products of few rows are slower, grows
  // with these products.
  const auto parameters = [](const model::Config& config) {
    return static_cast<double>(model::TensorInventory(config).parameters());
  };
  const double work = parameters(request.model) / parameters(model::catalogue_config(rates.model));
  Efficiency& each = request.efficiencies.sequence_s;
  each.value *= work, each.low *= work, each.high *= work;
  // Threads of the run instead of those that were measured; reads of memory gain less, which the interval holds.
  for (hardware::Figure* peak : {&chip.bf16_flops, &chip.f32_flops, &chip.vector_ops, &chip.memory_bandwidth})
    for (double* value : {&peak->value, &peak->low, &peak->high}) *value *= scale;
}

}  // namespace mw::plan
