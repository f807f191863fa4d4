// SPDX-License-Identifier: GPL-3.0-or-later
// Builds OCDBT databases byte by byte, with checksums (tensorstore kvstore/ocdbt/index.rst), for structures that
// orbax-checkpoint writes only for large checkpoints or never.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/orbax/bytes.h"

namespace mw::formats::ocdbt_bytes {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

inline std::string checksum(std::string_view bytes) {
  return little(crc32c(std::as_bytes(std::span(bytes))), 4);
}

enum class Of { manifest, node };
// The frame of an uncompressed blob.
inline std::string framed(Of what, std::string_view body) {
  const std::string magic = what == Of::manifest ? "\x0c\xdb\x3a\x2a" : "\x0c\xdb\x20\xde";
  const std::string rest = varint(0) + varint(0) + std::string(body);
  const std::string out = magic + little(4 + 8 + rest.size() + 4, 8) + rest;
  return out + checksum(out);
}

// Names without shared prefixes.
inline std::string names(const std::vector<std::string>& all, const std::string& column_between = {}) {
  std::string prefixes, suffixes, rest;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) prefixes += varint(0);
    suffixes += varint(all[i].size());
    rest += all[i];
  }
  return prefixes + suffixes + column_between + rest;
}

inline std::string files(const std::vector<std::string>& paths) {
  std::string bases;
  for (size_t i = 0; i < paths.size(); ++i) bases += varint(0);
  return varint(paths.size()) + (paths.empty() ? "" : names(paths, bases));
}

struct Ref {  // a node; in the first file
  std::uint64_t offset = 0, length = 0;
};

inline std::string head(char kind) {
  return std::string(16, 'u') + kind + varint(100) + varint(1 << 20) + '\x04' + varint(0);
}

// A manifest with one version whose root is in `file`.
inline std::string manifest(const std::string& file, Ref root, int height) {
  return head(0) + files({file}) + varint(1) + varint(7) + static_cast<char>(height) + varint(0) + varint(root.offset) +
         varint(root.length) + varint(1) + varint(1) + varint(1) + little(0, 8) + varint(0);
}

inline std::string numbered_manifest() {  // the versions lie beside it
  return head(1);
}

struct Leaf {
  std::string key, value;  // inline
};
inline std::string leaves(const std::vector<Leaf>& all) {
  std::vector<std::string> keys;
  std::string lengths, kinds, values;
  for (const Leaf& leaf : all) {
    keys.push_back(leaf.key);
    lengths += varint(leaf.value.size());
    kinds += '\0';
    values += leaf.value;
  }
  return std::string(1, '\0') + files({}) + varint(all.size()) + names(keys) + lengths + kinds + values;
}

struct Child {
  std::string key;           // of the first below, relative
  std::uint64_t shared = 0;  // of its beginning, by all below
  Ref node;
};
inline std::string interior(int height, const std::string& file, const std::vector<Child>& all) {
  std::vector<std::string> keys;
  std::string shared, ids, offsets, lengths, statistics;
  for (const Child& child : all) {
    keys.push_back(child.key);
    shared += varint(child.shared);
    ids += varint(0);
    offsets += varint(child.node.offset);
    lengths += varint(child.node.length);
    statistics += varint(1);
  }
  return std::string(1, static_cast<char>(height)) + files({file}) + varint(all.size()) + names(keys, shared) + ids +
         offsets + lengths + statistics + statistics + statistics;
}

}  // namespace mw::formats::ocdbt_bytes
