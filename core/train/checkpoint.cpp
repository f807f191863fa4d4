// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"
#include "core/train/run_settings.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/train/trained_template.h"

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
    for (const auto& [part, suffix] : kParts) specs.push_back({t.name + suffix, formats::DType::f32, {t.size}});
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
    throw Error({.id = "CHECKPOINT",
                 .message = "the checkpoint does not match the settings",
                 .file = file.path().string(),
                 .place = "tensor " + name,
                 .found = info ? std::to_string(info->elements()) + " elements" : "nothing",
                 .expected = std::to_string(out.size()) + " elements",
                 .fix = "resume with the experiment of the original run"});
  file.read_f32(*info, 0, out);
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
      throw Error({.id = "CHECKPOINT",
                   .message = "the number of threads is impossible",
                   .file = file.string(),
                   .place = "threads",
                   .found = std::to_string(threads),
                   .expected = "1 to " + std::to_string(kMost)});
    c.threads = static_cast<int>(threads);
  }
  if (const Json* evaluations = find_member(state, "evaluations"))  // earlier versions do not write it
    c.evaluations = read_evaluations(*evaluations, file.string());
  if (c.step < 0)
    throw Error({.id = "CHECKPOINT",
                 .message = "the step is negative",
                 .file = file.string(),
                 .place = "step",
                 .found = std::to_string(c.step)});
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

}  // namespace mw::train
