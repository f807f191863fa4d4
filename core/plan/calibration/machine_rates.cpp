// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/machine_rates.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/model/catalogue.h"
#include "core/model/inventory.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/prediction/serve_step.h"
#include "core/plan/prediction/step_time.h"

namespace mw::plan {
namespace fs = std::filesystem;
namespace {

constexpr double kMeasuredInterval = 1.15, kShippedInterval = 2.5;  // factors up and down; of measurements at least

double interval_of(double spread) {
  return std::max(kMeasuredInterval, 1 + spread);
}

std::string percent_text(double share) {
  return number_text(100 * share, 2) + " %";
}

constexpr Work kRunWorks[]{Work::train, Work::serve};
constexpr const char* kRunWorkNames[]{"train", "serve"};

MachineFigure read_figure(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  MachineFigure f;
  f.work = row.choice<MachineWork>("work", row.text("work"));
  f.weights = row.choice<model::DType>("weights", row.text("weights"));
  f.rows = row.whole("rows", 1, 1, 1 << 20);
  f.len = row.whole("len", 1, 1, 1 << 20);
  f.seconds = row.number("seconds");
  f.model = row.text_or("model", "");
  if (!f.model.empty()) benchmark_model(f.model);  // throws for an unknown one
  f.kv_seconds = row.number_or("kv_seconds", 0);
  row.finish();
  return f;
}

double read_spread(JsonRow& row) {
  const double spread = row.number_or("spread", 0);
  if (spread > 1e3) row.bad("spread", "out of range", number_text(spread), "0 to 1000");
  return spread;
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
  r.spread = read_spread(row);
  const RowLocation inside = row.inside("figures");
  for (const Json& figure : row.list("figures")) r.figures.push_back(read_figure(figure, inside));
  row.finish();
  return r;
}

MeasuredRun read_run(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  MeasuredRun r;
  r.processor = {row.text_or("processor", ""), row.text("instructions"), row.whole("threads", 1, 1, 4096)};
  r.devices = row.whole("devices", 1, 1, 4096);
  const std::string work = row.text("work");
  if (work != kRunWorkNames[0] && work != kRunWorkNames[1]) row.bad("work", "unknown value", work, "train, serve");
  r.work = kRunWorks[work == kRunWorkNames[1]];
  r.weights = row.choice<model::DType>("weights", row.text("weights"));
  r.factor = row.number("factor");
  if (r.factor < 1e-3 || r.factor > 1e3) row.bad("factor", "out of range", number_text(r.factor), "0.001 to 1000");
  r.spread = read_spread(row);
  r.basis = row.text("basis");
  r.date = row.text("date");
  r.run = row.text("run");
  row.finish();
  return r;
}

Json to_json(const MeasuredRun& r) {
  Json out{{"processor", r.processor.model},
           {"instructions", r.processor.instructions},
           {"threads", r.processor.threads},
           {"devices", r.devices},
           {"work", kRunWorkNames[r.work == Work::serve]},
           {"weights", to_string(r.weights)},
           {"factor", r.factor},
           {"basis", r.basis},
           {"date", r.date},
           {"run", r.run}};
  if (r.spread > 0) out["spread"] = r.spread;
  return out;
}

template <class Row, class Read>
std::vector<Row> read_rows(const Json& document, const fs::path& file, const std::string& key, Read read) {
  require_known_schema(document, file.string());
  const Sources sources = read_sources(document, file.string());
  const Json& rows = member(document, key, file.string());
  if (!rows.is_array())
    throw Error("HARDWARE-FILE", "the value is not a list of rows", {.file = file.string(), .place = key});
  std::vector<Row> all;
  for (size_t i = 0; i < rows.size(); ++i)
    all.push_back(
        read(rows[i], RowLocation{sources, file.string(), key + "[" + std::to_string(i) + "]", "HARDWARE-ROW"}));
  return all;
}

void write_measurements(const fs::path& user_folder, const MeasuredMachine& all) {
  Json machines = Json::array(), runs = Json::array();
  for (const MachineRates& rates : all.rates) machines.push_back(to_json(rates));
  for (const MeasuredRun& run : all.runs) runs.push_back(to_json(run));
  Json out{{"schema", 1}, {"machines", std::move(machines)}};
  if (!runs.empty()) out["runs"] = std::move(runs);
  write_file_atomically(user_folder / kMachineRatesFile, out.dump(1) + "\n");
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
  r.model = benchmark_model(figure.model.empty() ? rates.model : figure.model);
  r.target = request.target;
  r.target.chip.devices_per_chip = 1;
  r.target.chip.bf16_flops = peak_of(rates, figure.weights, request.target.chip.bf16_flops.source);
  set_stack(r, model::Stack::engine);
  set_weights(r, figure.weights);
  r.kv = model::DType::f32;
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

const MachineFigure* figure_of(const MachineRates& rates, const std::string& model, MachineWork work,
                               model::DType weights, bool many_rows) {
  const auto best = [&](model::DType type) {
    const MachineFigure* found = nullptr;
    for (const MachineFigure& f : rates.figures)
      if (f.model == model && f.work == work && f.weights == type && (!found || (f.rows > found->rows) == many_rows))
        found = &f;
    return found;
  };
  for (const model::DType type : {weights, model::DType::bf16, model::DType::f32})
    if (const MachineFigure* found = best(type)) return found;
  return nullptr;
}

double parameters_of(const model::Config& config) {
  return static_cast<double>(model::TensorInventory(config).parameters());
}

// The efficiencies with which plans of one benchmark model take its measured seconds.
struct SolvedRates {
  double matmul = 0, memory = 0, sequence_s = 0;  // 0: not measured
};

constexpr double kLeastSequence = 1e-7;

SolvedRates solve(const MachineRates& rates, const std::string& model, const Request& request) {
  SolvedRates out;
  Efficiencies shares = request.efficiencies;
  const auto take = [&](const MachineFigure& f, Efficiency Efficiencies::*member, double low, double high) {
    Request r = benchmark_request(rates, f, request);
    r.efficiencies = shares;
    return (shares.*member).value = solved(f, std::move(r), member, low, high);
  };
  const auto figure = [&](MachineWork work, bool many_rows) {
    return figure_of(rates, model, work, request.weights, many_rows);
  };
  if (const MachineFigure* f = figure(request.work == Work::train ? MachineWork::train : MachineWork::prefill, true))
    out.matmul = take(*f, &Efficiencies::matmul, 1e-3, 1.5);
  if (request.work == Work::train) return out;
  const MachineFigure *one = figure(MachineWork::decode, false), *many = figure(MachineWork::decode, true);
  shares.sequence_s.value = 0;
  for (int i = 0; i < 4 && one; ++i) {  // each depends on the other
    out.memory = take(*one, &Efficiencies::memory, 1e-3, 16);
    if (many->rows > one->rows) out.sequence_s = take(*many, &Efficiencies::sequence_s, kLeastSequence, 10);
  }
  return out;
}

// The points of EngineCosts::kv_reads that a benchmark measured; else those of the class.
void set_kv_reads(const MachineRates& rates, EngineCosts& costs) {
  std::vector<std::pair<double, double>> points;
  for (const MachineFigure& f : rates.figures) {
    if (f.kv_seconds <= 0) continue;
    const model::Config config = benchmark_model(f.model.empty() ? rates.model : f.model);
    double bytes = 0;
    for (const model::Layer& l : config.layers) {
      const bool slides = l.attention == model::Attention::sliding && config.sliding_window > 0;
      bytes += 8.0 * l.kv_heads * l.head_dim * f.rows * (slides ? std::min(f.len, config.sliding_window) : f.len);
    }
    points.emplace_back(bytes, bytes / f.kv_seconds / rates.read_bytes);
  }
  if (points.empty()) return;
  std::sort(points.begin(), points.end());
  costs.kv_reads = std::move(points);
}

std::string source_of(const RatesInForce& found, double threads) {
  const MachineRates& rates = *found.rates;
  const auto counted = [](int n) { return std::to_string(n) + (n == 1 ? " thread" : " threads"); };
  const auto spread = [](double share) {
    return share > 0 ? ", spread " + percent_text(share) + " (a steadier measurement takes its place)" : std::string();
  };
  if (found.run)
    return "measured here in " + found.run->run + ", " + found.run->date + ", " +
           counted(found.run->processor.threads) +
           (found.run->devices > 1 ? " of " + std::to_string(found.run->devices) + " devices" : "") +
           spread(found.run->spread);
  const bool measured = found.origin == RatesOrigin::measured;
  return (measured ? "measured here by bench, " + rates.source : rates.source) + ", " + rates.date + ", " +
         counted(rates.threads) + spread(rates.spread) +
         (!measured                  ? "; measure with `meshwright bench --save`"
          : threads == rates.threads ? ""
                                     : "; scaled to " + number_text(threads, 2) + " a device");
}

void multiply(hardware::Figure& figure, double by) {
  for (double* value : {&figure.value, &figure.low, &figure.high}) *value *= by;
}

}  // namespace

model::Config benchmark_model(const std::string& id) {
  if (id != kSmallModel) return model::catalogue_config(id);
  model::Config c = model::catalogue_config("gemma3-270m");
  c.id = id;
  c.dim = 192, c.vocab = 2048, c.sliding_window = 128, c.max_positions = 1024;
  c.attention_scale = 1.0f / std::sqrt(32.0f);
  c.layers.resize(6);
  for (model::Layer& l : c.layers) l.heads = 8, l.kv_heads = 4, l.head_dim = 32, l.mlp_dim = 640;
  return c;
}

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
  const int window = r.model.sliding_window > 0 ? std::min(r.model.sliding_window, f.len) : f.len;
  const double rows = f.rows, len = f.len, tokens = rows * len, seen = window;
  const ServeStepModel model(r);
  return f.work == MachineWork::decode
             ? model.seconds({.decoding = f.rows, .read_tokens = tokens, .read_window_tokens = rows * seen})
             : model.seconds({.prefill_tokens = static_cast<std::int64_t>(tokens),
                              .prefilling = f.rows,
                              .prefill_pairs = tokens * (len + 1) / 2,
                              .prefill_window_pairs = rows * (seen * (seen + 1) / 2 + (len - seen) * seen)});
}

std::vector<MachineRates> read_machine_rates(const fs::path& file) {
  return read_rows<MachineRates>(read_json(file), file, "machines", read_rates);
}

EngineCosts read_engine_costs(const fs::path& file) {
  const Json document = read_json(file);
  JsonRow row(member(document, "costs", file.string()),
              RowLocation{read_sources(document, file.string()), file.string(), "costs", "HARDWARE-ROW"});
  EngineCosts c;
  c.output_columns = row.number("output_columns");
  c.query_keys = row.number("query_keys");
  c.query_ops = row.number("query_ops");
  c.gathers = row.number("gathers");
  c.call_s = row.number("call_s");
  const double cached = row.number("cached_kv_bytes"), many = row.number("uncached_kv_bytes");
  c.kv_reads = {{cached, row.number("cached_kv_reads")}, {many, row.number("uncached_kv_reads")}};
  c.source = row.text("source");
  row.finish();
  return c;
}

MeasuredMachine own_measurements(const fs::path& user_folder) {
  const fs::path file = user_folder / kMachineRatesFile;
  if (user_folder.empty() || !path_exists(file)) return {};
  const Json document = read_json(file);
  MeasuredMachine all{.rates = read_rows<MachineRates>(document, file, "machines", read_rates)};
  if (document.contains("runs")) all.runs = read_rows<MeasuredRun>(document, file, "runs", read_run);
  return all;
}

Json to_json(const MachineRates& rates) {
  Json figures = Json::array();
  for (const MachineFigure& f : rates.figures) {
    Json figure{{"work", to_string(f.work)},
                {"weights", to_string(f.weights)},
                {"rows", f.rows},
                {"len", f.len},
                {"seconds", f.seconds}};
    if (!f.model.empty()) figure["model"] = f.model;
    if (f.kv_seconds > 0) figure["kv_seconds"] = f.kv_seconds;
    figures.push_back(std::move(figure));
  }
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
  if (rates.spread > 0) out["spread"] = rates.spread;
  return out;
}

std::string basis_of(const MachineRates& rates) {
  return rates.source + ", " + rates.date + ", " + std::to_string(rates.threads);
}

double spread_of(std::vector<std::pair<double, double>> times, double middle) {
  std::sort(times.begin(), times.end());
  double all = 0, sum = 0, low = 0, high = 0;
  for (const auto& [time, weight] : times) all += weight;
  for (const auto& [time, weight] : times) {
    sum += weight;
    if (low == 0 && sum >= 0.1 * all) low = time;
    if (high == 0 && sum >= 0.9 * all) high = time;
  }
  return low > 0 && middle > 0 ? std::clamp(std::max(high / middle, middle / low) - 1, 0.0, 1e3) : 0;
}

namespace {

// Why a measurement does not take the place of what plans use; empty: it does. `ratio`: its seconds over theirs.
std::string reason_to_keep(const std::string& used, double interval, double spread, double ratio) {
  if (interval_of(spread) <= interval || ratio * (1 + spread) < 1) return {};
  return "plans of this machine stay with " + used + " (" + percent_text(interval - 1) +
         "): this measurement has a spread of " + percent_text(spread) +
         ", as beside other programs; repeat it on an idle machine";
}

// Of the figures that both have: the geometric mean.
double seconds_ratio(const MachineRates& rates, const MachineRates& others) {
  const auto key = [](const MachineFigure& f) { return std::tie(f.work, f.weights, f.rows, f.len, f.model); };
  double sum = 0;
  int count = 0;
  for (const MachineFigure& f : rates.figures)
    for (const MachineFigure& other : others.figures)
      if (key(f) == key(other)) sum += std::log(f.seconds / other.seconds), ++count;
  return count > 0 ? std::exp(sum / count) : 1;
}

std::string reason_to_keep(const MachineRates& used, double spread, double ratio) {
  return reason_to_keep(used.source + ", " + used.date, interval_of(used.spread), spread, ratio);
}

constexpr const char* kClass = "the rates of its class";

}  // namespace

std::string save_machine_rates(const fs::path& user_folder, const MachineRates& rates) {
  const FileLock lock(user_folder / kMachineRatesFile);
  MeasuredMachine all = own_measurements(user_folder);
  const auto is_same = [&](const std::string& processor, const std::string& instructions, int threads) {
    return processor == rates.processor && instructions == rates.instructions && threads == rates.threads;
  };
  std::string kept = reason_to_keep(kClass, kShippedInterval, rates.spread, 1);
  for (const MachineRates& r : all.rates)
    if (is_same(r.processor, r.instructions, r.threads))
      kept = reason_to_keep(r, rates.spread, seconds_ratio(rates, r));
  if (!kept.empty()) return kept;
  std::erase_if(all.rates, [&](const MachineRates& r) { return is_same(r.processor, r.instructions, r.threads); });
  std::erase_if(all.runs, [&](const MeasuredRun& r) {
    return is_same(r.processor.model, r.processor.instructions, r.processor.threads);
  });
  all.rates.insert(all.rates.begin(), rates);
  write_measurements(user_folder, all);
  return {};
}

std::string save_measured_run(const fs::path& user_folder, const MeasuredRun& run) {
  const FileLock lock(user_folder / kMachineRatesFile);
  MeasuredMachine all = own_measurements(user_folder);
  const auto key = [](const MeasuredRun& r) {
    return std::tie(r.processor.model, r.processor.instructions, r.processor.threads, r.devices, r.work, r.weights);
  };
  std::string kept = reason_to_keep(kClass, kShippedInterval, run.spread, run.factor);
  for (const MachineRates& r : all.rates)
    if (basis_of(r) == run.basis && r.threads == run.processor.threads)
      kept = reason_to_keep(r, run.spread, run.factor);
  for (const MeasuredRun& r : all.runs)
    if (key(r) == key(run) && r.basis == run.basis)
      kept = reason_to_keep(r.run + ", " + r.date, interval_of(r.spread), run.spread, run.factor / r.factor);
  if (!kept.empty()) return kept;
  std::erase_if(all.runs, [&](const MeasuredRun& r) { return key(r) == key(run); });
  all.runs.insert(all.runs.begin(), run);
  write_measurements(user_folder, all);
  return {};
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

void apply(const RatesInForce& found, double threads, Request& request) {
  const MachineRates& rates = *found.rates;
  const bool measured = found.run || (found.origin == RatesOrigin::measured && threads == rates.threads);
  const double interval = measured ? interval_of(found.run ? found.run->spread : rates.spread) : kShippedInterval;
  const std::string source = source_of(found, threads);
  const Origin known = found.run || found.origin == RatesOrigin::measured ? Origin::measured : Origin::transferred;
  // The interval is that of the efficiencies; the peaks are those that they are shares of.
  hardware::Chip& chip = request.target.chip;
  chip.bf16_flops = peak_of(rates, request.weights, source);
  chip.f32_flops = chip.vector_ops = peak_of(rates, model::DType::f32, source);
  chip.memory_bandwidth = {rates.read_bytes, rates.read_bytes, rates.read_bytes, hardware::Provenance::measured,
                           source};
  Efficiencies& e = request.efficiencies;
  const auto set = [&](Efficiency Efficiencies::*member, double value) {
    e.*member = {value, value / interval, value * interval, known, source};
  };
  // The measured seconds contain every fixed cost, nothing is compiled, and devices that share a processor hide
  // nothing.
  for (Efficiency Efficiencies::*member :
       {&Efficiencies::kernel_s, &Efficiencies::step_s, &Efficiencies::layer_s, &Efficiencies::prompt_layer_s,
        &Efficiencies::compile_s, &Efficiencies::sequence_s, &Efficiencies::overlap, &Efficiencies::overlap_sums})
    e.*member = {0, 0, 0, known, source};
  e.engine = found.costs;
  set_kv_reads(rates, e.engine);
  set(&Efficiencies::kv_reads, 1);
  set(&Efficiencies::collectives, 1);
  const SolvedRates own = solve(rates, {}, request), small = solve(rates, kSmallModel, request);
  const double parameters = parameters_of(request.model), large = parameters_of(benchmark_model(rates.model)),
               least = parameters_of(benchmark_model(kSmallModel));
  const double place = std::clamp(std::log(parameters / least) / std::log(large / least), 0.0, 1.0);
  const auto between = [&](double SolvedRates::*member) {
    const double a = small.*member, b = own.*member;
    return a > 0 && b > 0 ? a * std::pow(b / a, place) : std::max(a, b);
  };
  if (const double value = between(&SolvedRates::matmul); value > 0) set(&Efficiencies::matmul, value);
  if (const double value = between(&SolvedRates::memory); value > 0) set(&Efficiencies::memory, value);
  // Decoding is planned with the products of prefill, but those of few rows are slower. sequence_s is the difference,
  // so it grows with the size of the products.
  const double grown = small.sequence_s > 0 ? std::max(1.0, parameters / large) : parameters / large;
  set(&Efficiencies::sequence_s, between(&SolvedRates::sequence_s) * grown);
  // Threads of the run instead of those that were measured; reads of memory gain less, which the interval holds.
  // A finished run corrects everything alike, so that its own plan takes what it took.
  const double factor = found.run ? found.run->factor : 1;
  for (hardware::Figure* peak : {&chip.bf16_flops, &chip.f32_flops, &chip.vector_ops, &chip.memory_bandwidth})
    multiply(*peak, threads / rates.threads / factor);
  const double gathers = e.engine.gathers * std::min(1.0, threads) / factor;
  chip.link_bandwidth = {gathers, gathers, gathers, hardware::Provenance::measured, e.engine.source};
  const double call = e.engine.call_s / std::min(1.0, threads) * factor;
  chip.link_latency = {call, call, call, hardware::Provenance::measured, e.engine.source};
  for (double* value : {&e.sequence_s.value, &e.sequence_s.low, &e.sequence_s.high}) *value *= factor;
}

}  // namespace mw::plan
