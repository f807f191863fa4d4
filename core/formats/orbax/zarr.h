// SPDX-License-Identifier: Apache-2.0
// zarr arrays of version 2 and 3 (with sharding), as written by Orbax through tensorstore. Thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/orbax/kv_store.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {

struct ZarrArray {
  std::string name;  // prefix of its keys: "<name>/..."; may be empty
  int version = 2;
  std::vector<std::int64_t> shape, chunk;
  bool sharded = false;
  std::vector<std::int64_t> inner;  // shape of the chunks within a shard
  TensorDType dtype = TensorDType::f32;
  std::string dtype_name;
  bool zstd = false;  // chunks (inner chunks, if sharded) are compressed
  bool index_first = false;
  char separator = '.';
  std::int64_t elements() const;
  std::string chunk_key(const std::vector<std::int64_t>& index) const;
};

// Reads "<name>/.zarray" or "<name>/zarr.json". Throws ORBAX for unsupported features and invalid sizes.
ZarrArray read_zarr(const KvStore& store, const std::string& name);
// All values, little-endian in C order: elements() * size_of(dtype) bytes. Throws ORBAX if a chunk is missing, because
// Orbax writes all chunks.
Blob read_values(const KvStore& store, const ZarrArray& array);
std::vector<float> read_floats(const KvStore& store, const ZarrArray& array);  // from f32, bf16, f16 or f64

}  // namespace mw::formats
