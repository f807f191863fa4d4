// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/settings.h"

#include <array>

#include "core/base/files.h"
#include "core/engine/transformer/checks.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/collectives/local_config.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/mesh/layout/unused_axes.h"
#include "core/model/catalogue.h"
#include "core/train/model.h"

namespace mw::experiment {
namespace {

// Converts the value of a choice key to an enum; `names` are in the order of the enum.
template <class Enum, size_t N>
Enum setting_choice(const Experiment& e, std::string_view key, const std::array<std::string_view, N>& names) {
  const std::string value = e.string(key);
  for (size_t i = 0; i < N; ++i)
    if (names[i] == value) return static_cast<Enum>(i);
  throw Error({.id = "CHOICE", .message = "not one of the choices", .place = std::string(key), .found = value});
}

// For an enum of core/model/types.h.
template <class Enum>
Enum setting_choice(const Experiment& e, std::string_view key) {
  return setting_choice<Enum>(e, key, model::EnumNames<Enum>::values);
}

template <class T>
std::vector<std::pair<std::string, T>> pattern(const Experiment& e, std::string_view key) {
  std::vector<std::pair<std::string, T>> out;
  const Json patterns = e.value(key);
  for (const auto& [name, value] : patterns.items()) out.emplace_back(name, value.template get<T>());
  return out;
}

void require_path(const Experiment& e, std::string_view key, const std::string& what) {
  if (!e.path(key).empty()) return;
  throw Error({.id = "MISSING",
               .message = "the " + what + " is not set",
               .place = std::string(key),
               .expected = "a path",
               .fix = "set " + std::string(key) + ", e.g. --set " + std::string(key) + "=PATH"});
}

// A catalogue id has no weights to run. Checks a planning-only id first, so that its error is not "missing folder".
void require_model(const Experiment& e) {
  if (const std::string id = e.string("model.id"); e.path("model.path").empty() && !id.empty())
    engine::check_model(model::catalogue_config(id));
  require_path(e, "model.path", "model folder");
}

data::DatasetOptions data_settings(const Experiment& e, model::Family family) {
  data::DatasetOptions d;
  d.path = e.path("data.path");
  d.format = setting_choice<data::Format>(
      e, "data.format",
      std::array<std::string_view, 6>{"auto", "prompt_completion", "messages", "sharegpt", "alpaca", "text"});
  for (const char* column : {"prompt", "completion", "text", "messages", "system", "input"})
    if (const std::string name = e.string(std::string("data.columns.") + column); !name.empty())
      d.columns[column] = name;
  d.chat = chat_format(e, family);
  d.loss =
      setting_choice<data::LossOn>(e, "data.loss", std::array<std::string_view, 3>{"completion", "assistant", "all"});
  d.overlong = setting_choice<data::Overlong>(e, "data.overlong", std::array<std::string_view, 2>{"drop", "truncate"});
  d.on_error = setting_choice<data::OnError>(e, "data.on_error", std::array<std::string_view, 2>{"stop", "skip"});
  d.max_len = static_cast<int>(e.integer("data.max_len"));
  d.eval_fraction = e.number("data.eval_fraction");
  d.seed = static_cast<std::uint64_t>(e.integer("train.seed"));
  return d;
}

void set_data(train::Settings& s, const Experiment& e, model::Family family) {
  s.data = data_settings(e, family);
  s.packing = e.flag("data.packing") ? data::Packing::pack : data::Packing::none;
  s.batch = static_cast<int>(e.integer("train.batch"));
  s.seed = static_cast<std::uint64_t>(e.integer("train.seed"));
}

// Throws if the model cannot be computed on the mesh, before the run is created.
void check_mesh(const train::Settings& s, const model::Config& config) {
  const mesh::Mesh& mesh = s.model.mesh;
  if (mesh.devices() == 1) return;
  const mesh::Placement placement = training_placement(s, config);
  const mesh::ComputeSharding form(mesh, placement, mesh::engine_step({}));
  for (int d = 0; d < mesh.devices(); ++d) mesh::local_config(config, form, placement, mesh, d);
}

}  // namespace

std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const engine::LoraOptions& options) {
  std::vector<mesh::AdapterShape> shapes;
  for (const engine::ResolvedLora& m : engine::resolve_lora(model::TensorInventory(config), options))
    shapes.push_back({.role = m.target.role, .layer = m.target.layer, .rank = m.rank});
  return shapes;
}

mesh::Placement training_placement(const train::Settings& s, const model::Config& config) {
  const auto adapters =
      s.method == model::TrainMethod::lora ? adapter_shapes(config, s.lora) : std::vector<mesh::AdapterShape>{};
  mesh::Placement placement =
      mesh::place(model::TensorInventory(config), s.model.mesh, s.model.rules, adapters, mesh::ShardingUse::training);
  for (const Problem& p : placement.problems)
    if (p.severity == Severity::error) throw Error(p);
  return placement;
}

train::Settings data_only_settings(const Experiment& e, model::Family family) {
  for (const Problem& p : e.validate())
    if (p.severity == Severity::error &&
        (p.place.starts_with("data.") || p.place == "train.batch" || p.place == "train.seed"))
      throw Error(p);
  train::Settings s;
  set_data(s, e, family);
  return s;
}

void check_valid(const Experiment& e) {
  for (const Problem& p : e.validate())
    if (p.severity == Severity::error) throw Error(p);
  if (e.string("target.id") != "cpu")
    throw Error({.id = "TARGET",
                 .message = "the engine runs only on this machine",
                 .place = "target.id",
                 .found = e.string("target.id"),
                 .expected = "cpu",
                 .fix = "set target.id to cpu"});
  if (const mesh::Mesh mesh = given_mesh(e); mesh.devices() > mesh::kMostVirtualDevices)
    throw Error({.id = "MESH-SIZE",
                 .message = "the mesh has too many virtual devices for one machine",
                 .place = "mesh." + mesh.axes.back().name,
                 .found = std::to_string(mesh.devices()),
                 .expected = "at most " + std::to_string(mesh::kMostVirtualDevices),
                 .fix = "use a smaller mesh"});
}

engine::LoraOptions lora_options(const Experiment& e) {
  return {.rank = static_cast<int>(e.integer("lora.rank")),
          .alpha = static_cast<float>(e.number("lora.alpha")),
          .dropout = static_cast<float>(e.number("lora.dropout")),
          .rslora = e.flag("lora.rslora"),
          .targets = e.list("lora.targets"),
          .rank_pattern = pattern<int>(e, "lora.rank_pattern"),
          .alpha_pattern = pattern<float>(e, "lora.alpha_pattern")};
}

train::ModelSettings model_values(const Experiment& e) {
  train::ModelSettings m;
  m.path = e.path("model.path");
  m.tokenizer = e.path("model.tokenizer");
  m.init = setting_choice<train::Init>(e, "model.init", std::array<std::string_view, 2>{"load", "random"});
  m.weights = setting_choice<model::WeightType>(e, "train.dtype");
  m.capacity = Bytes(static_cast<std::int64_t>(e.number("target.memory_gib") * 1073741824.0));
  m.threads = static_cast<int>(e.integer("target.threads"));
  m.seed = static_cast<std::uint64_t>(e.integer("train.seed"));
  m.mesh = given_mesh(e);
  m.rules = mesh::engine_rules(sharding_rules(e, mesh::Preset::tunix));
  for (const Problem& p : mesh::find_unused_axes(m.mesh, m.rules))
    if (p.severity == Severity::error) throw Error(p);
  return m;
}

void require_weights(const train::ModelSettings& model) {
  if (model.init != train::Init::load || model.path.empty()) return;
  for (const std::filesystem::path& file : formats::weight_files(model.path))
    if (!is_file(file))
      throw Error({.id = "CHECKPOINT",
                   .message = "a weight file of the model is missing",
                   .file = model.path.string(),
                   .place = "model.path",
                   .expected = file.filename().string() + ", which the weight index lists",
                   .fix = "download the model again, or choose another folder"});
}

train::ModelSettings model_settings(const Experiment& e) {
  require_model(e);
  return model_values(e);
}

engine::SampleOptions sample_options(const Experiment& e) {
  return {.max_new_tokens = static_cast<int>(e.integer("sample.max_new_tokens")),
          .temperature = static_cast<float>(e.number("sample.temperature")),
          .top_k = static_cast<int>(e.integer("sample.top_k")),
          .top_p = static_cast<float>(e.number("sample.top_p")),
          .seed = static_cast<std::uint64_t>(e.integer("sample.seed")),
          .stop_ids = {}};
}

data::ChatFormat chat_format(const Experiment& e, model::Family family) {
  const std::string name = e.string("data.chat");
  if (name == "auto") return train::chat_format(family);
  return setting_choice<data::ChatFormat>(e, "data.chat",
                                          std::array<std::string_view, 4>{"gemma2", "gemma3", "gemma4", "none"});
}

train::Settings train_settings(const Experiment& e) {
  check_valid(e);
  require_path(e, "data.path", "data file");
  require_model(e);
  const model::Config config = formats::read_config(e.path("model.path"));
  engine::check_model(config);
  train::Settings settings = plan_settings(e, config.family);
  check_mesh(settings, config);
  return settings;
}

train::Settings plan_settings(const Experiment& e, model::Family family) {
  check_valid(e);
  train::Settings s;
  s.model = model_values(e);
  s.method = setting_choice<model::TrainMethod>(e, "train.method");
  s.lora = lora_options(e);
  s.adapter = e.path("lora.adapter");
  set_data(s, e, family);
  s.accumulation = static_cast<int>(e.integer("train.accumulation"));
  s.rate = {.schedule = setting_choice<train::Schedule>(
                e, "train.schedule", std::array<std::string_view, 3>{"cosine", "linear", "constant"}),
            .peak = e.number("train.learning_rate"),
            .final_ratio = e.number("train.final_ratio"),
            .warmup = static_cast<long>(e.integer("train.warmup_steps")),
            .steps = static_cast<long>(e.integer("train.steps"))};
  s.epochs = e.number("train.epochs");
  s.adamw = {.beta1 = static_cast<float>(e.number("train.beta1")),
             .beta2 = static_cast<float>(e.number("train.beta2")),
             .epsilon = static_cast<float>(e.number("train.epsilon")),
             .weight_decay = static_cast<float>(e.number("train.weight_decay"))};
  s.clip = e.number("train.clip");
  s.remat = setting_choice<model::Remat>(e, "train.remat");
  s.loss_chunk = static_cast<int>(e.integer("train.loss_chunk"));
  s.save_dtype = e.string("train.save_dtype") == "f32" ? formats::DType::f32 : formats::DType::bf16;
  s.eval_every = static_cast<long>(e.integer("train.eval_every"));
  s.eval_rows = static_cast<long>(e.integer("train.eval_rows"));
  s.sample_every = static_cast<long>(e.integer("train.sample_every"));
  s.sample_prompts = static_cast<long>(e.integer("train.sample_prompts"));
  s.answers = static_cast<long>(e.integer("train.answers"));
  s.checkpoint_every = static_cast<long>(e.integer("train.checkpoint_every"));
  s.keep_checkpoints = static_cast<long>(e.integer("train.keep_checkpoints"));
  s.sample = sample_options(e);
  return s;
}

}  // namespace mw::experiment
