// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "checkpoint-";

// Steps of whole checkpoint folders, ascending. Anything else in the folder is not ours.
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
        error == std::errc{} && end == name.data() + name.size() && fs::exists(entry.path() / "trainer_state.json", ec);
    if (whole) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

formats::TensorData tensor(std::string name, std::span<const float> values) {
  return {.name = std::move(name),
          .dtype = formats::DType::f32,
          .shape = {static_cast<std::int64_t>(values.size())},
          .bytes = std::as_bytes(values)};
}

void write_state(const fs::path& folder, const Counters& c, engine::Network& network, engine::AdamW& optimizer) {
  std::vector<formats::TensorData> tensors;
  const auto parameters = network.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back(tensor(parameters[i].name + ".value", parameters[i].value));
    tensors.push_back(tensor(parameters[i].name + ".m", optimizer.first_moment(i)));
    tensors.push_back(tensor(parameters[i].name + ".v", optimizer.second_moment(i)));
  }
  formats::write_safetensors(folder / "trainer_state.safetensors", tensors, {{"format", "meshwright-trainer-state"}});
  const Json state{{"schema", 1},
                   {"step", c.step},
                   {"tokens", c.tokens},
                   {"seconds", c.seconds},
                   {"answers_asked", c.answers_asked},
                   {"answers_before", c.answers_before}};
  write_file_atomically(folder / "trainer_state.json", state.dump(2) + "\n");
}

void write_model(const fs::path& folder, const Settings& settings, engine::Network& network) {
  std::vector<formats::WriteTensor> tensors;
  const auto all = network.inventory().tensors();
  const auto parameters = network.parameters();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto at =
        std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == all[i].name; });
    if (at != parameters.end())
      tensors.push_back({i, at->value});
    else if (all[i].is_buffer)  // saved, not trained; small, so that the span stays valid
      tensors.push_back({i, network.weight_f32(i)});
  }
  formats::write_hf_weights(folder, network.config(), network.inventory(), tensors, settings.save_dtype);
  std::error_code ec;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model"})
    fs::copy_file(settings.model.path / name, folder / name, fs::copy_options::overwrite_existing, ec);
}

void read_into(const formats::SafetensorsFile& file, const std::string& name, std::span<float> out) {
  const formats::TensorInfo* info = file.find(name);
  if (!info || info->elements() != static_cast<std::int64_t>(out.size()))
    throw Error({.id = "CHECKPOINT",
                 .message = "the checkpoint belongs to other settings",
                 .file = file.path().string(),
                 .place = "tensor " + name,
                 .found = info ? std::to_string(info->elements()) + " elements" : "nothing",
                 .expected = std::to_string(out.size()) + " elements",
                 .fix = "resume with the experiment the run was started with"});
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

Counters read_counters(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "trainer_state.json";
  const Json state = read_json(file);
  Counters c;
  c.step = static_cast<long>(int_member(state, "step", file.string()));
  c.tokens = int_member(state, "tokens", file.string());
  c.seconds = number_member(state, "seconds", file.string());
  c.answers_asked = static_cast<long>(int_member(state, "answers_asked", file.string()));
  c.answers_before = static_cast<long>(int_member(state, "answers_before", file.string()));
  if (c.step < 0)
    throw Error({.id = "CHECKPOINT",
                 .message = "a negative step",
                 .file = file.string(),
                 .place = "step",
                 .found = std::to_string(c.step)});
  return c;
}

void write_checkpoint(const fs::path& run_folder, const Counters& counters, const Settings& settings,
                      engine::Network& network, engine::AdamW& optimizer) {
  StagedFolder staged(checkpoint_path(run_folder, counters.step));
  if (settings.method == engine::Method::lora)
    formats::write_peft(staged.path(), adapter_of(network, settings.lora, settings.model.path.string()));
  else
    write_model(staged.path(), settings, network);
  write_state(staged.path(), counters, network, optimizer);
  staged.commit();
}

Counters restore_checkpoint(const fs::path& checkpoint, engine::Network& network, engine::AdamW& optimizer) {
  const Counters counters = read_counters(checkpoint);
  const formats::SafetensorsFile file(checkpoint / "trainer_state.safetensors");
  const auto parameters = network.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    read_into(file, parameters[i].name + ".value", parameters[i].value);
    read_into(file, parameters[i].name + ".m", optimizer.first_moment(i));
    read_into(file, parameters[i].name + ".v", optimizer.second_moment(i));
  }
  network.parameters_changed();
  return counters;
}

void prune_checkpoints(const fs::path& run_folder, long keep) {
  const auto steps = steps_in(run_folder);
  std::error_code ec;
  for (size_t i = 0; i + static_cast<size_t>(std::max(1L, keep)) < steps.size(); ++i)
    fs::remove_all(checkpoint_path(run_folder, steps[i]), ec);
}

}  // namespace mw::train
