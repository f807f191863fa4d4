// SPDX-License-Identifier: GPL-3.0-or-later
// Models, adapters, Orbax, results and logs of others.
#include <cstring>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/formats/bench_import.h"
#include "core/formats/checkpoint.h"
#include "core/formats/csv.h"
#include "core/formats/logs/run_log.h"
#include "core/formats/orbax/ocdbt_format.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/peft_patterns.h"
#include "core/formats/tunix_adapter.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace formats;
using Texts = std::vector<std::string>;

std::span<const std::byte> raw(std::string_view bytes) {
  return std::as_bytes(std::span(bytes));
}

// Lists of two entries at most: the shape of a large file in a small one.
Json shortened(const Json& json) {
  if (!json.is_structured()) return json;
  Json out = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_object())
      out[key] = shortened(value);
    else if (out.size() < 2)
      out.push_back(shortened(value));
  }
  return out;
}

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
    if (t.elements() > static_cast<std::int64_t>(bytes.size())) continue;  // of no bytes at all
    values.resize(static_cast<size_t>(t.elements()));
    if (t.dtype != DType::other) file.read_f32(t, 0, values);
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

const model::TensorInventory& tiny() {
  static const model::TensorInventory kTiny(read_config(fs::path(MW_FIXTURES) / "gemma3_tiny"));
  return kTiny;
}

// Two shards, each with one tensor.
void hf_index(std::string_view bytes) {
  static const Scratch scratch;
  static const bool kMade = [] {
    for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
      scratch.put(name, safetensors_seeds()[name[10] == '1' ? 0 : 1]);
    return true;
  }();
  (void)kMade;
  scratch.put("model.safetensors.index.json", bytes);
  for (const fs::path& file : weight_files(scratch.folder()))
    if (*fs::relative(file, scratch.folder()).begin() == "..") std::abort();  // outside of the folder
  compare_folder(scratch.folder(), tiny());
}
Texts hf_index_seeds() {
  return {R"({"metadata":{"total_size":16},"weight_map":{"a":"model-00001-of-00002.safetensors"}})",
          R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"../model-00002-of-00002.safetensors"}})",
          R"({"weight_map":{"model.embed_tokens.weight":"./model-00002-of-00002.safetensors"}})"};
}

// One module a layer, so that a whole adapter has a few thousand bytes.
const std::pair<std::string, std::string>& small_adapter() {  // config, weights
  static const auto kAdapter = [] {
    const Scratch scratch;
    Adapter adapter{.rank = 1, .alpha = 2, .base_model = "tiny", .targets = {"k_proj"}};
    for (const model::LoraTarget& target : tiny().lora_targets())
      if (target.role == model::Role::k_proj)
        adapter.modules.push_back({target, 1, 2, std::vector<float>(static_cast<size_t>(target.in), 0.5f),
                                   std::vector<float>(static_cast<size_t>(target.out), 0.25f)});
    write_peft(scratch.folder(), adapter, tiny());
    return std::pair(read_file(scratch / "adapter_config.json"), read_file(scratch / "adapter_model.safetensors"));
  }();
  return kAdapter;
}

void peft_config(std::string_view bytes) {
  static const Scratch scratch;
  static const fs::path kWeights = scratch.put("adapter_model.safetensors", small_adapter().second);
  scratch.put("adapter_config.json", bytes);
  read_peft(scratch.folder(), tiny());
}
Texts peft_config_seeds() {
  Texts seeds{small_adapter().first};
  for (const char* name : {"lora_patterns", "lora_rslora"})
    seeds.push_back(fixture(std::string("gemma3_tiny_gqa/") + name + "/adapter_config.json"));
  return seeds;
}
void peft_weights(std::string_view bytes) {
  static const Scratch scratch;
  static const fs::path kConfig =
      scratch.put("adapter_config.json", R"({"peft_type":"LORA","r":1,"lora_alpha":2,"target_modules":["k_proj"]})");
  scratch.put("adapter_model.safetensors", bytes);
  read_peft(scratch.folder(), tiny());
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

void orbax_manifest(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  const std::string blob = which == 0 ? ocdbt_bytes::framed(ocdbt_bytes::Of::manifest, rest) : std::string(rest);
  ocdbt::parse_manifest(raw(blob), "manifest.ocdbt");
}
Texts orbax_manifest_seeds() {
  Texts seeds;
  for (const std::string& blob : fixtures_called("orbax", "manifest.ocdbt")) seeds.push_back("1" + blob);
  seeds.push_back("0" + ocdbt_bytes::manifest("d/node", {0, 100}, 1));
  seeds.push_back("0" + ocdbt_bytes::numbered_manifest());
  return seeds;
}

void orbax_node(std::string_view bytes) {
  const std::string blob = ocdbt_bytes::framed(ocdbt_bytes::Of::node, bytes);
  ocdbt::parse_node(raw(blob), "d/node", "node", 1 << 20);
}
Texts orbax_node_seeds() {
  return {ocdbt_bytes::leaves({{"a/.zarray", "{}"}, {"a/0", "1234"}}),
          ocdbt_bytes::interior(1, "d/node", {{"a/0", 2, {0, 10}}, {"b/0", 0, {10, 20}}})};
}

// Nodes in one data file, each behind two bytes of length; the first is the root.
void orbax_database(std::string_view bytes) {
  static const Scratch scratch;
  const auto [which, all] = choose(bytes, 4);
  std::string data;
  size_t root = 0;
  for (std::string_view rest = all; rest.size() > 2;) {
    const size_t n = std::min(rest.size() - 2, static_cast<size_t>(static_cast<unsigned char>(rest[0])) |
                                                   static_cast<size_t>(static_cast<unsigned char>(rest[1])) << 8);
    data += ocdbt_bytes::framed(ocdbt_bytes::Of::node, rest.substr(2, n));
    if (root == 0) root = data.size();
    rest.remove_prefix(2 + n);
  }
  scratch.put("d/node", data);
  scratch.put("manifest.ocdbt",
              ocdbt_bytes::framed(ocdbt_bytes::Of::manifest,
                                  ocdbt_bytes::manifest("d/node", {0, root}, static_cast<int>(which))));
  const auto store = open_ocdbt(scratch.folder());
  for (const std::string& key : store->keys()) KvStore::read(*store->find(key));
  const OrbaxTree tree(scratch.folder());
}
Texts orbax_database_seeds() {
  using namespace ocdbt_bytes;
  const auto piece = [](const std::string& node) { return little(node.size(), 2) + node; };
  const auto frame = [](const std::string& node) { return framed(Of::node, node).size(); };
  const std::string metadata =
      R"({"chunks":[2],"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","shape":[2],)"
      R"("zarr_format":2})";
  const std::string a = leaves({{".zarray", metadata}, {"0", "12345678"}}), b = leaves({{"c", "5"}});
  std::string root = interior(1, "d/node", {{"a/.zarray", 2, {100, 200}}, {"b/c", 2, {200, 201}}});
  for (int pass = 0; pass < 3; ++pass) {  // offsets change lengths
    const std::uint64_t at = frame(root);
    root = interior(1, "d/node", {{"a/.zarray", 2, {at, frame(a)}}, {"b/c", 2, {at + frame(a), frame(b)}}});
  }
  return {std::string(1, '\0') + piece(a), std::string(1, '\1') + piece(root) + piece(a) + piece(b)};
}

class Values : public KvStore {
 public:
  std::map<std::string, std::string> values;
  const fs::path& folder() const override { return folder_; }
  std::vector<std::string> keys() const override {
    std::vector<std::string> all;
    for (const auto& [key, value] : values) all.push_back(key);
    return all;
  }
  std::optional<StoredValue> find(const std::string& key) const override {
    const auto at = values.find(key);
    if (at == values.end()) return std::nullopt;
    const auto bytes = raw(at->second);
    return StoredValue{.file = {}, .offset = 0, .length = bytes.size(), .bytes = Blob(bytes.begin(), bytes.end())};
  }

 private:
  fs::path folder_ = "store";
};

// Metadata up to the first line's end, then the chunk, which is every chunk of the first few. Of version 3 the index of
// a shard gets its checksum: it is 16 bytes an inner chunk, and whoever changes it would not get past that.
void zarr(std::string_view bytes, const char* metadata, bool fix_index) {
  Values store;
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  store.values[metadata] = bytes.substr(0, end);
  const ZarrArray array = read_zarr(store, "");
  std::string chunk(bytes.substr(std::min(end + 1, bytes.size())));
  if (fix_index && array.sharded && chunk.size() >= 4) {
    size_t n = 16;
    for (size_t d = 0; d < array.chunk.size(); ++d) n *= static_cast<size_t>(array.chunk[d] / array.inner[d]);
    if (n + 4 <= chunk.size() && n < (1 << 20)) {
      const size_t at = array.index_first ? 0 : chunk.size() - n - 4;
      chunk.replace(at + n, 4, ocdbt_bytes::checksum(std::string_view(chunk).substr(at, n)));
    }
  }
  const std::vector<std::int64_t> origin(array.shape.size(), 0);
  store.values[array.chunk_key(origin)] = chunk;
  for (size_t d = 0; d < origin.size(); ++d) {
    std::vector<std::int64_t> at = origin;
    at[d] = 1;
    store.values[array.chunk_key(at)] = chunk;
  }
  if (array.dtype == DType::f32 || array.dtype == DType::bf16)
    read_floats(store, array);
  else
    read_values(store, array);
}
void zarr2(std::string_view bytes) {
  zarr(bytes, ".zarray", false);
}
std::string one_line(const std::string& json) {
  return Json::parse(json).dump() + "\n";
}
Texts zarr2_seeds() {
  Texts seeds;
  for (const char* array : {"layers.0.attn.q_einsum.w_lora_a.value", "zeros"}) {
    const std::string folder = std::string("orbax/files/") + array;
    seeds.push_back(one_line(fixture(folder + "/.zarray")) + fixture(folder + "/0.0"));
  }
  seeds.push_back(R"({"chunks":[2,1],"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C",)"
                  "\"shape\":[3,2],\"zarr_format\":2}\n12345678");
  return seeds;
}
void zarr3(std::string_view bytes) {
  zarr(bytes, "zarr.json", true);
}
Texts zarr3_seeds() {
  Texts seeds;
  for (const char* array : {"layers.0.attn.q_einsum.w_lora_a.value", "zeros"}) {
    const std::string folder = std::string("orbax/files_zarr3/") + array;
    seeds.push_back(one_line(fixture(folder + "/zarr.json")) + fixture(folder + "/c/0/0"));
  }
  seeds.push_back(one_line(fixture("orbax/files_zarr3/scale/zarr.json")) + fixture("orbax/files_zarr3/scale/c"));
  return seeds;
}

void zstd(std::string_view bytes) {
  unzstd(raw(bytes), 1 << 16, "file", "chunk");
}
Texts zstd_seeds() {
  Texts seeds;
  for (const char* file : {"zeros/0.0", "scale/0", "layers.0.attn.q_einsum.w_lora_a.value/0.0"})
    seeds.push_back(fixture(std::string("orbax/files/") + file));
  return seeds;
}

// One file of a good checkpoint of two arrays, without a database.
std::string two_arrays() {
  Json metadata = Json::parse(fixture("orbax/files/_METADATA"));
  Json few = Json::object();
  for (const auto& [key, value] : metadata["tree_metadata"].items())
    if (key == "('scale',)" || key == "('zeros',)") few[key] = value;
  metadata["tree_metadata"] = few;
  return metadata.dump();
}
void orbax_folder(std::string_view bytes) {
  static const char* const kFiles[] = {"_METADATA", "_CHECKPOINT_METADATA", "scale/.zarray", "zeros/0.0"};
  static const Texts good{two_arrays(), fixture("orbax/files/_CHECKPOINT_METADATA"),
                          fixture("orbax/files/scale/.zarray"), fixture("orbax/files/zeros/0.0")};
  static const Scratch scratch;
  static const bool kMade = [] {
    for (size_t i = 0; i < std::size(kFiles); ++i) scratch.put(kFiles[i], good[i]);
    for (const char* file : {"scale/0", "zeros/.zarray", "commit_success.txt"})
      scratch.put(file, fixture(std::string("orbax/files/") + file));
    return true;
  }();
  (void)kMade;
  const auto [which, rest] = choose(bytes, std::size(kFiles));
  static size_t last = 0;
  if (last != which) scratch.put(kFiles[last], good[last]);
  scratch.put(kFiles[which], rest);
  last = which;
  const OrbaxTree tree(open_orbax(scratch.folder()).steps.front().items.front().folder);
  for (const ZarrArray& array : tree.arrays()) tree.read_values(array);
}
Texts orbax_folder_seeds() {
  return {"0" + fixture("orbax/files/_METADATA"), "0" + two_arrays(), "1" + fixture("orbax/files/_CHECKPOINT_METADATA"),
          "2" + fixture("orbax/files/scale/.zarray"), "3" + fixture("orbax/files/zeros/0.0")};
}

// The arrays of a module called so, of the tiny model's MLP (40 in, 52 out), in place of those of another name.
void put_module(const Scratch& scratch, const std::string& name, const std::string& before) {
  static const fs::path kMetadata = scratch.put("item/_METADATA", R"({"tree_metadata":{}})");
  const struct {
    const char *end, *shape, *chunk;
    size_t bytes;
  } arrays[] = {{"_lora_a", "[40,2]", "/0.0", 320}, {"_lora_b", "[2,52]", "/0.0", 416}};
  for (const auto& array : arrays) {
    const std::string from = "item/" + before + array.end, to = "item/" + name + array.end;
    std::error_code error;
    if (name.size() < 4) {
      fs::remove_all(scratch.folder() / from, error);
      continue;
    }
    fs::rename(scratch.folder() / from, scratch.folder() / to, error);
    if (!error) continue;
    const std::string shape = array.shape;
    scratch.put(to + "/.zarray",
                R"({"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","zarr_format":2,)"
                R"("chunks":)" +
                    shape + ",\"shape\":" + shape + "}");
    scratch.put(to + array.chunk, std::string(array.bytes, '\0'));
  }
}

// What Tunix wrote, as one array of a store of plain files and its step's metadata: names, shapes, alpha.
void tunix(std::string_view bytes) {
  static const Scratch scratch;
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  scratch.put("_CHECKPOINT_METADATA", bytes.substr(0, end));
  std::string name(bytes.substr(std::min(end + 1, bytes.size()), 64));
  std::erase_if(name, [](char c) { return c == '/' || c == '\0'; });
  static std::string last = "none yet";
  if (name != last) put_module(scratch, name, last);
  last = name;
  read_tunix_adapter(scratch.folder(), tiny(), std::nullopt);
}
Texts tunix_seeds() {
  return {one_line(fixture("orbax/tunix_run/2/_CHECKPOINT_METADATA")) + "layers.0.attn.q_einsum.w",
          one_line(R"({"custom_metadata":{"lora_alpha":8.0}})") + "x.layers.1.mlp.gate_proj.kernel"};
}

void bench(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("result.json", bytes);
  bench_kind(file);
  for (const BenchSet& set : read_bench(file)) bench_set(to_json(set, Detail::requests));
}
Texts bench_seeds() {
  Texts seeds;
  for (const char* name : {"vllm_plain.json", "vllm_old.json", "vllm_detailed.json"})
    seeds.push_back(fixture(std::string("bench/") + name));
  for (const char* name : {"guidellm_constant.json", "guidellm_failing.json", "llama_bench.json"})
    seeds.push_back(shortened(Json::parse(fixture(std::string("bench/") + name))).dump());
  seeds.push_back(fixture("bench/llama_bench.csv"));
  for (const char* name : {"vllm_appended.json", "llama_bench.jsonl"}) {
    std::istringstream lines(fixture(std::string("bench/") + name));
    std::string line, two;
    for (int i = 0; i < 2 && std::getline(lines, line); ++i) two += shortened(Json::parse(line)).dump() + "\n";
    seeds.push_back(two);
  }
  seeds.push_back("request_rate,output_throughput,mean_ttft_ms,completed\n1,2.5,3,4\ninf,5,,7\n");
  return seeds;
}

void csv(std::string_view bytes) {
  read_csv(bytes, "file.csv");
}
Texts csv_seeds() {
  return {"a,b\n1,2\n", "\"a\"\"x\",b\r\n\"1\n2\",\"\"\r\n", fixture("bench/llama_bench.csv")};
}

void log_file(std::string_view bytes, const char* name) {
  static const Scratch scratch;
  read_log(scratch.put(name, bytes));
}
void trainer_state(std::string_view bytes) {
  log_file(bytes, "trainer_state.json");
}
Texts trainer_state_seeds() {
  Texts seeds = fixtures_called("logs", "trainer_state.json");
  seeds.push_back(R"({"log_history":[{"step":1,"loss":NaN,"lr":1e-3},{"train_runtime":-Infinity}],"max_steps":2})");
  return seeds;
}
void training_run(std::string_view bytes) {
  log_file(bytes, "training_run.json");
}
Texts training_run_seeds() {
  return {R"({"training":{"loss":[1,2],"loss_mean":1.5},"eval":{"loss":[3]},"hardware":{"chips":8},)"
          R"("wall_time_seconds":12.5,"is_final":true,"config":{"lr":1e-3},"model_info":null})"};
}

std::string masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(raw(bytes));
  return ocdbt_bytes::little(((crc >> 15) | (crc << 17)) + 0xa282ead8u, 4);
}
// Records behind two bytes of length, framed here with their checksums; or the file as it is.
void tensorboard(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  if (which == 1) return log_file(rest, "events.out.tfevents.1");
  std::string file;
  for (std::string_view left = rest; left.size() > 2;) {
    const size_t n = std::min(left.size() - 2, static_cast<size_t>(static_cast<unsigned char>(left[0])) |
                                                   static_cast<size_t>(static_cast<unsigned char>(left[1])) << 8);
    const std::string length = ocdbt_bytes::little(n, 8);
    const std::string_view record = left.substr(2, n);
    file += length + masked(length) + std::string(record) + masked(record);
    left.remove_prefix(2 + n);
  }
  log_file(file, "events.out.tfevents.1");
}
Texts tensorboard_seeds() {
  Texts seeds;
  for (const char* file :
       {"tensorboardx/events.out.tfevents.1795302143.vm", "tensors/events.out.tfevents.1795302143.vm.9184.0"}) {
    const std::string all = fixture(std::string("logs/") + file);
    std::string records(1, '\0');
    for (size_t at = 0; at + 16 <= all.size();) {
      const size_t n =
          static_cast<unsigned char>(all[at]) | static_cast<size_t>(static_cast<unsigned char>(all[at + 1])) << 8;
      records += all.substr(at, 2) + all.substr(at + 12, n);
      at += 16 + n;
    }
    seeds.push_back(records);
    seeds.push_back("1" + all);
  }
  return seeds;
}

// Chunks: a type, two bytes of length, content; framed here, or the file as it is.
std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320 : 0);
  }
  return ~crc;
}
void event_log(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path file = scratch.put("events.jsonl", bytes);
  if (log_kind(file) == LogKind::events) series_of(read_log(file));
}
Texts event_log_seeds() {
  return {
      "{\"event\":\"started\",\"info\":{\"steps\":3,\"name\":\"x\"}}\n"
      "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":2.5,\"time_s\":1}\nno event\n"
      "{\"event\":\"finished\",\"state\":\"done\",\"seconds\":5}\n"};
}

void wandb(std::string_view bytes) {
  const auto [which, rest] = choose(bytes, 2);
  if (which == 1) return log_file(rest, "run.wandb");
  std::string file = ":W&B" + std::string("\xe1\xbe\0", 3);
  for (std::string_view left = rest; left.size() > 3;) {
    const size_t n = std::min(left.size() - 3, static_cast<size_t>(static_cast<unsigned char>(left[1])) |
                                                   static_cast<size_t>(static_cast<unsigned char>(left[2])) << 8);
    const std::string chunk = left[0] + std::string(left.substr(3, n));
    file += ocdbt_bytes::little(crc32_of(chunk), 4) + ocdbt_bytes::little(n, 2) + chunk;
    left.remove_prefix(3 + n);
  }
  log_file(file, "run.wandb");
}
Texts wandb_seeds() {
  const std::string all = fixture("logs/wandb/run-fixture.wandb");
  std::string chunks(1, '\0');
  for (size_t at = 7; at + 7 <= all.size();) {
    const size_t n =
        static_cast<unsigned char>(all[at + 4]) | static_cast<size_t>(static_cast<unsigned char>(all[at + 5])) << 8;
    chunks += all.substr(at + 6, 1) + all.substr(at + 4, 2) + all.substr(at + 7, n);
    at += 7 + n;
  }
  return {chunks, "1" + all};
}

}  // namespace

std::vector<Reader> formats_readers() {
  return {{"json", json_text, json_seeds},
          {"safetensors", safetensors, safetensors_seeds},
          {"hf_config", hf_config, hf_config_seeds},
          {"hf_index", hf_index, hf_index_seeds},
          {"peft_config", peft_config, peft_config_seeds},
          {"peft_weights", peft_weights, peft_weights_seeds},
          {"peft_pattern", peft_pattern, peft_pattern_seeds, 512},
          {"orbax_manifest", orbax_manifest, orbax_manifest_seeds},
          {"orbax_node", orbax_node, orbax_node_seeds},
          {"orbax_database", orbax_database, orbax_database_seeds},
          {"zarr2", zarr2, zarr2_seeds},
          {"zarr3", zarr3, zarr3_seeds},
          {"zstd", zstd, zstd_seeds},
          {"orbax_folder", orbax_folder, orbax_folder_seeds},
          {"tunix", tunix, tunix_seeds},
          {"bench", bench, bench_seeds},
          {"csv", csv, csv_seeds},
          {"trainer_state", trainer_state, trainer_state_seeds},
          {"training_run", training_run, training_run_seeds},
          {"tensorboard", tensorboard, tensorboard_seeds},
          {"event_log", event_log, event_log_seeds},
          {"wandb", wandb, wandb_seeds}};
}

}  // namespace mw::readers
