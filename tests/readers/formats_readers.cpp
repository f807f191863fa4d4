// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of models and adapters.
#include <cstring>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/peft/peft_adapter.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/readers/tiny_model.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace formats;
using Texts = std::vector<std::string>;

void json_text(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  if (which == 0)
    parse_json(rest, "text");
  else
    parse_sorted_json(rest, "text");
}
Texts json_seeds() {
  return {"0{\"a\":[1,2.5e3,-4,null,true],\"b\":{\"c\":\"\\u00e9\\n\"}}", "1[[],{},\"\xc3\xa9\"]", "0 1"};
}

void safetensors(std::string_view bytes) {
  static const Scratch scratch;
  const SafetensorsFile file(scratch.put("x.safetensors", bytes));
  std::vector<float> values;
  for (const TensorInfo& t : file.tensors()) {
    if (t.elements() > static_cast<std::int64_t>(bytes.size())) continue;  // more elements than bytes
    values.resize(static_cast<size_t>(t.elements()));
    if (t.dtype != TensorDType::other) file.read_f32(t, 0, values);
  }
}
Texts safetensors_seeds() {
  Texts seeds;
  for (const char* header :
       {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
        R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"F64","shape":[0],"data_offsets":[2,2]},)"
        R"("c":{"dtype":"I8","shape":[6],"data_offsets":[2,8]}})"})
    seeds.push_back(ocdbt_bytes::little(std::strlen(header), 8) + header + std::string(8, '\1'));
  return seeds;
}

void hf_config(std::string_view bytes) {
  static const Scratch scratch;
  const model::Config config = read_config(scratch.put("config.json", bytes));
  if (config.layers.size() <= 64) const model::TensorInventory inventory(config);
}
Texts hf_config_seeds() {
  Texts seeds;
  for (const char* name :
       {"gemma2_tiny", "gemma3_tiny", "gemma3_tiny_gqa", "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"})
    seeds.push_back(fixture(std::string(name) + "/config.json"));
  seeds.push_back(fixture("gemma3_tiny_gqa/config_old_style.json"));
  seeds.push_back(
      R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":128,)"
      R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,"rms_norm_eps":1e-5})");
  return seeds;
}

// Two shards with one tensor each.
void hf_index(std::string_view bytes) {
  static const Scratch scratch;
  static const bool kMade = [] {
    for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
      scratch.put(name, safetensors_seeds()[name[10] == '1' ? 0 : 1]);
    return true;
  }();
  (void)kMade;
  scratch.put("model.safetensors.index.json", bytes);
  for (const fs::path& file : weight_files(scratch.path()))
    if (*file.lexically_normal().lexically_relative(scratch.path()).begin() == "..")
      std::abort();  // outside the folder
  compare_folder(scratch.path(), tiny());
}
Texts hf_index_seeds() {
  return {R"({"metadata":{"total_size":16},"weight_map":{"a":"model-00001-of-00002.safetensors"}})",
          R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"../model-00002-of-00002.safetensors"}})",
          R"({"weight_map":{"model.embed_tokens.weight":"./model-00002-of-00002.safetensors"}})"};
}

// One module per layer, so that the adapter has only a few thousand bytes.
const std::pair<std::string, std::string>& small_adapter() {  // config, weights
  static const auto kAdapter = [] {
    const Scratch scratch;
    PeftAdapter adapter{.rank = 1, .alpha = 2, .base_model = "tiny", .targets = {"k_proj"}};
    for (const model::LoraTarget& target : tiny().lora_targets())
      if (target.role == model::Role::k_proj)
        adapter.modules.push_back({target, 1, 2, std::vector<float>(static_cast<size_t>(target.in), 0.5f),
                                   std::vector<float>(static_cast<size_t>(target.out), 0.25f)});
    write_peft(scratch.path(), adapter, tiny());
    return std::pair(read_file(scratch / "adapter_config.json"), read_file(scratch / "adapter_model.safetensors"));
  }();
  return kAdapter;
}

void peft_config(std::string_view bytes) {
  static const Scratch scratch;
  static const fs::path kWeights = scratch.put("adapter_model.safetensors", small_adapter().second);
  scratch.put("adapter_config.json", bytes);
  read_peft(scratch.path(), tiny());
}
Texts peft_config_seeds() {
  Texts seeds{small_adapter().first};
  for (const char* name : {"lora_patterns", "lora_rslora"})
    seeds.push_back(fixture(std::string("gemma3_tiny_gqa/") + name + "/adapter_config.json"));
  seeds.push_back(fixture("dora_tiny/adapter_config.json"));
  return seeds;
}
void peft_weights(std::string_view bytes) {
  static const Scratch scratch;
  static const fs::path kConfig =
      scratch.put("adapter_config.json", R"({"peft_type":"LORA","r":1,"lora_alpha":2,"target_modules":["k_proj"]})");
  scratch.put("adapter_model.safetensors", bytes);
  read_peft(scratch.path(), tiny());
}
Texts peft_weights_seeds() {
  return {small_adapter().second, safetensors_seeds().front()};
}

void peft_pattern(std::string_view bytes) {
  const size_t half = bytes.size() / 2;
  const PeftPatterns patterns({{std::string(bytes.substr(0, half)), 2}}, "adapter_config.json", "rank_pattern");
  patterns.resolve(std::string(bytes.substr(half)), 1);
}
Texts peft_pattern_seeds() {
  return {"q_proj layers.1.q_proj", "layers\\.[0-3]\\..*(q|v)_projmodel.layers.2.self_attn.q_proj",
          "(a+)+$aaaaaaaaaaaa"};
}

}  // namespace

Reader json_reader() {
  return {"json", json_text, json_seeds};
}
Reader safetensors_reader() {
  return {"safetensors", safetensors, safetensors_seeds};
}
Reader hf_config_reader() {
  return {"hf_config", hf_config, hf_config_seeds};
}
Reader hf_index_reader() {
  return {"hf_index", hf_index, hf_index_seeds};
}
Reader peft_config_reader() {
  return {"peft_config", peft_config, peft_config_seeds};
}
Reader peft_weights_reader() {
  return {"peft_weights", peft_weights, peft_weights_seeds};
}
Reader peft_pattern_reader() {
  return {"peft_pattern", peft_pattern, peft_pattern_seeds, 512};
}

std::vector<Reader> formats_readers() {
  return {json_reader(),        safetensors_reader(),  hf_config_reader(),   hf_index_reader(),
          peft_config_reader(), peft_weights_reader(), peft_pattern_reader()};
}

}  // namespace mw::readers
