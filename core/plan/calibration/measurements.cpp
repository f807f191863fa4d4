// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/measurements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "core/base/json.h"

#include "core/model/catalogue.h"
#include "core/model/hf_config.h"
#include "core/plan/prediction/steady_state.h"

namespace mw::plan {
namespace {

constexpr double kGiB = 1073741824.0;

struct UnitName {
  std::string_view name;
  MeasuredQuantity what;
  double factor;  // to bytes
};
constexpr std::array kUnits{UnitName{"s/step", MeasuredQuantity::step_seconds, 1},
                            UnitName{"tokens/s/device", MeasuredQuantity::tokens_per_second, 1},
                            UnitName{"tokens/s without padding", MeasuredQuantity::real_tokens_per_second, 1},
                            UnitName{"real tokens/s", MeasuredQuantity::real_tokens_per_second, 1},  // in older files
                            UnitName{"samples/s", MeasuredQuantity::samples_per_second, 1},
                            UnitName{"h/run", MeasuredQuantity::run_hours, 1},
                            UnitName{"MFU %", MeasuredQuantity::mfu, 1},
                            UnitName{"GiB active", MeasuredQuantity::active_bytes, kGiB},
                            UnitName{"GiB reserved", MeasuredQuantity::reserved_bytes, kGiB},
                            UnitName{"GB device", MeasuredQuantity::device_bytes, 1e9},
                            UnitName{"GiB states", MeasuredQuantity::state_bytes, kGiB},
                            UnitName{"GiB activations", MeasuredQuantity::activation_bytes, kGiB},
                            UnitName{"bytes weights", MeasuredQuantity::weight_bytes, 1},
                            UnitName{"KV tokens", MeasuredQuantity::kv_tokens, 1},
                            UnitName{"ms mean TTFT", MeasuredQuantity::mean_ttft, 1},
                            UnitName{"ms median TTFT", MeasuredQuantity::median_ttft, 1},
                            UnitName{"ms mean TPOT", MeasuredQuantity::mean_tpot, 1},
                            UnitName{"ms median TPOT", MeasuredQuantity::median_tpot, 1},
                            UnitName{"ms median ITL", MeasuredQuantity::median_itl, 1},
                            UnitName{"output tokens/s", MeasuredQuantity::output_tokens_per_second, 1}};

// FLOP per token as MaxText counts them: 6 per weight of a product, 12 per pair of query and key and per width of all
// heads, causal or not.
double maxtext_flops(const Request& request) {
  const model::TensorInventory inventory(request.model);
  const model::Tensor* embed = inventory.find(model::Role::embed);
  double weights = static_cast<double>(inventory.parameters());
  if (!request.model.tied_embeddings && embed) weights -= static_cast<double>(embed->elements());
  double widths = 0;
  for (const model::Layer& l : request.model.layers) widths += static_cast<double>(l.heads) * l.head_dim;
  return 6 * weights + 12 * widths * request.lengths.max_len;
}

double tokens_of_a_device(const Request& request) {
  return static_cast<double>(request.train.batch) * request.train.accumulation * request.lengths.max_len /
         request.mesh.devices();
}

double in_unit(MeasuredQuantity what, const Request& request, const Plan& plan) {
  const DeviceMemory& memory = plan.memory;
  const auto sum = [&](std::initializer_list<MemoryCategory> categories) {
    Bytes bytes;
    for (const MemoryCategory c : categories) bytes += memory.category_peaks[c];
    return static_cast<double>(bytes.value);
  };
  const Ledger& held = memory.at_peak;
  const double live =
      static_cast<double>((held.total() - held[MemoryCategory::runtime] - held[MemoryCategory::workspace]).value);
  switch (what) {
    case MeasuredQuantity::step_seconds:
      return plan.step.seconds.value;
    case MeasuredQuantity::tokens_per_second:
      return plan.run.padded_tokens_per_second / plan.devices;
    case MeasuredQuantity::real_tokens_per_second:
      return plan.run.tokens_per_second;
    case MeasuredQuantity::run_hours:
      return plan.run.hours.value;
    case MeasuredQuantity::samples_per_second:
      return static_cast<double>(request.train.batch * request.train.accumulation) / plan.step.seconds.value;
    case MeasuredQuantity::mfu: {
      const double peak = request.target.chip.bf16_flops.value / request.target.chip.devices_per_chip;
      return 100 * maxtext_flops(request) * tokens_of_a_device(request) / (peak * plan.step.seconds.value);
    }
    case MeasuredQuantity::active_bytes:
      return live;
    case MeasuredQuantity::reserved_bytes:
      return live * (1 + request.efficiencies.fragmentation.value);
    case MeasuredQuantity::device_bytes:
      return static_cast<double>(memory.at_peak.total().value);
    case MeasuredQuantity::state_bytes:
      return sum(
          {MemoryCategory::weights, MemoryCategory::adapters, MemoryCategory::gradients, MemoryCategory::optimizer});
    case MeasuredQuantity::activation_bytes:
      return sum({MemoryCategory::activations});
    case MeasuredQuantity::weight_bytes:
      return sum({MemoryCategory::weights});
    case MeasuredQuantity::kv_tokens:
      return plan.serve ? static_cast<double>(plan.serve->kv_tokens) : 0;
    case MeasuredQuantity::mean_ttft:
    case MeasuredQuantity::median_ttft:
      return plan.serve ? 1e3 * plan.serve->ttft.value : 0;
    case MeasuredQuantity::mean_tpot:
    case MeasuredQuantity::median_tpot:
    case MeasuredQuantity::median_itl:
      return plan.serve ? 1e3 * plan.serve->decode_step.value : 0;
    case MeasuredQuantity::output_tokens_per_second:
      return plan.serve ? plan.serve->output_tokens_per_second : 0;
  }
  return 0;
}

double in_unit(MeasuredQuantity what, const SteadyState& s) {
  switch (what) {
    case MeasuredQuantity::mean_ttft:
    case MeasuredQuantity::median_ttft:
      return 1e3 * s.ttft_s;
    case MeasuredQuantity::mean_tpot:
    case MeasuredQuantity::median_tpot:
      return 1e3 * s.tpot_s;
    case MeasuredQuantity::median_itl:
      return 1e3 * s.itl_s;
    default:
      return s.output_tokens_per_s;
  }
}

}  // namespace

bool more_is_faster(MeasuredQuantity what) {
  return what == MeasuredQuantity::tokens_per_second || what == MeasuredQuantity::real_tokens_per_second ||
         what == MeasuredQuantity::samples_per_second || what == MeasuredQuantity::mfu ||
         what == MeasuredQuantity::output_tokens_per_second;
}

bool is_serving(MeasuredQuantity what) {
  return what == MeasuredQuantity::mean_ttft || what == MeasuredQuantity::median_ttft ||
         what == MeasuredQuantity::mean_tpot || what == MeasuredQuantity::median_tpot ||
         what == MeasuredQuantity::median_itl || what == MeasuredQuantity::output_tokens_per_second;
}
bool is_time(MeasuredQuantity what) {
  return what == MeasuredQuantity::step_seconds || what == MeasuredQuantity::run_hours ||
         (more_is_faster(what) && !is_serving(what));
}
bool is_speed(MeasuredQuantity what) {
  return is_time(what) ||
         (is_serving(what) && what != MeasuredQuantity::mean_ttft && what != MeasuredQuantity::median_ttft);
}
bool is_memory(MeasuredQuantity what) {
  return !is_time(what) && !is_serving(what);
}

FigureKind kind_of(MeasuredQuantity what) {
  if (is_memory(what)) return FigureKind::memory;
  if (is_time(what)) return FigureKind::training;
  if (what == MeasuredQuantity::output_tokens_per_second) return FigureKind::throughput;
  return is_speed(what) ? FigureKind::tpot : FigureKind::ttft;
}

std::vector<std::string> keep_held_out(std::vector<Measurement>& rows, const std::vector<Measurement>& published) {
  const auto same = [](const Measurement& a, const Measurement& b) {
    const Request &x = a.request, &y = b.request;
    for (const mesh::MeshAxis& axis : x.mesh.axes)
      if (y.mesh.size(axis.name) != axis.size) return false;
    if (is_serving(a.what) &&
        std::tie(x.serve.input_len, x.serve.output_len, a.load.concurrency, a.load.request_rate) !=
            std::tie(y.serve.input_len, y.serve.output_len, b.load.concurrency, b.load.request_rate))
      return false;
    return a.unit == b.unit && std::abs(a.value / b.value - 1) < 0.01 && x.model.id == y.model.id &&
           x.target.id == y.target.id && x.stack == y.stack &&
           x.train.batch * x.train.accumulation == y.train.batch * y.train.accumulation;
  };
  std::vector<std::string> kept;
  for (Measurement& m : rows)
    if (m.purpose == MeasurementUse::calibration)
      for (const Measurement& p : published)
        if (p.purpose == MeasurementUse::holdout && (p.id == m.id || same(m, p))) {
          m.purpose = MeasurementUse::holdout;
          kept.push_back(m.id);
          break;
        }
  return kept;
}

RowPrediction compare(const Measurement& row, const Plan& plan) {
  double factor = 1;
  for (const UnitName& u : kUnits)
    if (u.what == row.what) factor = u.factor;
  return compare(row, in_unit(row.what, row.request, plan) / factor);
}

RowPrediction compare(const Measurement& row, double predicted) {
  const double ratio = more_is_faster(row.what) ? row.value / predicted : predicted / row.value;
  return {predicted, row.value, ratio - 1};
}

RowPrediction predicted(const Measurement& row, const Request& request) {
  if (!is_serving(row.what)) return compare(row, predict(request));
  return predicted(row, ServeStepModel(request));
}

RowPrediction predicted(const Measurement& row, const ServeStepModel& model) {
  const ServeWork& s = row.request.serve;
  const int users = row.load.concurrency > 0 ? row.load.concurrency : std::max(1, row.load.requests);
  return compare(row,
                 in_unit(row.what, steady_state(model, s, {users, s.input_len, s.output_len, row.load.spread > 0})));
}

ErrorSummary summarise(const std::vector<Measurement>& rows, const std::vector<RowPrediction>& predictions,
                       MeasurementUse purpose, bool (*of)(MeasuredQuantity)) {
  ErrorSummary s;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Measurement& m = rows[i];
    if (m.purpose != purpose || !of(m.what) || !m.counted()) continue;
    const double error = std::abs(predictions[i].error);
    ++s.rows;
    s.mean += error;
    if (error >= s.worst) s.worst = error, s.worst_row = m.id;
  }
  if (s.rows > 0) s.mean /= s.rows;
  return s;
}

namespace {

constexpr int kMost = 1 << 24;

template <class Value>
using Names = std::vector<std::pair<std::string_view, Value>>;
const Names<MeasurementUse> kPurposes{{"calibration", MeasurementUse::calibration},
                                      {"holdout", MeasurementUse::holdout}};
const Names<model::TrainMethod> kMethods{{"lora", model::TrainMethod::lora}, {"full", model::TrainMethod::full}};
const Names<RowLayout> kRows{
    {"padded", RowLayout::padded}, {"ragged", RowLayout::ragged}, {"packed", RowLayout::packed}};
const Names<model::Remat> kRematNames{
    {"none", model::Remat::none}, {"block", model::Remat::block}, {"layer", model::Remat::layer}};
const Names<Work> kWork{
    {"train", Work::train}, {"forward", Work::forward}, {"rollout", Work::rollout}, {"serve", Work::serve}};
const Names<mesh::Preset> kPresets{{"tunix", mesh::Preset::tunix},
                                   {"megatron", mesh::Preset::megatron},
                                   {"fsdp", mesh::Preset::fsdp},
                                   {"replicated", mesh::Preset::replicated}};
const Names<model::DType> kProducts{{"bf16", model::DType::bf16}, {"fp8", model::DType::fp8}};
const Names<model::DType> kKvTypeNames{
    {"bf16", model::DType::bf16}, {"fp8", model::DType::fp8}, {"int8", model::DType::int8}, {"f32", model::DType::f32}};

using Configs = std::map<std::string, model::Config>;

Configs read_configs(const Json& document, const std::string& file) {
  Configs configs;
  if (document.contains("configs"))
    for (const auto& [id, json] : document.at("configs").items()) {
      configs[id] = model::from_hf_config(json, file + " configs." + id);
      configs[id].id = id;
    }
  return configs;
}

model::Config model_of(const std::string& id, const Configs& configs) {
  const auto found = configs.find(id);
  return found == configs.end() ? model::catalogue_config(id) : found->second;
}

// Runs `ask` and attributes its errors to a key of this row.
template <class Ask>
auto asked(const JsonRow& row, const std::string& key, Ask ask) {
  try {
    return ask();
  } catch (const Error& e) {
    Problem p = e.problem();
    p.id = row.at().id;
    p.file = row.at().file;
    p.place = row.at().row + "." + key;
    if (p.fix.empty()) p.fix = "correct the row or remove it";
    throw Error(std::move(p));
  }
}

std::vector<model::Role> roles_of(JsonRow& row) {
  static const std::array kAll{model::Role::q_proj,    model::Role::k_proj,  model::Role::v_proj,   model::Role::o_proj,
                               model::Role::gate_proj, model::Role::up_proj, model::Role::down_proj};
  std::vector<model::Role> roles;
  if (!row.optional("lora_targets")) return {kAll.begin(), kAll.end()};
  Names<model::Role> names;
  for (const model::Role role : kAll) names.emplace_back(model::hf_module_name(role), role);
  for (const Json& target : row.list("lora_targets"))
    roles.push_back(row.choice("lora_targets", row.as_text(target, "lora_targets"), names));
  return roles;
}

void read_mesh(JsonRow& row, Request& request) {
  const Json& axes = row.required("mesh");
  if (!axes.is_object()) row.bad("mesh", "wrong type", json_excerpt(axes), "{\"fsdp\": 8}");
  for (const auto& [axis, size] : axes.items())
    request.mesh.axes.push_back({axis, row.as_whole<int>(size, "mesh." + axis, 1, kMost)});
  if (request.mesh.devices() != request.target.devices())
    row.bad("mesh", "does not have as many devices as the target", std::to_string(request.mesh.devices()),
            std::to_string(request.target.devices()) + " (" + request.target.id + ")");
}

void read_stack(JsonRow& row, Request& request) {
  const std::string stack = row.text("stack");
  asked(row, "stack", [&] { set_stack(request, parse_stack(stack)); });
  if (row.optional("rules")) request.rules.preset = row.choice("rules", row.text("rules"), kPresets);
  using Elementwise = StackProfile::Elementwise;
  const bool fused = row.flag("compile", request.profile.elementwise == Elementwise::fused);
  request.profile.elementwise = fused ? Elementwise::fused : Elementwise::eager;
  request.profile.logit_bytes = row.number_or("logit_bytes", request.profile.logit_bytes);
  request.products = row.choice("products", row.text_or("products", "bf16"), kProducts);
  if (request.products == model::DType::fp8 && !request.target.chip.fp8_flops)
    row.bad("products", "the chip has no fp8", "fp8", "bf16");
  if (row.optional("weights")) request.weights = row.choice<model::DType>("weights", row.text("weights"));
}

// [[tokens of a row, rows], ...], ascending.
void read_histogram(JsonRow& row, Lengths& lengths) {
  if (!row.optional("lengths")) return;
  int before = 0;
  for (const Json& bin : row.list("lengths")) {
    if (!bin.is_array() || bin.size() != 2)
      row.bad("lengths", "not a bin", json_excerpt(bin), "[tokens of a row, rows]");
    before = row.as_whole<int>(bin[0], "lengths", before + 1, kMost);
    lengths.histogram.emplace_back(before, row.as_whole<std::int64_t>(bin[1], "lengths", 1, 1LL << 40));
  }
}

void read_work(JsonRow& row, Request& request) {
  request.work = row.choice("work", row.text_or("work", "train"), kWork);
  if (request.work == Work::serve) {
    ServeWork& s = request.serve;
    s.max_num_seqs = row.whole("max_num_seqs", s.max_num_seqs, 1, kMost);
    s.max_model_len = row.whole("max_model_len", s.max_model_len, 1, kMost);
    s.max_num_batched_tokens = row.whole("max_num_batched_tokens", s.max_num_batched_tokens, 1, kMost);
    s.memory_utilisation = row.number_or("memory_utilisation", s.memory_utilisation);
    s.input_len = row.whole("input_len", s.input_len, 1, kMost);
    s.output_len = row.whole("output_len", s.output_len, 1, kMost);
    if (row.optional("kv_dtype")) request.kv = row.choice("kv_dtype", row.text("kv_dtype"), kKvTypeNames);
    request.sliding_window_kv = row.flag("sliding_window_kv", request.sliding_window_kv);
    s.sampling = row.choice<options::Sampling>("sampling", row.text_or("sampling", "greedy"));
    return;
  }
  const auto batch = row.as_whole<std::int64_t>(row.required("batch"), "batch", 1, kMost);
  const int len = row.as_whole<int>(row.required("max_len"), "max_len", 1, kMost);
  request.forward.batch = batch;
  request.forward.len = len;
  request.train.batch = batch;
  request.train.accumulation = row.whole("accumulation", 1, 1, kMost);
  request.train.loss_chunk = row.whole("loss_chunk", 0, 1, kMost);
  request.train.remat = row.choice("remat", row.text_or("remat", "none"), kRematNames);
  if (row.optional("saved"))
    for (const Json& name : row.list("saved"))
      request.train.saved.push_back(row.choice<options::SavedActivation>("saved", row.as_text(name, "saved")));
  request.train.offload = row.choice<options::Offload>("offload", row.text_or("offload", "none"));
  request.train.epochs = 1;
  request.lora.dropout = row.flag("dropout", false) ? 0.1 : 0;  // the memory and time of any rate are the same
  request.lengths.max_len = len;
  request.lengths.rows = row.choice("rows", row.text_or("rows", "padded"), kRows);
  request.lengths.mean = row.number_or("mean", 0);
  request.lengths.count = row.whole<std::int64_t>("count", 10000, 1, 1LL << 40);
  read_histogram(row, request.lengths);
}

OfferedLoad read_load(JsonRow& row) {
  OfferedLoad load;
  load.concurrency = row.whole("concurrency", 0, 1, kMost);
  if (const Json* rate = row.optional("request_rate"))
    load.request_rate = *rate == "inf" ? std::numeric_limits<double>::infinity() : row.number_or("request_rate", 0);
  load.requests = row.whole("requests", 0, 1, kMost);
  load.warmups = row.whole("warmups", 0, 1, kMost);
  load.spread = row.number_or("spread", 0);
  if (row.optional("earlier"))
    for (const Json& before : row.list("earlier")) {
      JsonRow part(before, row.inside("earlier"));
      load.earlier.push_back({.input_len = part.as_whole<int>(part.required("input_len"), "input_len", 1, kMost),
                              .output_len = part.as_whole<int>(part.required("output_len"), "output_len", 1, kMost),
                              .requests = part.as_whole<int>(part.required("requests"), "requests", 1, kMost)});
      part.finish();
    }
  return load;
}

Measurement read_row(const Json& json, RowLocation at, const hardware::Catalogue& catalogue, const Configs& configs) {
  JsonRow row(json, std::move(at));
  Measurement m;
  m.id = row.text("id");
  row.rename("rows." + m.id);
  m.purpose = row.choice("use", row.text("use"), kPurposes);
  m.value = row.number("value");
  m.unit = row.text("unit");
  Names<MeasuredQuantity> units;
  for (const UnitName& u : kUnits) units.emplace_back(u.name, u.what);
  m.what = row.choice("unit", m.unit, units);
  m.source = row.source();
  if (row.optional("assumed"))
    for (const Json& text : row.list("assumed")) m.assumed.push_back(row.as_text(text, "assumed"));
  m.alternative_of = row.text_or("alternative_of", "");
  Request& r = m.request;
  const std::string model = row.text("model"), target = row.text("target");
  r.model = asked(row, "model", [&] { return model_of(model, configs); });
  r.target = asked(row, "target", [&] { return catalogue.target(target); });
  if (const hardware::Price* price = catalogue.price(r.target.chip.id)) r.price = *price;
  read_stack(row, r);
  read_mesh(row, r);
  read_work(row, r);
  if (is_serving(m.what)) {
    m.load = read_load(row);
    if (row.flag("async_scheduling", false)) enable_async_scheduling(r);
    if (r.work != Work::serve || (m.load.concurrency == 0) == (m.load.request_rate == 0))
      row.bad("concurrency", "a server's figure needs its load", "",
              "\"work\": \"serve\" with concurrency or request_rate");
  }
  r.method = row.choice("method", row.text_or("method", "full"), kMethods);
  r.lora.rank = row.whole("rank", 16, 1, kMost);
  r.lora.alpha = row.number_or("alpha", 16);
  if (r.method == model::TrainMethod::lora) r.targets = roles_of(row);
  r.other_models = row.whole("other_models", 0, 1, 16);
  row.finish();
  return m;
}

// Expands a row with several values into one row per value.
std::vector<Json> one_a_value(const Json& rows) {
  std::vector<Json> out;
  for (const Json& row : rows) {
    if (!row.is_object() || !row.contains("values") || !row.at("values").is_object() || row.contains("value")) {
      out.push_back(row);
      continue;
    }
    for (const auto& [unit, value] : row.at("values").items()) {
      Json one = row;
      one.erase("values");
      one["unit"] = unit;
      one["value"] = value;
      if (one.contains("id") && one["id"].is_string()) one["id"] = one["id"].get<std::string>() + ", " + unit;
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace

Measurements read_measurements(const std::filesystem::path& file, const hardware::Catalogue& catalogue, BadRows bad) {
  const Json document = read_json(file);
  const std::string name = file.string();
  const Sources sources = read_sources(document, name);
  const Configs configs = read_configs(document, name);
  Measurements out;
  std::set<std::string> ids;
  const Json& listed = member(document, "rows", name);
  const std::vector<Json> rows = listed.is_array() ? one_a_value(listed) : std::vector<Json>();
  if (rows.empty())
    throw Error("MEASUREMENT", "no rows",
                {.file = name,
                 .place = "rows",
                 .found = json_excerpt(listed),
                 .expected = "a list of measurements, as in resources/hardware/measurements.json"});
  for (size_t i = 0; i < rows.size(); ++i) try {
      const RowLocation at{sources, name, "rows[" + std::to_string(i) + "]", "MEASUREMENT"};
      Measurement m = read_row(rows.at(i), at, catalogue, configs);
      if (!ids.insert(m.id).second)
        throw Error("MEASUREMENT", "two rows of one id",
                    {.file = name,
                     .place = "rows." + m.id,
                     .found = at.row,
                     .expected = "an id of its own for each row",
                     .fix = "give one of them another id"});
      out.rows.push_back(std::move(m));
    } catch (const Error& e) {
      if (bad == BadRows::thrown) throw;
      out.problems.push_back(e.problem());
    }
  if (document.contains("left_out"))
    for (const Json& row : document.at("left_out"))
      out.left_out.push_back({string_member(row, "row", name), string_member(row, "why", name)});
  return out;
}

}  // namespace mw::plan
