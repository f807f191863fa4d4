// SPDX-License-Identifier: Apache-2.0
#include "core/train/settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/optimizer_steps.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/lora.h"
#include "core/engine/transformer/network.h"
#include "core/experiment/hub_dataset.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/collectives/local_config.h"
#include "core/mesh/layout/sharding_options.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/catalogue.h"
#include "core/train/model.h"

namespace mw::train {

double learning_rate(const options::LearningRateSchedule& rate, long step) {
  if (step <= rate.warmup) return rate.peak * static_cast<double>(step) / static_cast<double>(rate.warmup);
  const double span = std::max(1.0, static_cast<double>(rate.steps - rate.warmup));
  const double done = std::clamp(static_cast<double>(step - rate.warmup) / span, 0.0, 1.0);
  double share = 1;  // position between the final rate (0) and the peak (1)
  if (rate.schedule == options::Schedule::cosine) share = 0.5 * (1 + std::cos(std::numbers::pi * done));
  if (rate.schedule == options::Schedule::linear) share = 1 - done;
  return rate.peak * (rate.final_ratio + (1 - rate.final_ratio) * share);
}

double RunBudget::share_left(double seconds_used, std::int64_t tokens_used) const {
  double left = 1;
  if (seconds > 0) left = std::min(left, 1 - seconds_used / seconds);
  if (tokens > 0) left = std::min(left, 1 - static_cast<double>(tokens_used) / static_cast<double>(tokens));
  return std::max(0.0, left);
}

engine::StepOptions step_options(const Settings& settings) {
  return {.remat = settings.remat,
          .loss_chunk = settings.loss_chunk,
          .label_smoothing = static_cast<float>(settings.label_smoothing),
          .dropout_seed = settings.seed};
}

data::BatchOptions batch_options(const Settings& s) {
  return {
      .rows = s.batch, .max_len = s.data.max_len, .packing = s.packing, .order = data::Order::shuffled, .seed = s.seed};
}

void set_steps_from_epochs(Settings& s, const data::ExampleList& train) {
  if (s.epochs <= 0) return;
  const std::int64_t rows = data::rows_of_epoch(train.sizes(), batch_options(s));
  s.rate.steps = static_cast<long>(
      steps_of_epochs(static_cast<double>(rows), s.epochs, {.batch = s.batch, .accumulation = s.accumulation}));
  s.epochs = 0;
}

data::BatchOptions eval_options(const Settings& s) {
  return {.rows = s.batch,
          .max_len = s.data.max_len,
          .packing = data::Packing::none,
          .order = data::Order::as_given,
          .seed = s.seed};
}

namespace {

void require_path(const std::filesystem::path& path, const std::string& key, const std::string& what) {
  if (!path.empty()) return;
  throw Error("MISSING", "the " + what + " is not set",
              {.place = key, .expected = "a path", .fix = "set " + key + ", e.g. --set " + key + "=PATH"});
}

// A catalogue id has no weights to run. Checks a planning-only id first, so that its error is not "missing folder".
void require_model(const options::Model& model) {
  if (model.path.empty() && !model.id.empty()) engine::check_model(model::catalogue_config(model.id));
  require_path(model.path, "model.path", "model folder");
}

// Dollars become time at the price of every device.
RunBudget budget_of(const experiment::BoundExperiment& config) {
  const options::Budget& given = config.budget;
  RunBudget budget{.seconds = 3600 * given.hours, .tokens = static_cast<std::int64_t>(given.tokens)};
  if (given.usd <= 0) return budget;
  const double hourly = config.price.usd_per_chip_hour * config.mesh.devices();
  if (hourly <= 0)
    throw Error("BUDGET", "a budget in dollars needs a price",
                {.place = "budget.usd",
                 .found = number_text(given.usd),
                 .expected = "price.usd_per_chip_hour above 0",
                 .fix = "set price.usd_per_chip_hour, or limit budget.hours"});
  const double seconds = 3600 * given.usd / hourly;
  budget.seconds = budget.seconds > 0 ? std::min(budget.seconds, seconds) : seconds;
  return budget;
}

// Throws if what decides the best checkpoint or an early stop would never be evaluated.
void check_evaluations(const options::Training& train) {
  if (!train.decides_by_evaluation()) return;
  const auto refuse = [&](const char* key, const std::string& fix) {
    throw Error("KEEP-BEST", "nothing would be evaluated that decides which checkpoint is the best",
                {.place = train.keep_best == options::KeepBest::none ? "train.patience" : "train.keep_best",
                 .found = std::string(key) + " is 0",
                 .fix = fix});
  };
  if (train.eval_every == 0) refuse("train.eval_every", "set train.eval_every to the steps between evaluations");
  if (train.keep_best == options::KeepBest::answers) {
    if (train.answers == 0) refuse("train.answers", "set train.answers, or set train.keep_best to eval_loss");
  } else if (train.eval_rows == 0) {
    refuse("train.eval_rows", "set train.eval_rows to the held-out rows of an evaluation");
  }
}

// Throws if the model cannot be computed on the mesh, before the run is created.
void check_mesh(const Settings& s, const model::Config& config) {
  const mesh::Mesh& mesh = s.model.mesh;
  if (mesh.devices() == 1) return;
  const mesh::Placement placement = training_placement(s, config);
  const mesh::ComputeSharding form(mesh, placement, mesh::engine_step({}));
  for (int d = 0; d < mesh.devices(); ++d) mesh::local_config(config, form, placement, mesh, d);
}

}  // namespace

void check_planned_only(const options::Training& train) {
  const auto refuse = [](bool set, const char* key) {
    if (set)
      throw Error("PLAN-OPTION", "the engine does not have this option; it is for plans of other software",
                  {.place = key,
                   .expected = "the default",
                   .fix = std::string("remove ") + key + ", or set target.id and train.stack"});
  };
  refuse(train.products == model::DType::fp8, "train.products");
  refuse(!train.saved.empty(), "train.saved");
  refuse(train.offload != options::Offload::none, "train.offload");
  refuse(train.compile.has_value(), "train.compile");
  refuse(train.logit_bytes > 0, "train.logit_bytes");
  refuse(train.other_models > 0, "train.other_models");
}

std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const options::Lora& options) {
  std::vector<mesh::AdapterShape> shapes;
  for (const engine::ResolvedLora& m : engine::resolve_lora(model::TensorInventory(config), options))
    shapes.push_back({.role = m.target.role, .layer = m.target.layer, .rank = m.rank, .dora = options.dora});
  return shapes;
}

Trainable trainable(const Settings& s, const model::Config& config) {
  const model::TensorInventory inventory(config);
  return s.method == model::TrainMethod::lora ? trainable_adapters(inventory, adapter_shapes(config, s.lora))
                                              : trainable_weights(inventory, save_dtype(s));
}

mesh::Placement training_placement(const Settings& s, const model::Config& config) {
  const auto adapters =
      s.method == model::TrainMethod::lora ? adapter_shapes(config, s.lora) : std::vector<mesh::AdapterShape>{};
  mesh::Placement placement =
      mesh::place(model::TensorInventory(config), s.model.mesh, s.model.rules, adapters, mesh::ShardingUse::training);
  for (const Problem& p : placement.problems)
    if (p.severity == Severity::error) throw Error(p);
  return placement;
}

Settings data_only_settings(const experiment::BoundExperiment& config, model::Family family) {
  Settings s;
  static_cast<options::DataRows&>(s.data) = config.data;
  s.data.chat = chat_template(config, family);
  s.data.seed = config.train.seed;
  s.packing = config.data.packing ? data::Packing::pack : data::Packing::none;
  s.batch = config.train.batch;
  s.seed = config.train.seed;
  return s;
}

void check_target(const experiment::BoundExperiment& config) {
  if (config.target.id != "cpu")
    throw Error("TARGET", "the engine runs only on this machine",
                {.place = "target.id", .found = config.target.id, .expected = "cpu", .fix = "set target.id to cpu"});
  if (config.mesh.devices() > mesh::kMostVirtualDevices)
    throw Error("MESH-SIZE", "the mesh has too many virtual devices for one machine",
                {.place = "mesh." + config.mesh.axes.back().name,
                 .found = std::to_string(config.mesh.devices()),
                 .expected = "at most " + std::to_string(mesh::kMostVirtualDevices),
                 .fix = "use a smaller mesh"});
}

ModelSettings model_values(const experiment::BoundExperiment& config) {
  ModelSettings m;
  m.path = config.model.path;
  m.tokenizer = config.model.tokenizer;
  m.init = config.model.init;
  m.weights = config.train.dtype;
  m.capacity = Bytes(static_cast<std::int64_t>(config.target.memory_gib * 1073741824.0));
  m.threads = config.target.threads;
  m.seed = config.train.seed;
  m.mesh = config.mesh;
  m.rules = mesh::engine_rules(mesh::sharding_rules(config.sharding, mesh::Preset::tunix));
  for (const Problem& p : mesh::find_unused_axes(m.mesh, m.rules))
    if (p.severity == Severity::error) throw Error(p);
  return m;
}

void require_weights(const ModelSettings& model) {
  if (model.init != options::Init::load || model.path.empty()) return;
  for (const std::filesystem::path& file : formats::weight_files(model.path))
    if (!is_file(file))
      throw Error("CHECKPOINT", "a weight file of the model is missing",
                  {.file = model.path.string(),
                   .place = "model.path",
                   .expected = file.filename().string() + ", which the weight index lists",
                   .fix = "download the model again, or choose another folder"});
}

ModelSettings model_settings(const experiment::BoundExperiment& config) {
  require_model(config.model);
  return model_values(config);
}

options::ChatFormat chat_format(const options::Data& data, model::Family family) {
  return data.requested_chat.value_or(chat_format(family));
}

data::ChatTemplate served_template(const options::Model& model, model::Family family) {
  return data::load_chat_template(model.tokenizer_path(), chat_format(family));
}

data::ChatTemplate chat_template(const experiment::BoundExperiment& config, model::Family family) {
  return config.data.requested_chat ? data::ChatTemplate(*config.data.requested_chat)
                                    : served_template(config.model, family);
}

Settings train_settings(const experiment::BoundExperiment& config) {
  check_target(config);
  if (config.data.path.empty() && !config.data.source.empty())
    throw Error("MISSING", "the engine does not load data.source itself",
                {.place = "data.path",
                 .found = "data.source " + config.data.source + " without a file",
                 .expected = "a path",
                 .fix = "write the dataset to a file, and set data.path to it: " +
                        experiment::download_command(experiment::parse_hub_dataset(config.data.source))});
  require_path(config.data.path, "data.path", "data file");
  require_model(config.model);
  const model::Config model = formats::read_config(config.model.path);
  engine::check_model(model);
  Settings settings = plan_settings(config, model.family);
  check_mesh(settings, model);
  return settings;
}

formats::TensorDType save_dtype(const options::Training& train) {
  return train.save_dtype == model::DType::f32 ? formats::TensorDType::f32 : formats::TensorDType::bf16;
}

Settings plan_settings(const experiment::BoundExperiment& config, model::Family family) {
  check_target(config);
  check_planned_only(config.train);
  check_evaluations(config.train);
  Settings s = data_only_settings(config, family);
  static_cast<options::Training&>(s) = config.train;
  s.model = model_values(config);
  s.lora = config.lora;
  s.sample = config.sample;
  s.budget = budget_of(config);
  return s;
}

Trainable trainable_adapters(const model::TensorInventory& inventory, std::span<const mesh::AdapterShape> adapters) {
  Trainable out{.of = inventory.parameters()};
  std::vector<formats::AdapterRank> saved;
  for (const mesh::AdapterShape& a : adapters) {
    const auto targets = inventory.lora_targets();
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const model::LoraTarget& t) {
      return t.role == a.role && t.layer == a.layer;
    });
    if (target == targets.end()) continue;
    out.params += a.rank * (target->in + target->out) + (a.dora ? target->out : 0);
    saved.push_back({*target, a.rank, a.dora});
  }
  out.file = Bytes(static_cast<std::int64_t>(formats::peft_file_size(saved)));
  return out;
}

Trainable trainable_weights(const model::TensorInventory& inventory, formats::TensorDType saved) {
  return {.params = inventory.parameters(),
          .of = inventory.parameters(),
          .file = Bytes(static_cast<std::int64_t>(formats::hf_weights_size(inventory, saved)))};
}

std::string to_text(const Trainable& t) {
  return counted(count_text(static_cast<double>(t.params)), "parameter") + ", " + number_text(100 * t.share(), 3) +
         " %";
}

Json to_json(const Trainable& t) {
  return {{"params", t.params}, {"share", t.share()}, {"bytes", t.file.value}};
}

std::optional<Trainable> trainable_of(const Json& started_info) {
  const Json* found = started_info.is_object() ? find_member(started_info, "trainable") : nullptr;
  if (!found || !found->is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const Json* value = find_member(*found, key);
    return value && value->is_number() && std::isfinite(value->get<double>()) ? value->get<double>() : 0.0;
  };
  const double params = number("params"), share = number("share"), bytes = number("bytes");
  if (params <= 0 || params > 1e15 || bytes < 0 || bytes > 1e18) return std::nullopt;
  return Trainable{.params = static_cast<std::int64_t>(params),
                   .of = share > 0 && share <= 1 ? std::llround(params / share) : 0,
                   .file = Bytes(static_cast<std::int64_t>(bytes))};
}

}  // namespace mw::train
