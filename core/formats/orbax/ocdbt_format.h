// SPDX-License-Identifier: Apache-2.0
// The blobs of an OCDBT database as values: manifest, B+tree nodes (tensorstore kvstore/ocdbt/index.rst, format/*.cc).
// Errors are ORBAX and name file and byte. Thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/orbax/bytes.h"

namespace mw::formats::ocdbt {

struct OcdbtDataFile {
  std::string base, relative;  // path parts; references within a node are relative to its base
};

struct Reference {  // to a node
  OcdbtDataFile file;
  std::uint64_t offset = 0, length = 0;
};

struct Manifest {
  enum class Kind { single, numbered } kind = Kind::single;
  std::optional<Reference> root;  // of the newest version; empty if the database is empty
  int root_height = 0;
};
Manifest parse_manifest(std::span<const std::byte> blob, const std::string& file);

struct LeafEntry {
  std::string key;  // relative to the node's prefix
  bool inlined = false;
  std::uint64_t length = 0, offset = 0;
  OcdbtDataFile file{};
  Blob bytes{};  // the value, if inlined
};
struct InteriorEntry {
  std::string key;        // first key of the subtree, relative to the node's prefix
  std::string subtree{};  // common prefix of all keys of the subtree, relative to the node's prefix
  Reference child;
};
struct Node {
  int height = 0;
  std::vector<LeafEntry> leaves;        // height 0
  std::vector<InteriorEntry> children;  // height above 0
};
// Throws if the decompressed node is longer than `most` bytes.
Node parse_node(std::span<const std::byte> blob, const std::string& file, const std::string& what, std::uint64_t most);

}  // namespace mw::formats::ocdbt
