// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/plan_request.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>

#include "core/base/files.h"
#include "core/base/optimizer_steps.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/lengths.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/lint/lora_modules.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/layout/sharding_options.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/local_model.h"
#include "core/train/data_index.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::plan {
namespace {

// Returns the document's mesh, else all devices on the default axis of the stack.
mesh::Mesh mesh_of(const mesh::Mesh& given, const hardware::Target& target, model::Stack stack) {
  if (!given.axes.empty()) return given;
  const bool gathers = stack_profile(stack, model::Family::gemma3).parameters == StackProfile::Parameters::gathered;
  const int each = target.devices() / target.slices;
  mesh::Mesh mesh{{{"fsdp", gathers ? each : 1}, {"tp", gathers ? 1 : each}}};
  if (target.slices == 1) return mesh;
  const bool has_data =
      stack != model::Stack::tunix && stack != model::Stack::torchax;  // else fsdp crosses the network
  if (has_data)
    mesh.axes.insert(mesh.axes.begin(), {"data", target.slices});
  else
    mesh.axes.front().size *= target.slices;
  return mesh;
}

void set_sharding(const options::Sharding& sharding, Request& r) {
  const mesh::ExpertParallel experts = r.rules.experts;
  r.rules = mesh::sharding_rules(sharding, r.rules.preset);
  r.rules.experts = experts;
  if (r.stack == model::Stack::engine) r.rules = mesh::engine_rules(std::move(r.rules));
  r.places = mesh::axis_places(sharding);
}

void set_profile(const options::Training& train, Request& r) {
  if (train.attention) r.profile.attention = *train.attention;
  if (train.adapter_dtype) r.profile.adapters = r.profile.gradients = *train.adapter_dtype;
  if (train.moment_dtype) r.profile.moments = *train.moment_dtype;
  if (r.work == Work::serve) return;
  if (train.compile && *train.compile != r.profile.elementwise && !r.profile.options.compile_choice)
    throw Error("PLAN-OPTION", "the software does not run in this way",
                {.place = "train.compile",
                 .found = std::string(to_string(*train.compile)) + " with " + std::string(to_string(r.stack)),
                 .expected = "auto, or " + std::string(to_string(r.profile.elementwise)),
                 .fix = "set train.compile=auto, or choose TRL, torchtune or torchtitan"});
  r.profile.elementwise = train.compile.value_or(r.profile.elementwise);
  if (train.logit_bytes > 0) r.profile.logit_bytes = train.logit_bytes;
  r.products = train.products;
  r.other_models = train.other_models;
}

// Threads of a device: virtual ones share those of the machine, each of which computes for one device at a time.
// Devices without a row of the batch leave theirs to the others.
double threads_of_device(const experiment::BoundExperiment& config, const Request& r) {
  const int devices = r.mesh.devices();
  if (devices == 1) return train::thread_count(config.target.threads);
  const int ways = mesh::batch_devices(r.mesh);
  const auto busy = static_cast<double>(devices / ways * std::min<std::int64_t>(ways, r.train.batch));
  return std::min(1.0, train::thread_count(0) / busy);
}

Processor processor_here(const experiment::BoundExperiment& config, const Request& r) {
  const int devices = r.mesh.devices(), all = train::thread_count(devices > 1 ? 0 : config.target.threads);
  return {engine::processor_model(), std::string(to_string(engine::usable_cpu())),
          devices > 1 ? std::min(devices, all) : all};
}

// Times of the engine follow from what was measured on this processor.
void set_speed_here(const experiment::BoundExperiment& config, const PlanContext& context, Request& r) {
  if (!runs_here(r)) return;
  const RatesInForce found = rates_of(context, processor_here(config, r), r);
  if (found.rates) apply(found, threads_of_device(config, r), r);
}

void set_price(const options::PriceOptions& given, const PlanContext& context, Request& r) {
  const hardware::Price* price = context.catalogue.price(r.target.chip.id, given.region, given.price_class);
  if (!price && (!given.region.empty() || !given.price_class.empty()))
    throw Error("PRICE", "the price list has no such entry",
                {.place = given.region.empty() ? "price.class" : "price.region",
                 .found = r.target.chip.id + ", " + given.region + ", " + given.price_class,
                 .expected = "a region and class that the list contains for this chip",
                 .fix = "leave them empty, or set price.usd_per_chip_hour"});
  if (price) r.price = *price;
  if (given.usd_per_chip_hour > 0)
    r.price = {.chip = r.target.chip.id,
               .usd_per_chip_hour = given.usd_per_chip_hour,
               .region = {},
               .price_class = "own",
               .machine = {},
               .date = given.date,
               .source = "given as price.usd_per_chip_hour"};
  if (const hardware::Price* none = context.catalogue.unpublished(r.target.chip.id);
      none && r.price.usd_per_chip_hour == 0)
    r.price = *none;
  using namespace std::chrono;
  hardware::Price dated;
  dated.date = given.date;
  if (!given.date.empty() && !hardware::first_day(dated))
    throw Error("PRICE", "the value is not a date",
                {.place = "price.date",
                 .found = given.date,
                 .expected = "a day, month or year, such as 2026-11-27",
                 .fix = "correct it, or leave it empty"});
  r.price_days = hardware::age_days(r.price, floor<days>(system_clock::now()));
}

void set_lengths(const options::Data& data, Request& r) {
  Lengths& l = r.lengths;
  l.max_len = data.max_len;
  l.mean = data.mean_len;
  l.count = data.rows;
  if (!data.lengths.empty())
    for (const auto& [tokens, rows] : data::read_lengths(data.lengths)) l.histogram.emplace_back(tokens, rows);
  using options::Padding;
  const Padding padding = data.padding.value_or(r.profile.static_shapes ? Padding::max_len : Padding::longest);
  l.rows = data.packing ? RowLayout::packed : padding == Padding::max_len ? RowLayout::padded : RowLayout::ragged;
  if (!l.histogram.empty()) l.packed_rows = pack_count(l.histogram, l.max_len);
}

void set_training(const experiment::BoundExperiment& config, Request& r) {
  TrainWork& t = r.train;
  t.batch = config.train.batch;
  t.accumulation = config.train.accumulation;
  t.epochs = config.train.epochs;
  t.steps = t.epochs > 0 ? 0 : config.train.rate.steps;
  if (t.epochs > 0) t.epoch_rows = epoch_rows(config).value_or(0);
  static_cast<options::KeptActivations&>(t) = config.train;
}

void set_serving(const experiment::BoundExperiment& config, Request& r) {
  const options::Serving& serve = config.serve;
  static_cast<options::ServerLimits&>(r.serve) = serve;
  r.serve.replicas = config.sweep.replicas;
  if (!serve.sets_max_model_len && r.model.max_positions > 0)
    r.serve.max_model_len = std::min(r.serve.max_model_len, r.model.max_positions);
  if (serve.async_scheduling) enable_async_scheduling(r);
  r.kv = serve.kv_dtype;
  if (r.work == Work::serve) {
    r.products = serve.products;
    if (r.stack != model::Stack::engine) r.weights = serve.weight_dtype.value_or(r.weights);
  }
  r.sliding_window_kv = serve.sliding_window_kv;
}

// Returns the projections that the module expression matches under the names of its library. An invalid expression is
// reported by the checker; the targets are used then. The engine always uses the targets.
void set_expression(const std::string& pattern, Request& r) {
  if (pattern.empty() || r.stack == model::Stack::engine) return;
  const model::TensorInventory inventory(r.model);
  const auto naming = r.stack == model::Stack::tunix ? lint::ModuleNaming::qwix : lint::ModuleNaming::peft;
  try {
    std::vector<std::vector<model::Role>> adapted(r.model.layers.size());
    for (const lint::LoraModule& m : lint::matching_modules(lint::lora_modules(inventory, naming), pattern)) {
      auto& roles = adapted.at(static_cast<size_t>(m.layer));
      roles.insert(roles.end(), m.roles.begin(), m.roles.end());
    }
    r.adapted = std::move(adapted);
  } catch (const Error&) {
    return;
  }
}

void set_targets(const experiment::BoundExperiment& config, Request& r) {
  using experiment::Kind;
  r.method = config.kind == Kind::train ? config.train.method : model::TrainMethod::lora;
  r.lora = config.lora;
  const bool adapted = config.kind == Kind::train || (config.kind == Kind::size && config.size.adapters);
  if (!adapted || r.method == model::TrainMethod::full) return;
  r.targets = experiment::lora_targets(config.lora);
  set_expression(config.lora.module_path, r);
  if (r.targets.empty() && !r.adapted)
    throw Error("LORA", "no LoRA targets", {.place = "lora.targets", .expected = "at least one projection"});
}

mesh::ShardingUse sharding_use(Work work) {
  return work == Work::train || work == Work::forward ? mesh::ShardingUse::training : mesh::ShardingUse::sampling;
}

// The legal mesh of all devices of the target that is nearest to the request's; without axes if there is none.
mesh::Mesh nearest_mesh(const Request& r) {
  const model::TensorInventory inventory(r.model);
  const auto needs = size_constraints(inventory, r.mesh, r.rules, adapter_shapes(r, inventory), sharding_use(r.work));
  return nearest_legal(needs, r.mesh, r.target.devices(), r.work == Work::train ? r.train.batch : 0,
                       mesh::splitting_axes(r.rules, sharding_use(r.work)));
}

// Also true if there is no legal mesh.
bool same_sizes(const mesh::Mesh& mesh, const mesh::Mesh& legal) {
  return std::all_of(legal.axes.begin(), legal.axes.end(),
                     [&](const mesh::MeshAxis& axis) { return mesh.size(axis.name) == axis.size; });
}

Work work_of(experiment::Kind kind) {
  using experiment::Kind;
  return kind == Kind::serve ? Work::serve : kind == Kind::size ? Work::rollout : Work::train;
}

model::Stack stack_of(const experiment::BoundExperiment& config, const hardware::Target& target, Work work) {
  if (target.chip.vendor == hardware::Vendor::cpu && work != Work::serve) return model::Stack::engine;
  const std::optional<model::Stack> stack = work == Work::serve ? config.serve.stack : config.train.stack;
  return stack.value_or(default_stack(target.chip.vendor, work));
}

}  // namespace

mesh::Mesh planned_mesh(const experiment::Experiment& e, const PlanContext& context) {
  try {
    return plan_request(e, context).mesh;
  } catch (const Error&) {
    // An invalid document or a model that cannot be read: the default mesh does not depend on the model then.
  }
  const experiment::BoundExperiment& config = e.valid_values();
  const hardware::Target target = context.catalogue.target(config.target.id);
  return mesh_of(config.mesh, target, stack_of(config, target, work_of(config.kind)));
}

void retarget(experiment::Experiment& e, const std::string& id, const PlanContext& context) {
  const experiment::BoundExperiment config = e.valid_values();
  const hardware::Target before = context.catalogue.target(config.target.id), after = context.catalogue.target(id);
  e.set("target.id", id);
  if (config.mesh.devices() != after.devices())
    for (const mesh::MeshAxis& axis : config.mesh.axes) e.erase("mesh." + axis.name);
  for (const std::string& key : keys_of_target(before, after)) e.erase(key);
  if (config.kind != experiment::Kind::train || config.target.id == id || id == "cpu") return;
  const int ways = mesh::batch_devices(planned_mesh(e, context)), batch = config.train.batch;
  const long long rows = static_cast<long long>(batch) * config.train.accumulation;
  if (batch % ways == 0 || rows % ways != 0) return;
  e.set_value("train.batch", ways);
  e.set_value("train.accumulation", rows / ways);
}

void follow_target(const experiment::Experiment& before, experiment::Experiment& e, const PlanContext& context) {
  try {
    const hardware::Target to = context.catalogue.target(e.valid_values().target.id);
    const std::string from = before.valid_values().target.id;
    const std::vector<std::string> known = context.catalogue.target_ids();
    experiment::Experiment moved = e;
    if (std::find(known.begin(), known.end(), from) != known.end())
      for (const std::string& key : keys_of_target(context.catalogue.target(from), to)) moved.erase(key);
    const Request r = plan_request(moved, context);
    if (to.chip.vendor != hardware::Vendor::cpu && r.mesh.devices() != to.devices()) {
      const mesh::Mesh next = nearest_mesh(r);
      for (const mesh::MeshAxis& axis : next.axes)
        if (axis.size > 1 || r.mesh.has(axis.name)) moved.set_value("mesh." + axis.name, axis.size);
      if (!next.axes.empty() && !r.places.empty()) moved.erase("sharding.places");  // they belong to the old grid
    }
    e = std::move(moved);
  } catch (const Error&) {
    // The checker reports it.
  }
}

std::vector<std::string> keys_of_target(const hardware::Target& before, const hardware::Target& after) {
  if (before.id == after.id) return {};
  std::vector<std::string> keys{"measured.seconds_per_step", "measured.hours", "measured.source", "measured.max_lens"};
  if (before.chip.id == after.chip.id) return keys;
  keys.insert(keys.end(), {"price.region", "price.class", "price.usd_per_chip_hour", "price.date"});
  if (before.chip.vendor != after.chip.vendor)
    keys.insert(keys.end(),
                {"train.stack", "serve.stack", "sharding.preset", "sharding.places", "data.padding", "lora.module_path",
                 "train.saved", "train.offload", "train.compile", "train.products", "train.logit_bytes"});
  return keys;
}

bool runs_here(const Request& r) {
  return r.stack == model::Stack::engine && r.target.chip.vendor == hardware::Vendor::cpu;
}

std::optional<MeasuredRun> measured_run(const experiment::BoundExperiment& config, const PlanContext& context,
                                        const Request& request) {
  if (!runs_here(request)) return std::nullopt;
  MeasuredRun run{.processor = processor_here(config, request),
                  .devices = request.mesh.devices(),
                  .work = request.work,
                  .weights = request.weights};
  const RatesInForce found = rates_of(context, run.processor, request);
  if (!found.rates) return std::nullopt;
  run.basis = basis_of(*found.rates);
  return run;
}

bool has_shipped_rates(const Request& r) {
  return runs_here(r) && r.efficiencies.matmul.origin == Origin::transferred;
}

Request plan_request(const experiment::Experiment& e, const PlanContext& context) {
  const experiment::BoundExperiment& config = e.config();
  Request r;
  r.model = formats::model_config(config.model);
  r.target = context.catalogue.target(config.target.id);
  r.work = work_of(config.kind);
  set_stack(r, stack_of(config, r.target, r.work));
  apply(calibration_of(context), r);
  set_weights(r, dtype_of(config.train.dtype));
  set_profile(config.train, r);
  set_price(config.price, context, r);
  r.mesh = mesh_of(config.mesh, r.target, r.stack);
  if (runs_here(r) && r.work != Work::train)  // one device with the threads and the memory of all
    for (mesh::MeshAxis& axis : r.mesh.axes) axis.size = 1;
  set_sharding(config.sharding, r);
  set_targets(config, r);
  set_lengths(config.data, r);
  set_training(config, r);
  set_serving(config, r);
  set_speed_here(config, context, r);
  if (config.mesh.axes.empty() && r.mesh.devices() > 1)
    if (mesh::Mesh legal = nearest_mesh(r); !same_sizes(r.mesh, legal)) r.mesh = std::move(legal);
  if (config.target.memory_gib > 0) {
    r.target.chip.memory.value = config.target.memory_gib * 1073741824.0;
    r.target.chip.memory.source = "given as target.memory_gib";
  }
  if (runs_here(r)) set_engine(config, r);
  return r;
}

std::vector<SizeCase> size_cases(const options::Sizing& size) {
  std::vector<SizeCase> cases;
  for (const options::Workload workload : size.workloads)
    for (const std::string& batch : size.batches) {
      std::int64_t n = 0;
      if (std::from_chars(batch.data(), batch.data() + batch.size(), n).ec != std::errc{} || n < 1)
        throw Error("RANGE", "invalid number",
                    {.place = "size.batches", .found = batch, .expected = "whole numbers from 1"});
      cases.push_back({workload, n});
    }
  return cases;
}

Request with_case(Request r, const options::Sizing& size, const SizeCase& point) {
  using options::Workload;
  r.work = point.workload == Workload::rollout ? Work::rollout : Work::forward;
  const bool chunked = point.workload == Workload::chunked_forward;
  const int forward_len = r.engine ? 0 : size.forward_len;  // the engine scores what it generated
  r.rollout = {
      .batch = point.batch, .prompt = size.prompt_len, .new_tokens = size.new_tokens, .cache_len = size.cache_len};
  r.forward = {.batch = point.batch,
               .len = forward_len > 0 ? forward_len : size.prompt_len + size.new_tokens,
               .chunk = chunked ? size.chunk : 0,
               .top_k = chunked ? size.top_k : 0};
  return r;
}

namespace {

// Caches row counts: plans are recomputed at every edit, and most edits do not change the data.
class CountedRows {
 public:
  std::optional<double> find(const train::DataIndexRequest& request) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, rows] : answers_)
      if (known == request) return rows;
    return std::nullopt;
  }
  void keep(const train::DataIndexRequest& request, double rows) {
    constexpr size_t kMost = 8;
    const std::lock_guard lock(mutex_);
    answers_.emplace_front(request, rows);
    if (answers_.size() > kMost) answers_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<train::DataIndexRequest, double>> answers_;
};

CountedRows& counted_rows() {
  static CountedRows rows;
  return rows;
}

// A histogram has no row numbers; the number of held-out rows is that of a file with the same number of rows.
std::vector<data::ExampleSize> without_held_out(std::vector<data::ExampleSize> sizes,
                                                const data::DatasetOptions& options) {
  std::int64_t row = 0;
  std::erase_if(sizes, [&](const data::ExampleSize&) { return split_of(options, row++) == data::Split::held_out; });
  return sizes;
}

std::optional<double> count_rows(train::DataIndexRequest request, std::stop_token stop) {
  request.batches.rows = 1;  // the row count does not depend on the batch
  if (const auto known = counted_rows().find(request)) return known;
  const bool from_file = request.source == train::DataSource::rows;
  const auto tokenizer = from_file ? data::load_tokenizer(request.tokenizer) : nullptr;
  train::DataIndex index = train::index_data(request, tokenizer.get(), std::move(stop));
  if (index.ended) return std::nullopt;  // too large to count, or not readable
  if (!from_file) index.train = without_held_out(std::move(index.train), request.options);
  const auto rows = static_cast<double>(data::rows_of_epoch(index.train, request.batches));
  counted_rows().keep(request, rows);
  return rows;
}

// Returns empty if the dataset, tokenizer or model cannot be read; starting a run reports the error.
std::optional<double> rows_of(const experiment::BoundExperiment& config, std::stop_token stop) try {
  const train::DataIndexRequest request = train::data_index_request(config);
  return request.source == train::DataSource::none ? std::nullopt : count_rows(request, std::move(stop));
} catch (const Error& error) {
  if (error.kind() == Error::Kind::cancelled) throw;
  return std::nullopt;
}

constexpr std::int64_t kMostDrawn = 4'000'000;  // rows whose split is drawn one by one

std::int64_t not_held_out(std::int64_t rows, const data::DatasetOptions& options) {
  if (rows > kMostDrawn)
    return static_cast<std::int64_t>(static_cast<double>(rows) * (1 - options.random_share_held_out()));
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    if (split_of(options, row) == data::Split::train) ++kept;
  return kept;
}

// Estimates from data.rows and data.mean_len, or from a histogram with too many rows to count one by one.
std::optional<double> estimated_rows(const experiment::BoundExperiment& config) {
  data::DatasetOptions options{config.data};
  options.seed = config.train.seed;
  Lengths lengths{.max_len = config.data.max_len,
                  .mean = config.data.mean_len,
                  .count = not_held_out(config.data.rows, options),
                  .rows = config.data.packing ? RowLayout::packed : RowLayout::padded};
  double share = 1;
  if (!config.data.lengths.empty()) {
    for (const auto& [tokens, rows] : data::read_lengths(config.data.lengths))
      lengths.histogram.emplace_back(tokens, rows);
    share = 1 - options.random_share_held_out();
  }
  const double rows = row_statistics(lengths, 1).batches_rows * share;
  return rows > 0 ? std::optional(rows) : std::nullopt;
}

}  // namespace

std::optional<double> epoch_rows(const experiment::BoundExperiment& config, std::stop_token stop) {
  if (!config.data.path.empty())
    if (const auto rows = rows_of(config, stop)) return rows;
  if (!config.data.lengths.empty()) {
    experiment::BoundExperiment lengths = config;
    lengths.data.path.clear();
    if (const auto rows = rows_of(lengths, std::move(stop))) return rows;
  }
  return estimated_rows(config);
}

std::optional<long long> training_steps(const experiment::BoundExperiment& config, std::stop_token stop) {
  const options::Training& train = config.train;
  if (train.epochs <= 0) return train.rate.steps;
  const auto rows = epoch_rows(config, std::move(stop));
  if (!rows) return std::nullopt;
  return steps_of_epochs(*rows, train.epochs, {.batch = train.batch, .accumulation = train.accumulation});
}

}  // namespace mw::plan
