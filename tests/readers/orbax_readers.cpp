// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of Orbax checkpoints, from database nodes to Tunix adapters.
#include <map>

#include "core/base/json.h"
#include "core/formats/orbax/kv_store.h"
#include "core/formats/orbax/ocdbt_format.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/readers/tiny_model.h"

namespace mw::readers {
namespace {

namespace fs = std::filesystem;
using namespace formats;
using Texts = std::vector<std::string>;

std::span<const std::byte> raw(std::string_view bytes) {
  return std::as_bytes(std::span(bytes));
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

// Nodes in one data file, each preceded by two bytes of length; the first is the root.
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
  const auto store = open_ocdbt(scratch.path());
  for (const std::string& key : store->keys()) KvStore::read(*store->find(key));
  const OrbaxTree tree(scratch.path());
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

// Metadata in the first line, then one chunk that is used for the first few chunks. For version 3, the index of
// a shard gets a valid checksum, so that mutations reach the code behind it.
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
  if (array.dtype == TensorDType::f32 || array.dtype == TensorDType::bf16)
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

// Replaces one file of a valid checkpoint of two arrays, without a database.
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
  const OrbaxTree tree(open_orbax(scratch.path()).steps.front().items.front().folder);
  for (const ZarrArray& array : tree.arrays()) tree.read_values(array);
}
Texts orbax_folder_seeds() {
  return {"0" + fixture("orbax/files/_METADATA"), "0" + two_arrays(), "1" + fixture("orbax/files/_CHECKPOINT_METADATA"),
          "2" + fixture("orbax/files/scale/.zarray"), "3" + fixture("orbax/files/zeros/0.0")};
}

// Renames the arrays of a module of the tiny model's MLP (40 in, 52 out).
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
      fs::remove_all(scratch.path() / from, error);
      continue;
    }
    fs::rename(scratch.path() / from, scratch.path() / to, error);
    if (!error) continue;
    const std::string shape = array.shape;
    scratch.put(to + "/.zarray",
                R"({"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","zarr_format":2,)"
                R"("chunks":)" +
                    shape + ",\"shape\":" + shape + "}");
    scratch.put(to + array.chunk, std::string(array.bytes, '\0'));
  }
}

// A Tunix checkpoint in plain files with varied names, shapes and alpha.
void tunix(std::string_view bytes) {
  static const Scratch scratch;
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  scratch.put("_CHECKPOINT_METADATA", bytes.substr(0, end));
  std::string name(bytes.substr(std::min(end + 1, bytes.size()), 64));
  std::erase_if(name, [](char c) { return c == '/' || c == '\0'; });
  static std::string last = "none yet";
  if (name != last) put_module(scratch, name, last);
  last = name;
  read_tunix_adapter(scratch.path(), tiny(), std::nullopt);
}
Texts tunix_seeds() {
  return {one_line(fixture("orbax/tunix_run/2/_CHECKPOINT_METADATA")) + "layers.0.attn.q_einsum.w",
          one_line(R"({"custom_metadata":{"lora_alpha":8.0}})") + "x.layers.1.mlp.gate_proj.kernel"};
}

}  // namespace

Reader orbax_manifest_reader() {
  return {"orbax_manifest", orbax_manifest, orbax_manifest_seeds};
}
Reader orbax_node_reader() {
  return {"orbax_node", orbax_node, orbax_node_seeds};
}
Reader orbax_database_reader() {
  return {"orbax_database", orbax_database, orbax_database_seeds};
}
Reader zarr2_reader() {
  return {"zarr2", zarr2, zarr2_seeds};
}
Reader zarr3_reader() {
  return {"zarr3", zarr3, zarr3_seeds};
}
Reader zstd_reader() {
  return {"zstd", zstd, zstd_seeds};
}
Reader orbax_folder_reader() {
  return {"orbax_folder", orbax_folder, orbax_folder_seeds};
}
Reader tunix_reader() {
  return {"tunix", tunix, tunix_seeds};
}

std::vector<Reader> orbax_readers() {
  return {orbax_manifest_reader(), orbax_node_reader(), orbax_database_reader(), zarr2_reader(),
          zarr3_reader(),          zstd_reader(),       orbax_folder_reader(),   tunix_reader()};
}

}  // namespace mw::readers
