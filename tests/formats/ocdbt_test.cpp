// SPDX-License-Identifier: GPL-3.0-or-later
// OCDBT databases built byte by byte for cases without a fixture: high trees, numbered manifests, damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/orbax/kv_store.h"
#include "core/formats/orbax/orbax.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {
namespace fs = std::filesystem;
using namespace ocdbt_bytes;
using testing::ElementsAre;
using testing::HasSubstr;

// Consecutive nodes in the file "d/data".
class Data {
 public:
  Ref add(const std::string& node) {
    const std::string blob = framed(Of::node, node);
    const Ref at{bytes.size(), blob.size()};
    bytes += blob;
    return at;
  }
  std::string bytes;
};

class Ocdbt : public testing::Test {
 protected:
  Ocdbt() { fs::create_directories(folder_ / "d"); }
  void write(const Data& data, Ref root, int height) const {
    put(folder_ / "d/data", data.bytes);
    put(folder_ / "manifest.ocdbt", framed(Of::manifest, manifest("d/data", root, height)));
  }
  std::string value(const KvStore& store, const std::string& key) const {
    const auto found = store.find(key);
    if (!found) return "nothing";
    const Blob blob = KvStore::read(*found);
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
  }
  std::string error() const {
    return problem_of([&] { open_ocdbt(folder_.path()); }).message;
  }
  // Two leaves below two nodes below the root; keys share what their subtree says.
  Data tall(Ref& root) const {
    Data data;
    const Ref a = data.add(leaves({{"", "first"}, {"0", "second"}}));
    const Ref b = data.add(leaves({{".zarray", "third"}, {"1", "fourth"}}));
    const Ref low = data.add(interior(1, "d/data", {{"a/", 2, a}, {"b/.zarray", 2, b}}));
    const Ref c = data.add(leaves({{"z", "fifth"}}));
    const Ref other = data.add(interior(1, "d/data", {{"z", 0, c}}));
    root = data.add(interior(2, "d/data", {{"x.a/", 2, low}, {"y.z", 2, other}}));
    return data;
  }
  Scratch folder_;
};

TEST_F(Ocdbt, ReadsTreeOfThreeLevels) {
  Ref root;
  const Data data = tall(root);
  write(data, root, 2);
  const auto store = open_ocdbt(folder_.path());
  EXPECT_THAT(store->keys(), ElementsAre("x.a/", "x.a/0", "x.b/.zarray", "x.b/1", "y.z"));
  EXPECT_EQ(value(*store, "x.a/"), "first");
  EXPECT_EQ(value(*store, "x.b/1"), "fourth");
  EXPECT_EQ(value(*store, "y.z"), "fifth");
  EXPECT_EQ(value(*store, "x.b/2"), "nothing");
}

TEST_F(Ocdbt, ReadsNewestNumberedManifest) {
  Data data;
  const Ref old = data.add(leaves({{"k", "old"}})), now = data.add(leaves({{"k", "new"}}));
  put(folder_ / "d/data", data.bytes);
  put(folder_ / "manifest.ocdbt", framed(Of::manifest, numbered_manifest()));
  EXPECT_THAT(error(), HasSubstr("numbered manifest is missing"));
  put(folder_ / "manifest.0000000000000009", framed(Of::manifest, manifest("d/data", old, 0)));
  EXPECT_EQ(value(*open_ocdbt(folder_.path()), "k"), "old");
  put(folder_ / "manifest.000000000000000a", framed(Of::manifest, manifest("d/data", now, 0)));
  put(folder_ / "manifest.000000000000000b.lock", "not one of them");
  EXPECT_EQ(value(*open_ocdbt(folder_.path()), "k"), "new");
  put(folder_ / "manifest.000000000000000c", framed(Of::manifest, numbered_manifest()));
  EXPECT_THAT(error(), HasSubstr("lists no version"));
}

TEST_F(Ocdbt, DetectsEveryWrongBitInTree) {
  Ref root;
  const Data good = tall(root);
  for (size_t at = 0; at < good.bytes.size(); ++at) {
    Data bad = good;
    bad.bytes[at] = static_cast<char>(bad.bytes[at] ^ 4);
    write(bad, root, 2);
    EXPECT_THROW(open_ocdbt(folder_.path()), Error) << "byte " << at;
  }
  Data bad = good;
  bad.bytes.back() = static_cast<char>(bad.bytes.back() ^ 1);
  write(bad, root, 2);
  EXPECT_THAT(error(), HasSubstr("checksum is wrong"));
}

TEST_F(Ocdbt, RejectsInconsistentLevels) {
  Ref root;
  const Data data = tall(root);
  write(data, root, 1);
  EXPECT_THAT(error(), HasSubstr("does not match its level"));
  write(data, root, 65);
  EXPECT_THAT(error(), HasSubstr("height limit"));
  Data skipping;
  const Ref leaf = skipping.add(leaves({{"k", "v"}}));
  write(skipping, skipping.add(interior(2, "d/data", {{"k", 0, leaf}})), 2);
  EXPECT_THAT(error(), HasSubstr("does not match its level"));
}

// The root refers to one leaf twice; a small database could otherwise expand to any number of keys.
TEST_F(Ocdbt, RejectsNodeReachedTwice) {
  Data data;
  const Ref leaf = data.add(leaves({{"k", "v"}}));
  write(data, data.add(interior(1, "d/data", {{"a", 1, leaf}, {"b", 1, leaf}})), 1);
  EXPECT_THAT(error(), HasSubstr("its own descendant"));
}

TEST_F(Ocdbt, RejectsReferencesOutsideFolder) {
  for (const char* path : {"../secret", "/etc/passwd", "d/../../secret", "ocdbt.process_0/../../x"}) {
    put(folder_ / "manifest.ocdbt", framed(Of::manifest, manifest(path, {0, 10}, 0)));
    EXPECT_THAT(error(), HasSubstr("outside")) << path;
  }
  put(folder_ / "manifest.ocdbt", framed(Of::manifest, manifest("ocdbt.process_3/d/x", {0, 10}, 0)));
  EXPECT_THAT(error(), HasSubstr("the data file is missing"));
}

TEST_F(Ocdbt, RejectsNodeBeyondEndOfFile) {
  Ref root;
  const Data data = tall(root);
  for (const Ref at : {Ref{data.bytes.size() + 1, 10}, Ref{root.offset, root.length + 1}, Ref{UINT64_MAX - 3, 10}}) {
    write(data, at, 2);
    EXPECT_THAT(error(), HasSubstr("shorter than its index states"));
  }
}

TEST_F(Ocdbt, RejectsKeysOutOfOrder) {
  Data data;
  const Ref root = data.add(leaves({{"b", "1"}, {"a", "2"}}));
  write(data, root, 0);
  EXPECT_THAT(error(), HasSubstr("not in ascending order"));
}

TEST_F(Ocdbt, ReadsItemFromHighTree) {
  const std::string metadata =
      R"({"chunks":[2],"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","shape":[2],)"
      R"("zarr_format":2})";
  Data data;
  const Ref a = data.add(leaves({{".zarray", metadata}, {"0", std::string("\0\0\x80\x3f\0\0\0\x40", 8)}}));
  const Ref low = data.add(interior(1, "d/data", {{"a/.zarray", 2, a}}));
  write(data, data.add(interior(2, "d/data", {{"params.a/.zarray", 7, low}})), 2);
  put(folder_ / "_METADATA",
      R"({"tree_metadata":{"k":{"key_metadata":[{"key":"params"},{"key":"a"}],"value_metadata":{}}}})");
  const OrbaxTree tree(folder_.path());
  ASSERT_EQ(tree.arrays().size(), 1u);
  EXPECT_THAT(tree.read_floats(tree.arrays()[0]), ElementsAre(1.0f, 2.0f));
  EXPECT_TRUE(tree.in_database());
}

}  // namespace
}  // namespace mw::formats
