// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/ocdbt_format.h"

#include <algorithm>

namespace mw::formats::ocdbt {
namespace {

constexpr std::uint32_t kManifest = 0x0cdb3a2a, kNode = 0x0cdb20de;
constexpr std::uint64_t kMostPath = 65535, kMostEntries = 1 << 20, kMissing = UINT64_MAX;
constexpr std::uint64_t kMostManifest = 64 << 20;
// Strings share prefixes with the previous one; this limits their total size relative to the encoded size.
constexpr std::uint64_t kSharing = 256;

struct Body {
  std::span<const std::byte> plain;
  Blob unpacked;
  std::span<const std::byte> bytes() const { return unpacked.empty() ? plain : unpacked; }
};

Body open_envelope(std::span<const std::byte> blob, std::uint32_t magic, const std::string& file,
                   const std::string& what, std::uint64_t most) {
  Cursor c(blob, file, what);
  if (blob.size() < 16) c.fail("the data is too short", std::to_string(blob.size()) + " bytes", "16 bytes or more");
  if (const std::uint32_t found = c.u32_big(); found != magic)
    c.fail("the magic number is wrong", std::to_string(found), std::to_string(magic));
  if (const std::uint64_t length = c.u64(); length != blob.size())
    c.fail("the stated length is wrong", std::to_string(length) + " bytes", std::to_string(blob.size()));
  const auto checked = blob.first(blob.size() - 4);
  const std::uint32_t stored = Cursor(blob.last(4), file, what).u32();
  if (crc32c(checked) != stored) c.fail("the checksum is wrong");
  if (const auto version = c.varint(); version != 0)
    c.fail("the format version is not supported", "version " + std::to_string(version), "version 0");
  const auto compression = c.varint();
  if (compression > 1) c.fail("unknown compression", std::to_string(compression), "0 (none) or 1 (zstd)");
  const auto payload = c.take(c.left() - 4);
  if (compression == 0) return {payload, {}};
  // Limits the ratio of compression, so that a small node cannot expand to gigabytes.
  return {{}, unzstd(payload, std::min<std::uint64_t>(most, payload.size() * 256 + (1 << 20)), file, what)};
}

// Strings encoded as the length of the prefix shared with the previous one, and the rest.
std::vector<std::string> shared_texts(const Cursor& at, const std::vector<std::uint64_t>& prefixes,
                                      const std::vector<std::uint64_t>& suffixes, std::string_view rest) {
  std::vector<std::string> all(suffixes.size());
  const std::uint64_t most = rest.size() * kSharing + kMostPath;
  std::uint64_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t prefix = i == 0 ? 0 : prefixes[i - 1];
    if (i > 0 && prefix > all[i - 1].size())
      at.fail("the shared prefix is longer than the previous name", std::to_string(prefix),
              std::to_string(all[i - 1].size()));
    total += prefix + suffixes[i];
    if (total > most) at.fail("the names exceed the size limit", std::to_string(total), std::to_string(most));
    if (i > 0) all[i] = all[i - 1].substr(0, static_cast<size_t>(prefix));
    all[i] += rest.substr(0, static_cast<size_t>(suffixes[i]));
    rest.remove_prefix(static_cast<size_t>(suffixes[i]));
  }
  return all;
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  std::uint64_t sum = 0;
  for (const std::uint64_t v : values) sum += v;  // cannot overflow: each is at most 65535
  return sum;
}

std::vector<OcdbtDataFile> parse_files(Cursor& c) {
  const size_t n = c.count(2, kMostEntries);
  if (n == 0) return {};
  const auto prefixes = c.varints(n - 1, kMostPath), suffixes = c.varints(n, kMostPath),
             bases = c.varints(n, kMostPath);
  const std::string_view rest = c.text(static_cast<size_t>(sum_of(suffixes)));
  std::vector<OcdbtDataFile> files;
  const std::vector<std::string> paths = shared_texts(c, prefixes, suffixes, rest);
  for (size_t i = 0; i < n; ++i) {
    if (bases[i] > paths[i].size())
      c.fail("the base of a data file is longer than its path", std::to_string(bases[i]),
             std::to_string(paths[i].size()));
    files.push_back(
        {paths[i].substr(0, static_cast<size_t>(bases[i])), paths[i].substr(static_cast<size_t>(bases[i]))});
  }
  return files;
}

const OcdbtDataFile& file_at(const Cursor& c, const std::vector<OcdbtDataFile>& files, std::uint64_t id) {
  if (id >= files.size())
    c.fail("the index of a data file is out of range", std::to_string(id), "below " + std::to_string(files.size()));
  return files[static_cast<size_t>(id)];
}

void parse_versions(Cursor& c, const std::vector<OcdbtDataFile>& files, int arity_log2, Manifest& m) {
  const size_t n = c.count(14, std::uint64_t{1} << arity_log2);
  if (n == 0) c.fail("the list of versions is empty", "0", "at least one");
  c.varints(n);  // generations
  const auto heights = c.take(n);
  const auto ids = c.varints(n), offsets = c.varints(n), lengths = c.varints(n);
  for (int column = 0; column < 3; ++column)
    c.varints(n);  // number of keys, bytes of the tree, bytes of external values
  c.take(n * 8);   // commit times
  const size_t newest = n - 1;
  m.root_height = static_cast<int>(heights[newest]);
  if (offsets[newest] == kMissing && lengths[newest] == kMissing) return;
  m.root = Reference{file_at(c, files, ids[newest]), offsets[newest], lengths[newest]};
}

void skip_older_versions(Cursor& c) {
  const size_t n = c.count(14, 64);
  for (int column = 0; column < 5; ++column) c.varints(n);
  c.take(n * 8);
  c.take(n);
}

void parse_leaves(Cursor& c, const std::vector<OcdbtDataFile>& files, std::vector<std::string> keys, Node& node) {
  const size_t n = keys.size();
  const auto lengths = c.varints(n);
  const auto kinds = c.take(n);
  std::vector<size_t> outside;
  for (size_t i = 0; i < n; ++i) {
    const auto kind = static_cast<unsigned>(kinds[i]);
    if (kind > 1) c.fail("the kind of a value is unknown", std::to_string(kind), "0 (inline) or 1 (in a data file)");
    node.leaves.push_back({.key = std::move(keys[i]), .inlined = kind == 0, .length = lengths[i]});
    if (kind == 1) outside.push_back(i);
  }
  const auto ids = c.varints(outside.size()), offsets = c.varints(outside.size());
  for (size_t k = 0; k < outside.size(); ++k) {
    node.leaves[outside[k]].file = file_at(c, files, ids[k]);
    node.leaves[outside[k]].offset = offsets[k];
  }
  for (LeafEntry& e : node.leaves) {
    if (!e.inlined) continue;
    if (e.length > c.left()) c.fail("an inline value exceeds its node", std::to_string(e.length));
    const auto bytes = c.take(static_cast<size_t>(e.length));
    e.bytes.assign(bytes.begin(), bytes.end());
  }
}

void parse_children(Cursor& c, const std::vector<OcdbtDataFile>& files, std::vector<std::string> keys,
                    const std::vector<std::uint64_t>& common, Node& node) {
  const size_t n = keys.size();
  const auto ids = c.varints(n), offsets = c.varints(n), lengths = c.varints(n);
  for (int column = 0; column < 3; ++column) c.varints(n);  // statistics
  for (size_t i = 0; i < n; ++i) {
    if (common[i] > keys[i].size())
      c.fail("the prefix of a subtree is longer than its key", std::to_string(common[i]),
             std::to_string(keys[i].size()));
    std::string subtree = keys[i].substr(0, static_cast<size_t>(common[i]));
    node.children.push_back(
        {std::move(keys[i]), std::move(subtree), {file_at(c, files, ids[i]), offsets[i], lengths[i]}});
  }
}

}  // namespace

Manifest parse_manifest(std::span<const std::byte> blob, const std::string& file) {
  const std::string what = "manifest";
  const Body body = open_envelope(blob, kManifest, file, what, kMostManifest);
  Cursor c(body.bytes(), file, what);
  Manifest m;
  c.take(16);  // uuid
  const std::uint8_t kind = c.u8();
  if (kind > 1) c.fail("the kind of manifest is unknown", std::to_string(kind), "0 or 1");
  m.kind = static_cast<Manifest::Kind>(kind);
  c.varint(UINT32_MAX);  // maximum length of inline values
  c.varint(UINT32_MAX);  // decompressed size of nodes
  const int arity = c.u8();
  if (arity < 1 || arity > 16)
    c.fail("the arity of the version tree is out of range", std::to_string(arity), "1 to 16");
  const auto compression = c.varint();
  if (compression > 1) c.fail("unknown compression", std::to_string(compression), "0 or 1");
  if (compression == 1) c.u32();  // compression level
  if (m.kind == Manifest::Kind::single) {
    const std::vector<OcdbtDataFile> files = parse_files(c);
    parse_versions(c, files, arity, m);
    skip_older_versions(c);
  }
  c.finish();
  return m;
}

Node parse_node(std::span<const std::byte> blob, const std::string& file, const std::string& what, std::uint64_t most) {
  const Body body = open_envelope(blob, kNode, file, what, most);
  Cursor c(body.bytes(), file, what);
  Node node;
  node.height = c.u8();
  const std::vector<OcdbtDataFile> files = parse_files(c);
  const size_t n = c.count(3, kMostEntries);
  if (n == 0) c.fail("the node has no entry", "0", "at least one");
  const auto prefixes = c.varints(n - 1, kMostPath), suffixes = c.varints(n, kMostPath);
  const auto common = node.height > 0 ? c.varints(n, kMostPath) : std::vector<std::uint64_t>();
  const std::string_view rest = c.text(static_cast<size_t>(sum_of(suffixes)));
  std::vector<std::string> keys = shared_texts(c, prefixes, suffixes, rest);
  for (size_t i = 1; i < n; ++i)
    if (keys[i] <= keys[i - 1]) c.fail("the keys are not in ascending order");
  if (node.height == 0)
    parse_leaves(c, files, std::move(keys), node);
  else
    parse_children(c, files, std::move(keys), common, node);
  c.finish();
  return node;
}

}  // namespace mw::formats::ocdbt
