// SPDX-License-Identifier: Apache-2.0
// zarr arrays, versions 2 and 3 (with the sharding codec), as Orbax stores them through tensorstore. Any thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/formats/orbax/kv_store.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {

struct ZarrArray {
  std::string name;  // its keys are "<name>/..."; empty: without a prefix
  int version = 2;
  std::vector<std::int64_t> shape, chunk;
  bool sharded = false;
  std::vector<std::int64_t> inner;  // of a shard's chunks
  DType dtype = DType::f32;
  std::string dtype_name;
  bool zstd = false;  // of chunks, or of a shard's inner ones
  bool index_first = false;
  char separator = '.';
  std::int64_t elements() const;
  std::string chunk_key(const std::vector<std::int64_t>& index) const;
};

// Reads "<name>/.zarray" or "<name>/zarr.json". Throws Error ORBAX for what this reader does not know (named) and for
// sizes that cannot be.
ZarrArray read_zarr(const KvStore& store, const std::string& name);
// All values in C order, little-endian, elements() * size_of(dtype) bytes. A chunk that is not there is an error:
// Orbax writes all of them.
Blob read_values(const KvStore& store, const ZarrArray& array);
std::vector<float> read_floats(const KvStore& store, const ZarrArray& array);  // f32, bf16, f16, f64

}  // namespace mw::formats
