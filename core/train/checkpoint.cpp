// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/engine/distributed/cluster.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "checkpoint-";

// Steps of the complete checkpoints in the folder, ascending.
std::vector<long> steps_in(const fs::path& run_folder) {
  std::vector<long> steps;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(run_folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    long step = 0;
    const char* from = name.data() + kPrefix.size();
    const auto [end, error] = std::from_chars(from, name.data() + name.size(), step);
    const bool whole =
        error == std::errc{} && end == name.data() + name.size() && path_exists(entry.path() / "trainer_state.json");
    if (whole) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

using Part = engine::Cluster::Part;
constexpr std::pair<Part, const char*> kParts[] = {
    {Part::value, ".value"}, {Part::first_moment, ".m"}, {Part::second_moment, ".v"}};

// Writes one tensor at a time, to hold only one unsharded copy.
void write_state(const fs::path& folder, const TrainingCounters& c, const data::ChatTemplate& chat,
                 const engine::Cluster& cluster) {
  std::vector<formats::TensorSpec> specs;
  for (const auto& t : cluster.trained())
    for (const auto& [part, suffix] : kParts) specs.push_back({t.name + suffix, formats::TensorDType::f32, {t.size}});
  std::vector<float> values;
  const auto produce = [&](size_t i, const formats::ByteSink& sink) {
    const size_t index = i / std::size(kParts);
    values.resize(static_cast<size_t>(cluster.trained()[index].size));
    cluster.read(index, kParts[i % std::size(kParts)].first, values);
    sink(std::as_bytes(std::span(values)));
  };
  formats::write_safetensors(folder / "trainer_state.safetensors", specs, produce,
                             {{"format", "meshwright-trainer-state"}});
  Json state{{"schema", 1},
             {"step", c.step},
             {"tokens", c.tokens},
             {"seconds", c.seconds},
             {"answers_asked", c.answers_asked},
             {"answers_before", c.answers_before},
             {"evaluations", to_json(c.evaluations)},
             {"chat_template", template_record(chat)}};
  if (!c.arithmetic.empty()) state["arithmetic"] = c.arithmetic;
  if (!c.mesh.empty()) state["mesh"] = c.mesh;
  if (c.threads > 0) state["threads"] = c.threads;
  write_file_atomically(folder / "trainer_state.json", state.dump(2) + "\n");
}

// Includes buffers.
void write_model(const fs::path& folder, const Settings& settings, const engine::Cluster& cluster) {
  const auto all = cluster.inventory().tensors();
  std::map<std::string, size_t> trained;
  for (size_t i = 0; i < cluster.trained().size(); ++i) trained.emplace(cluster.trained()[i].name, i);
  const auto read = [&](size_t index, std::span<float> out) {
    if (const auto at = trained.find(all[index].name); at != trained.end())
      cluster.read(at->second, Part::value, out);
    else
      cluster.read_weight(index, out);
  };
  formats::write_hf_weights(folder, cluster.config(), cluster.inventory(), read, save_dtype(settings));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "chat_template.jinja",
                           "chat_template.json", "special_tokens_map.json"})
    if (is_file(settings.model.path / name)) copy_atomically(settings.model.path / name, folder / name);
}

void read_into(const formats::SafetensorsFile& file, const std::string& name, std::span<float> out) {
  const formats::TensorInfo* info = file.find(name);
  if (!info || info->elements() != static_cast<std::int64_t>(out.size()))
    throw Error("CHECKPOINT", "the checkpoint does not match the settings",
                {.file = file.path().string(),
                 .place = "tensor " + name,
                 .found = info ? counted(info->elements(), "element") : "nothing",
                 .expected = counted(out.size(), "element"),
                 .fix = "resume with the experiment of the original run"});
  file.read_f32(*info, 0, out);
}

constexpr const char* kBestFile = "best_checkpoint.json";

std::optional<long> read_step(const Json& json, const char* key, const std::string& file) {
  if (!find_member(json, key)) return std::nullopt;
  return static_cast<long>(int_member(json, key, file));
}

std::string rendered_hash(const data::ChatTemplate& chat) try {
  std::string text;
  for (const data::ChatSpan& span : data::render_chat(chat, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}))
    text += span.text;
  return hex(Sha256().add(text).finish());
} catch (const Error&) {
  return {};  // the template refuses this conversation
}

std::string text_of(const Json& record, const char* key) {
  const Json* value = find_member(record, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::string shown(const Json& record) {
  const std::string name = text_of(record, "name"), hash = text_of(record, "sha256").substr(0, 12);
  return name.empty() ? hash : hash.empty() ? name : name + " (" + hash + ")";
}

}  // namespace

fs::path checkpoint_path(const fs::path& run_folder, long step) {
  return run_folder / (std::string(kPrefix) + std::to_string(step));
}

std::optional<fs::path> latest_checkpoint(const fs::path& run_folder) {
  const auto steps = steps_in(run_folder);
  if (steps.empty()) return std::nullopt;
  return checkpoint_path(run_folder, steps.back());
}

TrainingCounters read_counters(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "trainer_state.json";
  const Json state = read_json(file);
  TrainingCounters c;
  c.step = static_cast<long>(int_member(state, "step", file.string()));
  c.tokens = int_member(state, "tokens", file.string());
  c.seconds = number_member(state, "seconds", file.string());
  c.answers_asked = static_cast<long>(int_member(state, "answers_asked", file.string()));
  c.answers_before = static_cast<long>(int_member(state, "answers_before", file.string()));
  // Version 1.0 does not write these three.
  if (find_member(state, "arithmetic")) c.arithmetic = string_member(state, "arithmetic", file.string());
  if (find_member(state, "mesh")) c.mesh = string_member(state, "mesh", file.string());
  if (find_member(state, "threads")) {
    constexpr long long kMost = 1 << 20;
    const long long threads = int_member(state, "threads", file.string());
    if (threads < 1 || threads > kMost)
      throw Error("CHECKPOINT", "the number of threads is impossible",
                  {.file = file.string(),
                   .place = "threads",
                   .found = std::to_string(threads),
                   .expected = "1 to " + std::to_string(kMost)});
    c.threads = static_cast<int>(threads);
  }
  if (const Json* evaluations = find_member(state, "evaluations"))  // earlier versions do not write it
    c.evaluations = read_evaluations(*evaluations, file.string());
  if (c.step < 0)
    throw Error("CHECKPOINT", "the step is negative",
                {.file = file.string(), .place = "step", .found = std::to_string(c.step)});
  return c;
}

void write_checkpoint(const fs::path& run_folder, const TrainingCounters& counters, const Settings& settings,
                      engine::Cluster& cluster) {
  StagedFolder staged(checkpoint_path(run_folder, counters.step));
  if (settings.method == model::TrainMethod::lora)
    formats::write_peft(staged.path(), adapter_of(cluster, settings.lora, settings.model.path.string()),
                        cluster.inventory());
  else
    write_model(staged.path(), settings, cluster);
  write_state(staged.path(), counters, settings.data.chat, cluster);
  staged.commit();
}

TrainingCounters restore_checkpoint(const fs::path& checkpoint, engine::Cluster& cluster) {
  const TrainingCounters counters = read_counters(checkpoint);
  const formats::SafetensorsFile file(checkpoint / "trainer_state.safetensors");
  std::vector<float> values;
  for (size_t i = 0; i < cluster.trained().size(); ++i)
    for (const auto& [part, suffix] : kParts) {
      values.resize(static_cast<size_t>(cluster.trained()[i].size));
      read_into(file, cluster.trained()[i].name + suffix, values);
      cluster.write(i, part, values);
    }
  cluster.values_written();
  return counters;
}

void prune_checkpoints(const fs::path& run_folder, long keep, std::optional<long> best) {
  const auto steps = steps_in(run_folder);
  for (size_t i = 0; i + static_cast<size_t>(std::max(1L, keep)) < steps.size(); ++i)
    if (steps[i] != best) remove_tree(checkpoint_path(run_folder, steps[i]));
}

std::optional<fs::path> chosen_checkpoint(const fs::path& run_folder, CheckpointChoice choice) {
  if (choice == CheckpointChoice::best)
    if (const auto best = read_best_checkpoint(run_folder)) {
      fs::path folder = checkpoint_path(run_folder, best->step);
      if (path_exists(folder / "trainer_state.json")) return folder;
    }
  return latest_checkpoint(run_folder);
}

Json to_json(const EvaluationHistory& h) {
  return {{"last", or_null(h.last)},   {"answered", or_null(h.answered)}, {"asked", h.answers.asked},
          {"right", h.answers.right},  {"best_step", h.best_step},        {"best_value", h.best_value},
          {"since_best", h.since_best}};
}

EvaluationHistory read_evaluations(const Json& json, const std::string& file) {
  EvaluationHistory h;
  h.last = read_step(json, "last", file);
  h.answered = read_step(json, "answered", file);
  h.answers.asked = static_cast<long>(int_member(json, "asked", file));
  h.answers.right = static_cast<long>(int_member(json, "right", file));
  h.best_step = static_cast<long>(int_member(json, "best_step", file));
  h.best_value = number_member(json, "best_value", file);
  h.since_best = static_cast<long>(int_member(json, "since_best", file));
  return h;
}

const char* best_metric(options::KeepBest keep_best) {
  return keep_best == options::KeepBest::answers ? "eval/answers_right" : "eval/loss";
}

bool add_evaluation(EvaluationHistory& history, options::KeepBest keep_best, long step, double value) {
  const bool is_larger_better = keep_best == options::KeepBest::answers;
  const bool is_best =
      std::isfinite(value) &&
      (history.best_step == 0 || (is_larger_better ? value > history.best_value : value < history.best_value));
  if (!is_best) {
    ++history.since_best;
    return false;
  }
  history.best_step = step;
  history.best_value = value;
  history.since_best = 0;
  return true;
}

void write_best_checkpoint(const std::filesystem::path& run_folder, const BestCheckpoint& best) {
  const Json json{{"schema", 1}, {"step", best.step}, {"metric", best.metric}, {"value", best.value}};
  write_file_atomically(run_folder / kBestFile, json.dump(2) + "\n");
}

void remove_best_checkpoint(const std::filesystem::path& run_folder) {
  remove_tree(run_folder / kBestFile);
}

std::optional<BestCheckpoint> read_best_checkpoint(const std::filesystem::path& run_folder) try {
  const std::filesystem::path file = run_folder / kBestFile;
  if (!path_exists(file)) return std::nullopt;
  const Json json = read_json(file);
  return BestCheckpoint{.step = static_cast<long>(int_member(json, "step", file.string())),
                        .metric = string_member(json, "metric", file.string()),
                        .value = number_member(json, "value", file.string())};
} catch (const Error&) {
  return std::nullopt;
}

Json template_record(const data::ChatTemplate& chat) {
  const data::FolderTemplate* folder = chat.folder();
  return {{"name", folder ? std::string(folder->published_as()) : std::string(to_string(chat.format()))},
          {"sha256", folder ? folder->sha256() : std::string()},
          {"rendered", rendered_hash(chat)}};
}

std::string template_warning(const std::filesystem::path& folder, const data::ChatTemplate& used) {
  const std::filesystem::path file = folder / "trainer_state.json";
  if (!is_file(file)) return {};
  const Json state = read_json(file);
  const Json* trained = state.is_object() ? find_member(state, "chat_template") : nullptr;
  if (!trained || !trained->is_object()) return {};  // earlier versions do not write it
  const Json now = template_record(used);
  const auto same = [&](const char* key) { return text_of(*trained, key) == text_of(now, key); };
  // Two files differ if their texts do; a built-in template is compared by what it renders.
  const bool both_files = !text_of(*trained, "sha256").empty() && !text_of(now, "sha256").empty();
  if (both_files ? same("sha256") : same("rendered")) return {};
  return folder.filename().string() + " was trained with the chat template " + shown(*trained) +
         ", but conversations are rendered with " + shown(now) +
         ": serve it with the template of training, or train again";
}

}  // namespace mw::train
