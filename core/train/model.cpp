// SPDX-License-Identifier: Apache-2.0
#include "core/train/model.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/engine/distributed/cluster.h"
#include "core/engine/transformer/checks.h"

namespace mw::train {
namespace {

engine::WeightSource source_of(const formats::HfWeights& weights) {
  return {
      .f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
      .bf16 = [&](size_t i, std::int64_t first, std::span<std::uint16_t> out) { weights.read_bf16(i, first, out); }};
}

void check_vocabulary(const data::Tokenizer& tokenizer, const model::Config& config, const std::string& folder) {
  if (tokenizer.size() <= config.vocab) return;
  throw Error("TOKENIZER-SIZE", "the tokenizer has more pieces than the model has embedding rows",
              {.file = folder,
               .found = counted(tokenizer.size(), "piece"),
               .expected = "at most vocab_size " + std::to_string(config.vocab),
               .fix = "use the tokenizer that belongs to this model"});
}

}  // namespace

LoadedModel::LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;
LoadedModel& LoadedModel::operator=(LoadedModel&&) noexcept = default;
LoadedModel::~LoadedModel() = default;

const model::Config& LoadedModel::config() const {
  return cluster->config();
}

int thread_count(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Bytes machine_memory() {
  return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)));
}

Json mesh_json(const mesh::Mesh& mesh) {
  Json axes = Json::array();
  for (const mesh::MeshAxis& a : mesh.axes) axes.push_back({{"name", a.name}, {"size", a.size}});
  return {{"axes", std::move(axes)}, {"devices", mesh.devices()}};
}

Bytes device_capacity(const ModelSettings& settings) {
  if (settings.capacity.value > 0) return settings.capacity;
  return Bytes(machine_memory().value / settings.mesh.devices());
}

std::unique_ptr<data::Tokenizer> load_tokenizer_of(const ModelSettings& settings) {
  return data::load_tokenizer(settings.tokenizer.empty() ? settings.path : settings.tokenizer);
}

LoadedModel load_model(const ModelSettings& settings, const CountProgress& progress) {
  if (settings.path.empty())
    throw Error("MODEL", "model.path is not set",
                {.place = "model.path",
                 .expected = "a folder with config.json",
                 .fix = "set model.path to the folder of a Gemma model"});
  const model::Config config = formats::read_config(settings.path);
  engine::check_model(config);  // before the tokenizer, whose format may be unsupported as well
  engine::check_context(config, settings.context);
  std::unique_ptr<data::Tokenizer> tokenizer = load_tokenizer_of(settings);
  check_vocabulary(*tokenizer, config, settings.path.string());
  LoadedModel out = load_weights(settings, config, progress);
  out.tokenizer = std::move(tokenizer);
  return out;
}

LoadedModel load_weights(const ModelSettings& settings, const model::Config& config, const CountProgress& progress) {
  LoadedModel out;
  const model::TensorInventory inventory(config);
  std::unique_ptr<formats::HfWeights> weights;  // checked before memory is allocated
  if (settings.init == options::Init::load) weights = std::make_unique<formats::HfWeights>(settings.path, inventory);
  out.cluster = engine::Cluster::create(config, {.mesh = settings.mesh,
                                                 .rules = settings.rules,
                                                 .weights = settings.weights,
                                                 .use = settings.use,
                                                 .capacity = device_capacity(settings),
                                                 .threads = thread_count(settings.threads),
                                                 .arithmetic = settings.arithmetic});
  if (weights)
    out.cluster->load(source_of(*weights), progress);
  else
    out.cluster->init_random(settings.seed);
  return out;
}

options::ChatFormat chat_format(model::Family family) {
  switch (family) {
    case model::Family::gemma2:
      return options::ChatFormat::gemma2;
    case model::Family::gemma3:
      return options::ChatFormat::gemma3;
    case model::Family::gemma4:
      return options::ChatFormat::gemma4;
    case model::Family::llama:
    case model::Family::qwen3:
    case model::Family::gemma1:
    case model::Family::gemma3n:  // for planning only
      return options::ChatFormat::none;
  }
  return options::ChatFormat::gemma3;
}

options::Lora lora_options(const formats::PeftAdapter& adapter) {
  return {.rank = adapter.rank,
          .alpha = adapter.alpha,
          .dropout = adapter.dropout,
          .rslora = adapter.rslora,
          .targets = adapter.targets,
          .rank_pattern = adapter.rank_pattern,
          .alpha_pattern = adapter.alpha_pattern,
          .dora = adapter.dora};
}

options::Lora lora_options(const formats::PeftAdapter& adapter, const options::Lora& training) {
  options::Lora options = lora_options(adapter);
  options.dropout = training.dropout;
  options.plus_ratio = training.plus_ratio;
  return options;
}

formats::PeftAdapter read_adapter(const std::filesystem::path& folder, const std::filesystem::path& model) {
  const model::TensorInventory inventory(formats::read_config(model));
  formats::PeftAdapter adapter = formats::read_peft(folder, inventory);
  for (const engine::ResolvedLora& r : engine::resolve_lora(inventory, lora_options(adapter))) {
    const bool there = std::any_of(adapter.modules.begin(), adapter.modules.end(),
                                   [&](const auto& m) { return m.target.module == r.target.module; });
    if (!there)
      throw Error("ADAPTER", "the adapter lacks some layers of the model",
                  {.file = folder.string(),
                   .place = r.target.module,
                   .found = counted(adapter.modules.size(), "module") + ", none for this one",
                   .expected = "modules of all layers",
                   .fix = "choose the base model of this adapter"});
  }
  return adapter;
}

namespace {

// The values of a module; throws ADAPTER if the adapter has none of this size.
const formats::AdapterModule& module_of(const formats::PeftAdapter& adapter, const model::LoraTarget& target, size_t a,
                                        size_t b) {
  const auto from = std::find_if(adapter.modules.begin(), adapter.modules.end(),
                                 [&](const auto& m) { return m.target.module == target.module; });
  if (from == adapter.modules.end() || from->a.size() != a || from->b.size() != b)
    throw Error(
        "ADAPTER", "the adapter does not match the LoRA settings",
        {.place = target.module,
         .found = from == adapter.modules.end() ? "no tensors for this module" : "rank " + std::to_string(from->rank),
         .expected = "the rank and widths of the LoRA settings",
         .fix = "use the rank and targets of the adapter"});
  return *from;
}

// Index of a factor among the trained tensors: "layers.3.q_proj" and ".lora_a".
size_t trained_index(const engine::Cluster& cluster, const model::LoraTarget& target, const char* factor) {
  const std::string name =
      "layers." + std::to_string(target.layer) + "." + std::string(model::hf_module_name(target.role)) + factor;
  const auto all = cluster.trained();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == name; });
  if (at == all.end())
    throw Error("ADAPTER", "the model has no LoRA for this module of the adapter", {.place = target.module});
  return static_cast<size_t>(at - all.begin());
}

}  // namespace

void attach_adapter(const formats::PeftAdapter& adapter, std::uint64_t seed, engine::Cluster& cluster) {
  cluster.add_lora(lora_options(adapter), seed);
  copy_adapter(adapter, cluster);
}

void copy_adapter(const formats::PeftAdapter& adapter, engine::Cluster& cluster) {
  for (const engine::ResolvedLora& r : engine::resolve_lora(cluster.inventory(), lora_options(adapter))) {
    const size_t a = trained_index(cluster, r.target, ".lora_a"), b = trained_index(cluster, r.target, ".lora_b");
    const auto size = [&](size_t i) { return static_cast<size_t>(cluster.trained()[i].size); };
    const formats::AdapterModule& from = module_of(adapter, r.target, size(a), size(b));
    cluster.write(a, engine::Cluster::Part::value, from.a);
    cluster.write(b, engine::Cluster::Part::value, from.b);
    if (adapter.dora) cluster.write(trained_index(cluster, r.target, ".lora_m"), engine::Cluster::Part::value, from.m);
  }
  cluster.values_written();
}

formats::PeftAdapter adapter_of(const engine::Cluster& cluster, const options::Lora& options,
                                const std::string& base_model) {
  formats::PeftAdapter adapter{.rank = options.rank,
                               .alpha = static_cast<float>(options.alpha),
                               .dropout = static_cast<float>(options.dropout),
                               .rslora = options.rslora,
                               .dora = options.dora,
                               .base_model = base_model,
                               .targets = options.targets,
                               .rank_pattern = options.rank_pattern,
                               .alpha_pattern = options.alpha_pattern,
                               .modules = {}};
  const auto values = [&](const model::LoraTarget& target, const char* factor) {
    const size_t i = trained_index(cluster, target, factor);
    std::vector<float> out(static_cast<size_t>(cluster.trained()[i].size));
    cluster.read(i, engine::Cluster::Part::value, out);
    return out;
  };
  for (const engine::ResolvedLora& r : engine::resolve_lora(cluster.inventory(), options))
    adapter.modules.push_back({.target = r.target,
                               .rank = r.rank,
                               .alpha = r.alpha,
                               .a = values(r.target, ".lora_a"),
                               .b = values(r.target, ".lora_b"),
                               .m = options.dora ? values(r.target, ".lora_m") : std::vector<float>()});
  return adapter;
}

namespace {

// bos + prompt; limits the answer to the remaining context.
std::vector<int> prompt_ids(const LoadedModel& model, const std::string& prompt, options::SampleOptions& options) {
  std::vector<int> ids{model.tokenizer->bos()};
  const std::vector<int> body = model.tokenizer->encode(prompt);
  ids.insert(ids.end(), body.begin(), body.end());
  const auto limit = static_cast<size_t>(model.config().max_positions);
  if (ids.size() >= limit)
    throw Error("CONTEXT", "the prompt exceeds the model's context",
                {.found = counted(ids.size(), "token"), .expected = "fewer than " + std::to_string(limit)});
  options.max_new_tokens = std::min(options.max_new_tokens, static_cast<int>(limit - ids.size()));
  return ids;
}

void add_stops(const data::Tokenizer& tokenizer, const data::ChatTemplate& chat, options::SampleOptions& options) {
  const std::vector<int> stops = answer_stops(tokenizer, chat);
  options.stop_ids.insert(options.stop_ids.end(), stops.begin(), stops.end());
}

}  // namespace

std::vector<int> answer_stops(const data::Tokenizer& tokenizer, const data::ChatTemplate& chat) {
  std::vector<int> stops{tokenizer.eos()};
  if (!chat.is_none())
    if (const int end = tokenizer.find(data::end_of_turn(chat)); end >= 0) stops.push_back(end);
  return stops;
}

std::vector<Answer> answers(LoadedModel& model, std::span<const std::string> prompts, const data::ChatTemplate& chat,
                            const options::SampleOptions& options, std::stop_token stop) {
  options::SampleOptions sampling = options;
  std::vector<std::vector<int>> ids;
  for (const std::string& prompt : prompts) ids.push_back(prompt_ids(model, prompt, sampling));
  add_stops(*model.tokenizer, chat, sampling);
  std::vector<Answer> out;
  for (std::vector<int>& row : model.cluster->generate_batch(ids, sampling, stop)) {
    std::string text(trimmed(model.tokenizer->decode(row)));
    out.push_back({std::move(text), std::move(row)});
  }
  return out;
}

Answer answer(LoadedModel& model, const std::string& prompt, const data::ChatTemplate& chat,
              const options::SampleOptions& options, std::stop_token stop,
              const std::function<bool(const std::string&)>& on_text) {
  if (model.cluster->devices() > 1) return answers(model, std::span(&prompt, 1), chat, options, stop).front();
  options::SampleOptions sampling = options;
  const std::vector<int> ids = prompt_ids(model, prompt, sampling);
  add_stops(*model.tokenizer, chat, sampling);
  Answer out;
  std::vector<int> so_far;
  out.ids = engine::Sampler(model.cluster->network(0)).generate(ids, sampling, stop, [&](int id) {
    so_far.push_back(id);
    return !on_text || on_text(model.tokenizer->decode(so_far));
  });
  out.text = trimmed(model.tokenizer->decode(out.ids));
  return out;
}

void load_tuned(LoadedModel& model, const std::filesystem::path& folder, ModelSettings settings) {
  if (!path_exists(folder / "adapter_config.json")) {
    settings.path = folder;
    settings.init = options::Init::load;
    model = LoadedModel();  // freed first: memory suffices for one model only
    model = load_model(settings);
    return;
  }
  const formats::PeftAdapter adapter = formats::read_peft(folder, model.cluster->inventory());
  attach_adapter(adapter, settings.seed, *model.cluster);
}

PromptLogits prompt_logits(LoadedModel& model, const std::string& prompt) {
  options::SampleOptions none;
  PromptLogits out{.ids = prompt_ids(model, prompt, none), .logits = {}};
  const size_t n = out.ids.size();
  const std::vector<int> targets(n, -1), segments(n, 0);
  std::vector<int> positions(n);
  std::iota(positions.begin(), positions.end(), 0);
  out.logits.resize(n * static_cast<size_t>(model.config().vocab));
  model.cluster->network(0).logits({1, static_cast<int>(n), out.ids, targets, positions, segments}, out.logits);
  return out;
}

}  // namespace mw::train
