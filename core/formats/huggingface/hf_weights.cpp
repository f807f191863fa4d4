// SPDX-License-Identifier: Apache-2.0
#include "core/formats/huggingface/hf_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/model/catalogue.h"
#include "core/model/hf_config.h"

namespace mw::formats {
namespace {

// Longest first. The prefixes of Gemma 4 and newer multimodal Gemma 3 files, Gemma 3 4B and larger on the hub, the same
// without a head, and text-only files.
constexpr std::array<std::string_view, 4> kPrefixes{"model.language_model.", "language_model.model.", "language_model.",
                                                    "model."};
constexpr std::array<std::string_view, 6> kTowers{"vision_tower.", "audio_tower.", "multi_modal_projector.",
                                                  "embed_vision.", "embed_audio.", "vision_embedder."};

}  // namespace

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

bool is_tower(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  return std::any_of(kTowers.begin(), kTowers.end(), [&](std::string_view t) { return name.starts_with(t); });
}

std::string_view suffix_of(const model::Tensor& tensor) {
  return without_prefix(tensor.hf_name);
}

std::string_view suffix_of(const model::LoraTarget& target) {
  return without_prefix(target.module);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

namespace fs = std::filesystem;
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

constexpr FileErrors weights_fault{"CHECKPOINT"};

std::string first_three(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, names.size()); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 3) text += " and " + std::to_string(names.size() - 3) + " more";
  return text;
}

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard

// Reads the index; rejects file names outside the folder.
WeightMap read_index(const fs::path& index) {
  const SortedJson json = parse_sorted_json(read_file(index, kMaxJsonFile), index.string());
  const auto at = json.is_object() ? json.find("weight_map") : json.end();
  if (at == json.end()) weights_fault(index, "weight_map", "a required key is missing", "", "{tensor: file}");
  const SortedJson& map = *at;
  if (!map.is_object() || map.empty())
    weights_fault(index, "weight_map", "the value is not an object of file names", "", "{tensor: file}");
  WeightMap out;
  for (const auto& [tensor, value] : map.items()) {
    const std::string place = "weight_map, " + tensor;
    if (!value.is_string()) weights_fault(index, place, "wrong type", value.type_name(), "a file name");
    const auto name = value.get<std::string>();
    const fs::path path(name);
    const bool inside = !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
                        std::none_of(path.begin(), path.end(), [](const fs::path& p) { return p == ".."; });
    if (!inside) weights_fault(index, place, "the file is outside the folder", name, "a file name inside the folder");
    out[tensor] = name;
  }
  return out;
}

fs::path index_of(const fs::path& folder) {
  if (!path_exists(folder / kIndex))
    weights_fault(folder, "", "the folder contains no weights", "", std::string(kSingle) + " or " + kIndex,
                  "choose the folder of a Hugging Face model in safetensors format");
  return folder / kIndex;
}

std::vector<std::unique_ptr<SafetensorsFile>> open_files(const fs::path& folder) {
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  if (path_exists(folder / kSingle)) {  // takes precedence over an index, as in transformers
    files.push_back(std::make_unique<SafetensorsFile>(folder / kSingle));
    return files;
  }
  const fs::path index = index_of(folder);
  const WeightMap map = read_index(index);
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, shard] : map) {
    const auto [at, fresh] = opened.try_emplace(shard, files.size());
    if (fresh) files.push_back(std::make_unique<SafetensorsFile>(folder / shard));
    if (!files[at->second]->find(tensor))
      weights_fault(index, "weight_map, " + tensor, "the file in the index does not contain the tensor", shard);
  }
  return files;
}

// K and V of layers that use those of another layer: present in the files of E2B and E4B on the hub, and ignored by
// transformers.
std::set<std::string> ignored_names(const model::TensorInventory& inventory) {
  std::set<std::string> out;
  for (const model::LoraTarget& t : inventory.lora_targets()) {
    if (t.role != model::Role::q_proj || inventory.find(model::Role::k_proj, t.layer)) continue;
    const std::string attention = "layers." + std::to_string(t.layer) + ".self_attn.";
    for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) out.insert(attention + name);
  }
  return out;
}

bool is_float(TensorDType dtype) {
  return dtype == TensorDType::f32 || dtype == TensorDType::bf16 || dtype == TensorDType::f16;
}

// Classes of tensors that are not in the inventory.
enum class Extra { ignored, unexpected };
Extra extra_kind(const TensorInfo& info, const std::set<std::string>& ignored, const model::Tensor& embed) {
  const std::string name(without_prefix(info.name));
  if (is_tower(info.name) || ignored.contains(name) || name.ends_with(".rotary_emb.inv_freq")) return Extra::ignored;
  // A copy of the tied embedding, which transformers ignores.
  return name == "lm_head.weight" && info.shape == embed.hf_shape ? Extra::ignored : Extra::unexpected;
}

void write_as_bf16(std::span<const float> values, const ByteSink& sink) {
  std::vector<std::uint16_t> rounded(std::min<size_t>(values.size(), 1 << 16));
  for (size_t done = 0; done < values.size(); done += rounded.size()) {
    const auto part = values.subspan(done, std::min(rounded.size(), values.size() - done));
    std::transform(part.begin(), part.end(), rounded.begin(), to_bf16);
    sink(std::as_bytes(std::span(rounded).first(part.size())));
  }
}

}  // namespace

HfWeights::HfWeights(const fs::path& folder, const model::TensorInventory& inventory) : files_(open_files(folder)) {
  const auto tensors = inventory.tensors();
  std::map<std::string_view, size_t> wanted;
  for (size_t i = 0; i < tensors.size(); ++i) wanted.emplace(suffix_of(tensors[i]), i);
  const std::set<std::string> ignored = ignored_names(inventory);
  const model::Tensor& embed = *inventory.find(model::Role::embed);

  sources_.resize(tensors.size());
  std::vector<bool> found(tensors.size());
  std::vector<std::string> unexpected;
  for (size_t f = 0; f < files_.size(); ++f) {
    for (const TensorInfo& info : files_[f]->tensors()) {
      const fs::path& path = files_[f]->path();
      const auto at = is_tower(info.name) ? wanted.end() : wanted.find(without_prefix(info.name));
      if (at == wanted.end()) {
        (extra_kind(info, ignored, embed) == Extra::ignored ? skipped_ : unexpected).push_back(info.name);
        continue;
      }
      const model::Tensor& tensor = tensors[at->second];
      const std::string place = "tensor " + info.name;
      if (found[at->second])
        weights_fault(path, place, "the tensor occurs twice", "also " + sources_[at->second].info.name);
      if (info.shape != tensor.hf_shape)
        weights_fault(path, place, "wrong shape", shape_text(info.shape), shape_text(tensor.hf_shape),
                      "use weights and config.json of the same model");
      if (!is_float(info.dtype))
        weights_fault(path, place, "this data type is not supported", info.dtype_name, "F32, BF16 or F16");
      found[at->second] = true;
      sources_[at->second] = {f, info};
    }
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!found[i]) missing.push_back(tensors[i].hf_name);
  if (!missing.empty())
    weights_fault(folder, "tensor " + missing.front(),
                  missing.size() == 1 ? "a tensor is missing" : std::to_string(missing.size()) + " tensors are missing",
                  unexpected.empty() ? "" : "names such as " + first_three(unexpected), first_three(missing),
                  "use weights and config.json of the same model, and check that no file is missing");
  if (!unexpected.empty())
    weights_fault(folder, "tensor " + unexpected.front(),
                  unexpected.size() == 1 ? "there is an unexpected tensor"
                                         : std::to_string(unexpected.size()) + " unexpected tensors",
                  first_three(unexpected), "only the tensors of config.json", "use the config.json of these weights");
}

void HfWeights::read_f32(size_t index, std::int64_t first, std::span<float> out) const {
  const Source& s = sources_.at(index);
  files_[s.file]->read_f32(s.info, first, out);
}

void HfWeights::read_bf16(size_t index, std::int64_t first, std::span<std::uint16_t> out) const {
  const Source& s = sources_.at(index);
  if (s.info.dtype == TensorDType::bf16) {
    files_[s.file]->read(s.info, first, static_cast<std::int64_t>(out.size()), std::as_writable_bytes(out));
    return;
  }
  constexpr size_t kChunk = 1 << 16;
  std::vector<float> wide(std::min(out.size(), kChunk));
  for (size_t done = 0; done < out.size(); done += kChunk) {
    const auto part = out.subspan(done, std::min(kChunk, out.size() - done));
    files_[s.file]->read_f32(s.info, first + static_cast<std::int64_t>(done), std::span(wide).first(part.size()));
    std::transform(wide.begin(), wide.begin() + static_cast<std::ptrdiff_t>(part.size()), part.begin(), to_bf16);
  }
}

std::vector<fs::path> weight_files(const fs::path& folder) {
  if (path_exists(folder / kSingle)) return {folder / kSingle};
  std::set<fs::path> files;
  for (const auto& [tensor, shard] : read_index(index_of(folder))) files.insert(folder / shard);
  return {files.begin(), files.end()};
}

model::Config read_config(const fs::path& path) {
  const fs::path folder = is_file(path) ? fs::absolute(path).parent_path() : path;
  const fs::path file = is_file(path) ? path : path / "config.json";
  model::Config config = model::from_hf_config(read_json(file), file.string());
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(folder, ec);  // gives "." and "models/x/" a name
  if (!ec) config.id = whole.filename().string();
  return config;
}

FolderContent compare_folder(const fs::path& folder, const model::TensorInventory& inventory) {
  const auto files = open_files(folder);
  std::map<std::string_view, const model::Tensor*> missing;
  for (const model::Tensor& t : inventory.tensors()) missing.emplace(suffix_of(t), &t);
  std::set<std::string> borrowed = ignored_names(inventory);
  const std::set<std::string> ignored = borrowed;
  const model::Tensor& embed = *inventory.find(model::Role::embed);
  FolderContent content;
  content.files = static_cast<int>(files.size());
  for (const auto& file : files) {
    for (const TensorInfo& info : file->tensors()) {
      const std::string_view name = without_prefix(info.name);
      content.any_f16 |= info.dtype == TensorDType::f16;
      borrowed.erase(std::string(name));
      if (is_tower(info.name) || missing.erase(name) == 0) {
        if (extra_kind(info, ignored, embed) == Extra::unexpected) content.unexpected.push_back(info.name);
        continue;
      }
      if (name == suffix_of(embed)) {
        content.embedding_rows = info.shape.empty() ? 0 : info.shape.front();
        content.prefix = info.name.substr(0, info.name.size() - name.size());
      }
    }
  }
  for (const auto& [name, tensor] : missing) content.missing.push_back(tensor->name);
  content.shared_kv = borrowed.empty();
  return content;
}

namespace {

std::vector<TensorSpec> specs_of(const model::TensorInventory& inventory, TensorDType dtype) {
  std::vector<TensorSpec> specs;
  for (const model::Tensor& tensor : inventory.tensors())
    specs.push_back({"model." + std::string(suffix_of(tensor)), dtype, tensor.hf_shape});
  return specs;
}

}  // namespace

std::uint64_t hf_weights_size(const model::TensorInventory& inventory, TensorDType dtype) {
  return layout_of(specs_of(inventory, dtype), {{"format", "pt"}}, {}).bytes;
}

void write_hf_weights(const fs::path& folder, const model::Config& config, const model::TensorInventory& inventory,
                      const ReadTensor& read, TensorDType dtype) {
  const fs::path file = folder / "model.safetensors";
  if (dtype != TensorDType::f32 && dtype != TensorDType::bf16)
    throw Error("CHECKPOINT", "the data type of the weights is not supported",
                {.file = file.string(), .expected = "f32 or bf16"}, Error::Kind::failed);
  const std::vector<TensorSpec> specs = specs_of(inventory, dtype);
  Json json = model::to_hf_config(config);
  json["dtype"] = dtype == TensorDType::f32 ? "float32" : "bfloat16";
  std::vector<float> values;
  const auto produce = [&](size_t i, const ByteSink& sink) {
    values.resize(static_cast<size_t>(inventory.tensors()[i].elements()));
    read(i, values);
    if (dtype == TensorDType::f32)
      sink(std::as_bytes(std::span(values)));
    else
      write_as_bf16(values, sink);
  };
  write_safetensors(file, specs, produce, {{"format", "pt"}});  // transformers requires the format
  write_file_atomically(folder / "config.json", json.dump(2) + "\n");
}

model::Config model_config(const options::Model& model) {
  if (!model.path.empty()) return read_config(model.path);
  if (model.id.empty())
    throw Error("MISSING", "the experiment has no model",
                {.place = "model.id",
                 .expected = "a catalogue id or a folder",
                 .fix = "set model.id, e.g. --set model.id=gemma3-1b, or model.path"});
  return model::catalogue_config(model.id);
}

}  // namespace mw::formats
