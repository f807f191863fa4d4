// SPDX-License-Identifier: Apache-2.0
// The blobs of an OCDBT database as values: manifest, B+tree nodes (tensorstore kvstore/ocdbt/index.rst, format/*.cc).
// Pure parsing; throws Error ORBAX naming the file and the byte.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/orbax/bytes.h"

namespace mw::formats::ocdbt {

struct DataFile {
  std::string base, relative;  // below the path that led here; references of a node inherit its base, not its relative
};

struct Reference {  // to a node
  DataFile file;
  std::uint64_t offset = 0, length = 0;
};

struct Manifest {
  enum class Kind { single, numbered } kind = Kind::single;
  std::uint64_t max_node_bytes = 0;  // unpacked, as its writer promises
  std::optional<Reference> root;     // of the newest version; none: the database is empty
  int root_height = 0;
};
Manifest parse_manifest(std::span<const std::byte> blob, const std::string& file);

struct LeafEntry {
  std::string key;  // relative
  bool inlined = false;
  std::uint64_t length = 0, offset = 0;
  DataFile file{};
  Blob bytes{};  // inline
};
struct InteriorEntry {
  std::string key;        // relative, of the first below
  std::string subtree{};  // what all keys below begin with, relative
  Reference child;
};
struct Node {
  int height = 0;
  std::vector<LeafEntry> leaves;        // height 0
  std::vector<InteriorEntry> children;  // else
};
// `most`: bytes that the node may have, unpacked.
Node parse_node(std::span<const std::byte> blob, const std::string& file, const std::string& what, std::uint64_t most);

}  // namespace mw::formats::ocdbt
