// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/zarr.h"

#include <algorithm>
#include <cstring>

#include "core/base/json.h"

namespace mw::formats {
namespace {

constexpr std::uint64_t kMostZarray = 1 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
// Limit of the compression ratio; zeros (an untrained lora_b) compress best.
constexpr std::uint64_t kMostRatio = 1 << 16;

[[noreturn]] void fail(const KvStore& store, const std::string& place, const std::string& message,
                       const std::string& found = "", const std::string& expected = "", const std::string& fix = "") {
  fail_orbax(store.folder(), message, found, expected, fix, place);
}

struct ZarrType {
  const char *v2, *v3;
  TensorDType dtype;
};
constexpr ZarrType kTypes[] = {{"<f4", "float32", TensorDType::f32}, {"bfloat16", "bfloat16", TensorDType::bf16},
                               {"<f2", "float16", TensorDType::f16}, {"<f8", "float64", TensorDType::f64},
                               {"<i8", "int64", TensorDType::i64},   {"<i4", "int32", TensorDType::i32},
                               {"<i2", "int16", TensorDType::i16},   {"|i1", "int8", TensorDType::i8},
                               {"|u1", "uint8", TensorDType::u8},    {"|b1", "bool", TensorDType::boolean}};

const Json& at(const KvStore& store, const std::string& place, const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) fail(store, place, "a required key is missing", "", key);
  return object.at(key);
}

Json value_or(const KvStore& store, const std::string& place, const Json& object, const char* key, Json otherwise) {
  if (!object.is_object()) fail(store, place, "wrong type", object.type_name(), std::string("an object with ") + key);
  return object.value(key, std::move(otherwise));
}

std::vector<std::int64_t> sizes(const KvStore& store, const std::string& place, const Json& list, std::int64_t least) {
  std::vector<std::int64_t> all;
  if (!list.is_array() || list.size() > 32)
    fail(store, place, "the value is not a shape", list.dump().substr(0, 60), "a list of sizes");
  for (const Json& size : list) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < least || size.get<std::int64_t>() > kMostBytes)
      fail(store, place, "the value is not a valid size", size.dump().substr(0, 60),
           std::to_string(least) + " or more");
    all.push_back(size.get<std::int64_t>());
  }
  return all;
}

std::string text(const KvStore& store, const std::string& place, const Json& value) {
  if (!value.is_string()) fail(store, place, "wrong type", value.type_name(), "text");
  return value.get<std::string>();
}

std::int64_t product(const KvStore& store, const std::string& place, const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) {
    if (size > 0 && n > kMostBytes / size) fail(store, place, "the shape is too large");
    n *= size;
  }
  return n;
}

void set_type(const KvStore& store, const std::string& place, const std::string& name, ZarrArray& array) {
  array.dtype_name = name;
  array.dtype = TensorDType::other;
  for (const ZarrType& t : kTypes)
    if (name == (array.version == 2 ? t.v2 : t.v3)) array.dtype = t.dtype;
  if (array.dtype == TensorDType::other)
    fail(store, place, "the data type is not supported", name, "float32, bfloat16, float16, float64 or integers");
}

// Codecs of version 3, in order: bytes, optionally followed by zstd.
void read_codecs(const KvStore& store, const std::string& place, const Json& codecs, ZarrArray& array) {
  if (!codecs.is_array() || codecs.empty()) fail(store, place, "the list of codecs is empty");
  for (const Json& codec : codecs) {
    const std::string name = text(store, place, at(store, place, codec, "name"));
    const Json configuration = value_or(store, place, codec, "configuration", Json::object());
    if (name == "bytes") {
      if (value_or(store, place, configuration, "endian", "little") != "little")
        fail(store, place, "big-endian values are not supported", configuration.dump());
    } else if (name == "zstd") {
      array.zstd = true;
    } else if (name == "sharding_indexed" && !array.sharded) {
      array.sharded = true;
      array.inner = sizes(store, place, at(store, place, configuration, "chunk_shape"), 1);
      const std::string location = text(store, place, value_or(store, place, configuration, "index_location", "end"));
      if (location != "end" && location != "start") fail(store, place, "unknown index_location", location);
      array.index_first = location == "start";
      const Json& index = at(store, place, configuration, "index_codecs");
      if (!index.is_array() || index.size() != 2 || value_or(store, place, index[1], "name", {}) != "crc32c")
        fail(store, place, "the codecs of the shard index are not supported", index.dump().substr(0, 80),
             "bytes, crc32c");
      read_codecs(store, place, at(store, place, configuration, "codecs"), array);
    } else {
      fail(store, place, "the codec is not supported", name, "bytes, zstd, sharding_indexed");
    }
  }
}

void read_v2(const KvStore& store, const std::string& place, const Json& json, ZarrArray& array) {
  array.version = 2;
  array.shape = sizes(store, place, at(store, place, json, "shape"), 0);
  array.chunk = sizes(store, place, at(store, place, json, "chunks"), 1);
  set_type(store, place, text(store, place, at(store, place, json, "dtype")), array);
  if (at(store, place, json, "order") != "C") fail(store, place, "the memory order is not supported", "F", "C");
  if (!value_or(store, place, json, "filters", {}).is_null()) fail(store, place, "filters are not supported");
  const Json& compressor = at(store, place, json, "compressor");
  if (!compressor.is_null()) {
    if (const std::string id = text(store, place, at(store, place, compressor, "id")); id != "zstd")
      fail(store, place, "the compression is not supported", id, "zstd or none");
    array.zstd = true;
  }
  const std::string separator = text(store, place, value_or(store, place, json, "dimension_separator", "."));
  if (separator != "." && separator != "/") fail(store, place, "unknown dimension_separator", separator, ". or /");
  array.separator = separator[0];
}

void read_v3(const KvStore& store, const std::string& place, const Json& json, ZarrArray& array) {
  array.version = 3;
  array.shape = sizes(store, place, at(store, place, json, "shape"), 0);
  const Json& grid = at(store, place, json, "chunk_grid");
  if (at(store, place, grid, "name") != "regular") fail(store, place, "the chunk grid is not supported");
  array.chunk = sizes(store, place, at(store, place, at(store, place, grid, "configuration"), "chunk_shape"), 1);
  set_type(store, place, text(store, place, at(store, place, json, "data_type")), array);
  const Json& encoding = at(store, place, json, "chunk_key_encoding");
  if (at(store, place, encoding, "name") != "default") fail(store, place, "the chunk key encoding is not supported");
  const std::string separator =
      text(store, place,
           value_or(store, place, value_or(store, place, encoding, "configuration", Json::object()), "separator", "/"));
  if (separator != "." && separator != "/") fail(store, place, "unknown separator", separator, ". or /");
  array.separator = separator[0];
  read_codecs(store, place, at(store, place, json, "codecs"), array);
}

std::string key_of(const std::string& name, const std::string& rest) {
  return name.empty() ? rest : name + "/" + rest;
}

Blob unpack(const KvStore& store, const ZarrArray& a, const std::string& place, Blob stored, size_t wanted) {
  if (a.zstd && wanted > stored.size() * kMostRatio)
    fail(store, place, "the size of a chunk is implausible", std::to_string(stored.size()) + " bytes stored",
         std::to_string(wanted) + " bytes");
  Blob bytes = a.zstd ? unzstd(stored, wanted, store.folder().string(), place) : std::move(stored);
  if (bytes.size() != wanted)
    fail(store, place, "the size of a chunk does not match its shape", std::to_string(bytes.size()) + " bytes",
         std::to_string(wanted) + " bytes");
  return bytes;
}

// Advances to the next index below `extent`, last dimension first; false after the last one.
bool next(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extent) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < extent[d]) return true;
    index[d] = 0;
  }
  return false;
}

// Copies a block of shape `extent` to `origin` in the array, cropped at the array's edges.
void place_block(const ZarrArray& a, const Blob& block, const std::vector<std::int64_t>& origin,
                 const std::vector<std::int64_t>& extent, Blob& out) {
  const size_t rank = a.shape.size(), width = size_of(a.dtype);
  if (rank == 0) return void(std::copy(block.begin(), block.end(), out.begin()));
  std::vector<std::int64_t> rows(extent), row(rank, 0);
  for (size_t d = 0; d < rank; ++d) rows[d] = std::min(extent[d], a.shape[d] - origin[d]);
  const auto run = static_cast<size_t>(rows[rank - 1]) * width;
  rows[rank - 1] = 1;
  do {
    std::int64_t from = 0, to = 0;
    for (size_t d = 0; d < rank; ++d) {
      from = from * extent[d] + row[d];
      to = to * a.shape[d] + origin[d] + row[d];
    }
    std::memcpy(out.data() + static_cast<size_t>(to) * width, block.data() + static_cast<size_t>(from) * width, run);
  } while (next(row, rows));
}

// Reads the inner chunks of a shard. Its index, (offset, length) per chunk and a checksum, is at one end.
void place_shard(const KvStore& store, const ZarrArray& a, const std::string& place, const Blob& shard,
                 const std::vector<std::int64_t>& origin, Blob& out) {
  std::vector<std::int64_t> counts(a.chunk.size());
  for (size_t d = 0; d < counts.size(); ++d) counts[d] = a.chunk[d] / a.inner[d];
  const auto n = static_cast<size_t>(product(store, place, counts));
  if (n > shard.size() / 16 || n * 16 + 4 > shard.size())
    fail(store, place, "the shard is shorter than its index", std::to_string(shard.size()) + " bytes",
         std::to_string(n * 16 + 4) + " bytes or more");
  const std::span<const std::byte> all(shard);
  const auto index = a.index_first ? all.first(n * 16 + 4) : all.last(n * 16 + 4);
  Cursor c(index, store.folder().string(), place + ", index of the shard");
  if (Cursor(index.last(4), store.folder().string(), place).u32() != crc32c(index.first(n * 16)))
    c.fail("the checksum is wrong");
  const auto wanted = static_cast<size_t>(product(store, place, a.inner)) * size_of(a.dtype);
  std::vector<std::int64_t> at(counts.size(), 0);
  do {
    const std::uint64_t offset = c.u64(), length = c.u64();
    std::vector<std::int64_t> corner(origin);
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      corner[d] += at[d] * a.inner[d];
      inside = inside && corner[d] < a.shape[d];
    }
    if (!inside) continue;  // beyond the edge of the array
    if (offset > shard.size() || length > shard.size() - offset)
      fail(store, place, "an inner chunk is missing or outside its shard", std::to_string(offset));
    const auto part = all.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
    place_block(a, unpack(store, a, place, Blob(part.begin(), part.end()), wanted), corner, a.inner, out);
  } while (next(at, counts));
}

// Checks that all chunks exist before memory for the whole array is allocated.
std::uint64_t stored_bytes(const KvStore& store, const ZarrArray& a, const std::vector<std::int64_t>& counts) {
  std::uint64_t total = 0;
  std::vector<std::int64_t> at(counts.size(), 0);
  do {
    const std::string key = a.chunk_key(at);
    const auto value = store.find(key);
    if (!value)
      fail(store, key, "a chunk of the array is missing", "", "all chunks of the array",
           "copy the checkpoint again with all of its folders, ocdbt.process_* included");
    total += value->length;
  } while (next(at, counts));
  return total;
}

}  // namespace

std::int64_t ZarrArray::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

std::string ZarrArray::chunk_key(const std::vector<std::int64_t>& index) const {
  std::string key = version == 3 ? "c" : "";
  for (const std::int64_t i : index) {
    if (!key.empty()) key += separator;
    key += std::to_string(i);
  }
  return key_of(name, key.empty() ? "0" : key);
}

ZarrArray read_zarr(const KvStore& store, const std::string& name) {
  const std::string v2 = key_of(name, ".zarray"), v3 = key_of(name, "zarr.json");
  ZarrArray array;
  array.name = name;
  const auto value2 = store.find(v2);
  const auto value = value2 ? value2 : store.find(v3);
  const std::string& place = value2 ? v2 : v3;
  if (!value) fail(store, name, "the array does not exist", "", v2 + " or " + v3);
  if (value->length > kMostZarray)
    fail(store, place, "the metadata exceeds the size limit", std::to_string(value->length));
  const Blob bytes = KvStore::read(*value);
  const Json json =
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, store.folder().string() + ", " + place);
  if (value2)
    read_v2(store, place, json, array);
  else
    read_v3(store, place, json, array);
  if (array.chunk.size() != array.shape.size() || (array.sharded && array.inner.size() != array.shape.size()))
    fail(store, place, "the numbers of dimensions of shape and chunks differ");
  for (size_t d = 0; d < array.inner.size(); ++d)
    if (array.chunk[d] % array.inner[d] != 0) fail(store, place, "the inner chunks do not divide the shard");
  for (const auto* shape : {&array.shape, &array.chunk})
    if (product(store, place, *shape) > kMostBytes / 8) fail(store, place, "the shape is too large");
  return array;
}

Blob read_values(const KvStore& store, const ZarrArray& a) {
  const size_t rank = a.shape.size(), width = size_of(a.dtype);
  const auto bytes = static_cast<size_t>(a.elements()) * width;
  if (bytes == 0) return {};
  std::vector<std::int64_t> counts(rank);
  for (size_t d = 0; d < rank; ++d) counts[d] = (a.shape[d] + a.chunk[d] - 1) / a.chunk[d];
  const std::uint64_t stored = stored_bytes(store, a, counts);
  if (bytes > stored * (a.zstd ? kMostRatio : 1) + width)
    fail(store, a.name, "the size of the array is implausible", std::to_string(stored) + " bytes stored",
         std::to_string(bytes) + " bytes");
  const auto whole = static_cast<size_t>(product(store, a.name, a.chunk)) * width;
  Blob out(bytes);
  std::vector<std::int64_t> at(rank, 0);
  do {
    const std::string key = a.chunk_key(at);
    Blob chunk = KvStore::read(store.find(key).value());
    std::vector<std::int64_t> origin(rank);
    for (size_t d = 0; d < rank; ++d) origin[d] = at[d] * a.chunk[d];
    if (!a.sharded)
      place_block(a, unpack(store, a, key, std::move(chunk), whole), origin, a.chunk, out);
    else
      place_shard(store, a, key, chunk, origin, out);
  } while (next(at, counts));
  return out;
}

std::vector<float> read_floats(const KvStore& store, const ZarrArray& array) {
  const Blob bytes = read_values(store, array);
  std::vector<float> out(static_cast<size_t>(array.elements()));
  switch (array.dtype) {
    case TensorDType::f32:
    case TensorDType::bf16:
    case TensorDType::f16:
    case TensorDType::f64:
      widen(array.dtype, bytes, out);
      return out;
    default:
      fail(store, array.name, "the array has no floating-point values", array.dtype_name);
  }
}

}  // namespace mw::formats
