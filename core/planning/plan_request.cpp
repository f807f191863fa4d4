// SPDX-License-Identifier: Apache-2.0
#include "core/planning/plan_request.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/files.h"
#include "core/data/dataset/lengths.h"
#include "core/experiment/settings.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/lint/lora_modules.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/request/lengths.h"
#include "core/planning/engine_server.h"
#include "core/planning/epoch_rows.h"

namespace mw::planning {
namespace {

using plan::Work;

int whole(const experiment::Experiment& e, std::string_view key) {
  return static_cast<int>(e.integer(key));
}

// Returns the document's mesh, else all devices on the default axis of the stack.
mesh::Mesh mesh_of(const experiment::Experiment& e, const hardware::Target& target, model::Stack stack) {
  mesh::Mesh mesh = experiment::given_mesh(e);
  if (!mesh.axes.empty()) return mesh;
  const bool gathers =
      plan::stack_profile(stack, model::Family::gemma3).parameters == plan::StackProfile::Parameters::gathered;
  mesh.axes = {{"fsdp", gathers ? target.devices() : 1}, {"tp", gathers ? 1 : target.devices()}};
  return mesh;
}

void set_sharding(const experiment::Experiment& e, plan::Request& r) {
  r.rules = experiment::sharding_rules(e, r.rules.preset);
  if (r.stack == model::Stack::engine) r.rules = mesh::engine_rules(std::move(r.rules));
  r.places = experiment::axis_places(e);
}

model::DType dtype(const std::string& name) {
  return model::parse<model::DType>(name).value_or(model::DType::bf16);
}

void set_habits(const experiment::Experiment& e, plan::Request& r) {
  if (const std::string a = e.string("train.attention"); a != "auto")
    r.profile.attention =
        a == "fused" ? plan::StackProfile::Attention::fused : plan::StackProfile::Attention::materialised;
  if (const std::string a = e.string("train.adapter_dtype"); a != "auto")
    r.profile.adapters = r.profile.gradients = dtype(a);
  if (const std::string m = e.string("train.moment_dtype"); m != "auto") r.profile.moments = dtype(m);
}

void set_price(const experiment::Experiment& e, const hardware::Catalogue& catalogue, plan::Request& r) {
  const std::string region = e.string("price.region"), price_class = e.string("price.class");
  const hardware::Price* price = catalogue.price(r.target.chip.id, region, price_class);
  if (!price && (!region.empty() || !price_class.empty()))
    throw Error({.id = "PRICE",
                 .message = "the price list has no such entry",
                 .place = region.empty() ? "price.class" : "price.region",
                 .found = r.target.chip.id + ", " + region + ", " + price_class,
                 .expected = "a region and class that the list contains for this chip",
                 .fix = "leave them empty, or set price.usd_per_chip_hour"});
  if (price) r.price = *price;
  if (const double own = e.number("price.usd_per_chip_hour"); own > 0)
    r.price = {.chip = r.target.chip.id,
               .usd_per_chip_hour = own,
               .region = {},
               .price_class = "own",
               .machine = {},
               .date = {},
               .source = "given as price.usd_per_chip_hour"};
}

void set_lengths(const experiment::Experiment& e, plan::Request& r) {
  plan::Lengths& l = r.lengths;
  l.max_len = whole(e, "data.max_len");
  l.mean = e.number("data.mean_len");
  l.count = e.integer("data.rows");
  if (const auto file = e.path("data.lengths"); !file.empty())
    for (const auto& [tokens, rows] : data::read_lengths(file)) l.histogram.emplace_back(tokens, rows);
  const std::string padding = e.string("data.padding");
  const bool to_max = padding == "max_len" || (padding == "auto" && r.profile.static_shapes);
  l.rows = e.flag("data.packing") ? plan::RowLayout::packed
           : to_max               ? plan::RowLayout::padded
                                  : plan::RowLayout::ragged;
  if (!l.histogram.empty()) l.packed_rows = plan::pack_count(l.histogram, l.max_len);
}

void set_training(const experiment::Experiment& e, plan::Request& r) {
  plan::TrainWork& t = r.train;
  t.batch = e.integer("train.batch");
  t.accumulation = whole(e, "train.accumulation");
  t.epochs = e.number("train.epochs");
  t.steps = t.epochs > 0 ? 0 : e.integer("train.steps");
  if (t.epochs > 0) t.epoch_rows = epoch_rows(e).value_or(0);
  t.remat = model::parse<model::Remat>(e.string("train.remat")).value_or(model::Remat::none);
  t.loss_chunk = whole(e, "train.loss_chunk");
  t.dropout = e.number("lora.dropout") > 0;
}

void set_serving(const experiment::Experiment& e, plan::Request& r) {
  r.serve = {.max_num_seqs = whole(e, "serve.max_num_seqs"),
             .max_model_len = whole(e, "serve.max_model_len"),
             .max_num_batched_tokens = whole(e, "serve.max_num_batched_tokens"),
             .memory_utilisation = e.number("serve.memory_utilisation"),
             .input_len = whole(e, "serve.input_len"),
             .output_len = whole(e, "serve.output_len")};
  if (e.flag("serve.async_scheduling")) plan::enable_async_scheduling(r);
  r.kv = dtype(e.string("serve.kv_dtype"));
  if (served_here(r)) {  // the engine's formats, regardless of the document
    r.kv = model::DType::f32;
    r.serve.kv_cache = engine_server(e, r.model).settings.kv.capacity;
  }
  r.sliding_window_kv = e.flag("serve.sliding_window_kv");
}

// Returns the projections that the module expression matches under the names of its library. An invalid expression is
// reported by the checker; the targets are used then. The engine always uses the targets.
void set_expression(const std::string& pattern, plan::Request& r) {
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

void set_targets(const experiment::Experiment& e, plan::Request& r) {
  r.method = model::parse<model::TrainMethod>(e.string("train.method")).value_or(model::TrainMethod::lora);
  r.rank = whole(e, "lora.rank");
  r.alpha = e.number("lora.alpha");
  const std::string kind = e.string("kind");
  const bool adapted = kind == "train" || (kind == "size" && e.flag("size.adapters"));
  if (kind != "train") r.method = model::TrainMethod::lora;
  if (!adapted || r.method == model::TrainMethod::full) return;
  using model::Role;
  for (const Role role :
       {Role::q_proj, Role::k_proj, Role::v_proj, Role::o_proj, Role::gate_proj, Role::up_proj, Role::down_proj})
    for (const std::string& name : e.list("lora.targets"))
      if (name == model::hf_module_name(role)) r.targets.push_back(role);
  set_expression(e.string("lora.module_path"), r);
}

Work work_of(const experiment::Experiment& e) {
  const std::string kind = e.string("kind");
  return kind == "serve" ? Work::serve : kind == "size" ? Work::rollout : Work::train;
}

model::Stack stack_of(const experiment::Experiment& e, const hardware::Target& target, Work work) {
  const std::string name = e.string(work == Work::serve ? "serve.stack" : "train.stack");
  return name == "auto" ? plan::default_stack(target.chip.vendor, work) : plan::parse_stack(name);
}

}  // namespace

mesh::Mesh planned_mesh(const experiment::Experiment& e, const hardware::Catalogue& catalogue) {
  const hardware::Target target = catalogue.target(e.string("target.id"));
  return mesh_of(e, target, stack_of(e, target, work_of(e)));
}

bool planned_elsewhere(const experiment::Experiment& e) try {
  return e.string("target.id") != "cpu" || e.string("kind") == "serve";
} catch (const Error&) {
  return false;  // not a string: validate() reports it
}

void retarget(experiment::Experiment& e, const std::string& id, const hardware::Catalogue& catalogue) {
  const hardware::Target before = catalogue.target(e.string("target.id")), after = catalogue.target(id);
  e.set("target.id", id);
  long long devices = 1;
  for (const auto& [axis, size] : e.mesh()) devices *= size;
  if (devices != after.devices())
    for (const auto& [axis, size] : e.mesh()) e.erase("mesh." + axis);
  for (const std::string& key : keys_of_target(before, after)) e.erase(key);
}

std::vector<std::string> keys_of_target(const hardware::Target& before, const hardware::Target& after) {
  if (before.chip.id == after.chip.id) return {};
  std::vector<std::string> keys{
      "price.region",   "price.class",     "price.usd_per_chip_hour", "measured.seconds_per_step",
      "measured.hours", "measured.source", "measured.max_lens"};
  if (before.chip.vendor != after.chip.vendor)
    keys.insert(keys.end(), {"train.stack", "serve.stack", "sharding.preset", "sharding.places", "data.padding",
                             "lora.module_path"});
  return keys;
}

bool served_here(const plan::Request& r) {
  return r.work == plan::Work::serve && r.stack == model::Stack::engine && r.mesh.devices() == 1 &&
         r.target.chip.vendor == hardware::Vendor::cpu;
}

plan::Request plan_request(const experiment::Experiment& e, const hardware::Catalogue& catalogue) {
  for (const Problem& p : e.validate())
    if (p.severity == Severity::error) throw Error(p);
  plan::Request r;
  r.model = experiment::config_of(e);
  r.target = catalogue.target(e.string("target.id"));
  r.work = work_of(e);
  plan::set_stack(r, stack_of(e, r.target, r.work));
  if (path_exists(catalogue.calibration())) plan::apply(plan::read_calibration(catalogue.calibration()), r);
  set_habits(e, r);
  set_price(e, catalogue, r);
  r.mesh = mesh_of(e, r.target, r.stack);
  set_sharding(e, r);
  r.weights = dtype(e.string("train.dtype"));
  set_targets(e, r);
  set_lengths(e, r);
  set_training(e, r);
  set_serving(e, r);
  if (const double gib = e.number("target.memory_gib"); gib > 0) {
    r.target.chip.memory.value = gib * 1073741824.0;
    r.target.chip.memory.source = "given as target.memory_gib";
  }
  return r;
}

std::vector<SizeCase> size_cases(const experiment::Experiment& e) {
  std::vector<SizeCase> cases;
  for (const std::string& workload : e.list("size.workloads"))
    for (const std::string& batch : e.list("size.batches")) {
      std::int64_t n = 0;
      if (std::from_chars(batch.data(), batch.data() + batch.size(), n).ec != std::errc{} || n < 1)
        throw Error({.id = "RANGE",
                     .message = "invalid number",
                     .place = "size.batches",
                     .found = batch,
                     .expected = "whole numbers from 1"});
      cases.push_back({workload, n});
    }
  return cases;
}

plan::Request with_case(plan::Request r, const experiment::Experiment& e, const SizeCase& size) {
  const int prompt = whole(e, "size.prompt_len"), added = whole(e, "size.new_tokens"),
            len = whole(e, "size.forward_len");
  r.work = size.workload == "rollout" ? Work::rollout : Work::forward;
  const bool chunked = size.workload == "chunked_forward";
  r.rollout = {.batch = size.batch, .prompt = prompt, .new_tokens = added, .cache_len = whole(e, "size.cache_len")};
  r.forward = {.batch = size.batch,
               .len = len > 0 ? len : prompt + added,
               .chunk = chunked ? whole(e, "size.chunk") : 0,
               .top_k = chunked ? whole(e, "size.top_k") : 0};
  return r;
}

}  // namespace mw::planning
