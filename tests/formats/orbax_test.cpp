// SPDX-License-Identifier: GPL-3.0-or-later
// Checkpoints written by orbax-checkpoint (tests/fixtures/orbax, by scripts/fixtures/orbax_checkpoints.py), and damaged
// ones.
#include "core/formats/orbax/orbax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/rng.h"
#include "tests/formats/ocdbt_bytes.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kMade = fs::path(MW_FIXTURES) / "orbax";

std::uint32_t crc32(const std::string& text) {  // zlib's
  std::uint32_t crc = 0xffffffff;
  for (const char ch : text) {
    crc ^= static_cast<unsigned char>(ch);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320 : 0);
  }
  return ~crc;
}

// Same as values() in the script.
std::vector<float> expected(const std::string& name, std::int64_t n) {
  std::vector<float> all(static_cast<size_t>(n));
  if (!name.starts_with("zeros"))
    for (std::int64_t i = 0; i < n; ++i)
      all[static_cast<size_t>(i)] =
          static_cast<float>((((2654435761 * i + crc32(name)) & 0xffffffff) >> 13) % 251) / 8 - 15;
  return all;
}

void expect_arrays(const OrbaxTree& tree, const std::vector<std::string>& without = {}) {
  const Json made = read_json(kMade / "made.json");
  size_t seen = 0;
  for (const auto& [name, spec] : made["arrays"].items()) {
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    const ZarrArray* array = tree.find(name);
    ASSERT_NE(array, nullptr) << name;
    EXPECT_EQ(Json(array->shape), spec["shape"]) << name;
    ++seen;
    if (spec["dtype"] == "int32") {
      EXPECT_EQ(array->dtype, TensorDType::i32);
      EXPECT_EQ(tree.read_values(*array).size(), 12u);
      continue;
    }
    EXPECT_EQ(array->dtype, spec["dtype"] == "bfloat16" ? TensorDType::bf16 : TensorDType::f32) << name;
    EXPECT_EQ(tree.read_floats(*array), expected(name, array->elements())) << name;
  }
  EXPECT_EQ(tree.arrays().size(), seen);
}

class Layouts : public testing::TestWithParam<const char*> {};

TEST_P(Layouts, ReadSavedValues) {
  const OrbaxFolder folder = open_orbax(kMade / GetParam());
  ASSERT_EQ(folder.steps.size(), 1u);
  ASSERT_EQ(folder.steps[0].items.size(), 1u);
  expect_arrays(OrbaxTree(folder.steps[0].items[0].folder));
}
INSTANTIATE_TEST_SUITE_P(Orbax, Layouts, testing::Values("ocdbt", "zarr3", "files", "files_zarr3", "v1"),
                         [](const auto& p) { return std::string(p.param); });

TEST(Orbax, JoinsPartsOfSeveralProcesses) {
  expect_arrays(OrbaxTree(kMade / "processes"), {"scale", "steps"});
}

TEST(Orbax, ListsStepsAndItemsOfManager) {
  const OrbaxFolder folder = open_orbax(kMade / "steps");
  ASSERT_EQ(folder.steps.size(), 2u);
  EXPECT_EQ(folder.steps[0].step, 1);
  EXPECT_EQ(folder.steps[1].step, 3);
  ASSERT_EQ(folder.steps[1].items.size(), 1u);
  EXPECT_EQ(folder.steps[1].items[0].name, "model_params");
  expect_arrays(OrbaxTree(folder.steps[1].items[0].folder));
}

TEST(Orbax, FindsManyArrays) {
  const OrbaxTree tree(kMade / "many");
  EXPECT_EQ(tree.arrays().size(), 400u);
  for (const ZarrArray& array : tree.arrays()) EXPECT_EQ(tree.read_floats(array), expected(array.name, 6));
}

class Damaged : public testing::Test {
 protected:
  Damaged() { fs::copy(kMade / "processes", copy(), fs::copy_options::recursive); }
  fs::path copy() const { return folder_.path() / "1"; }
  std::string error() const {
    try {
      const OrbaxTree tree(open_orbax(copy()).steps.at(0).items.at(0).folder);
      for (const ZarrArray& a : tree.arrays()) tree.read_values(a);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  Scratch folder_;
};

TEST_F(Damaged, ReportsMissingProcessFolder) {
  fs::remove_all(copy() / "ocdbt.process_1");
  EXPECT_THAT(error(), HasSubstr("ocdbt.process_1"));
}

TEST_F(Damaged, ReportsUnfinishedSave) {
  fs::remove(copy() / "manifest.ocdbt");
  EXPECT_THAT(error(), HasSubstr("not finished"));
  fs::rename(copy(), folder_.path() / "2.orbax-checkpoint-tmp-12");
  try {
    open_orbax(folder_.path());
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("unfinished"));
  }
}

TEST_F(Damaged, ReportsChecksumOfManifest) {
  std::string bytes = read_file(copy() / "manifest.ocdbt");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(copy() / "manifest.ocdbt", bytes);
  EXPECT_THAT(error(), HasSubstr("checksum"));
}

// Any content gives arrays or an Error, without large allocations.
TEST_F(Damaged, AnyContentGivesArraysOrError) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(copy()))
    if (entry.is_regular_file() && fs::file_size(entry.path()) > 0) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const Rng rng{7};
  int errors = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const fs::path& file = files[rng.at(3 * i) % files.size()];
    const std::string before = read_file(file);
    std::string bytes = before;
    const auto at = static_cast<size_t>(rng.at(3 * i + 1) % bytes.size());
    if (i % 5 == 0)
      bytes.resize(at);
    else
      bytes[at] = static_cast<char>(rng.at(3 * i + 2));
    put(file, bytes);
    errors += error() != "no error";
    put(file, before);
  }
  EXPECT_GT(errors, 100);
  EXPECT_EQ(error(), "no error");
}

// An uncompressed shard: an index, then two inner chunks.
class Shard : public testing::Test {
 protected:
  Shard() {
    put_file("_METADATA", R"({"tree_metadata":{}})");
    put_file("a/zarr.json",
             R"({"zarr_format":3,"node_type":"array","shape":[4],"data_type":"float32",)"
             R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},)"
             R"("chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":0,)"
             R"("codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":[{"name":"bytes"}],)"
             R"("index_codecs":[{"name":"bytes"},{"name":"crc32c"}],"index_location":"start"}}]})");
  }
  void put_file(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    put(folder_ / name, bytes);
  }
  static std::string index(std::uint64_t first, std::uint64_t second) {
    using namespace ocdbt_bytes;
    const std::string entries = little(first, 8) + little(8, 8) + little(second, 8) + little(8, 8);
    return entries + checksum(entries);
  }
  std::vector<float> values() const {
    const OrbaxTree tree(folder_.path());
    return tree.read_floats(tree.arrays().at(0));
  }
  const std::string data_{"\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16};
  Scratch folder_;
};

TEST_F(Shard, ReadsInnerChunksByIndex) {
  put_file("a/c/0", index(44, 36) + data_);
  EXPECT_EQ(values(), (std::vector<float>{3, 4, 1, 2}));
}

TEST_F(Shard, DetectsWrongIndexChecksum) {
  std::string bytes = index(36, 44) + data_;
  bytes[33] = static_cast<char>(bytes[33] ^ 1);
  put_file("a/c/0", bytes);
  EXPECT_THAT(problem_of([&] { values(); }).message, HasSubstr("checksum is wrong"));
}

TEST_F(Shard, DetectsMissingInnerChunk) {
  for (const std::uint64_t at : {std::uint64_t{UINT64_MAX}, std::uint64_t{45}}) {
    put_file("a/c/0", index(36, at) + data_);
    EXPECT_THAT(problem_of([&] { values(); }).message, HasSubstr("missing or outside"));
  }
}

// Metadata of wrong types is an Error as well.
TEST_F(Shard, RejectsCodecsThatAreNotObjects) {
  const std::string good = read_file(folder_ / "a/zarr.json");
  put_file("a/c/0", index(36, 44) + data_);
  EXPECT_EQ(values().size(), 4u);
  for (const auto& [from, to] : {std::pair(R"({"name":"crc32c"})", "7"),
                                 std::pair(R"([{"name":"bytes"}])", R"([{"name":"bytes","configuration":5}])"),
                                 std::pair(R"({"separator":"/"})", "[]")}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    put_file("a/zarr.json", bad);
    EXPECT_EQ(problem_of([&] { values(); }).id, "ORBAX") << to;
  }
}

// A small frame with a window of gigabytes (found by fuzzing), and zeros, which compress by a factor of thousands.
TEST(Unzstd, LimitsMemoryByInputSize) {
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string stored = read_file(kMade / "files/zeros/0.0");
  EXPECT_NO_THROW(unzstd(bytes(stored), 1 << 20, "file", "chunk"));
  EXPECT_THAT(problem_of([&] { unzstd(bytes(stored), 3, "file", "chunk"); }).message, HasSubstr("exceeds the limit"));
  EXPECT_THROW(unzstd(bytes(stored + "x"), 1 << 20, "file", "chunk"), Error);
  EXPECT_THROW(unzstd(bytes(stored.substr(0, stored.size() - 1)), 1 << 20, "file", "chunk"), Error);
  const std::string window("\x28\xb5\x2f\xfd\0\xa8\x01\0\0", 9);  // 2 GiB, then an empty last block
  EXPECT_THROW(unzstd(bytes(window), 1 << 20, "file", "chunk"), Error);
  const std::string of_0_7("\x27\xb5\x2f\xfd\0z", 6);
  EXPECT_THAT(problem_of([&] { unzstd(bytes(of_0_7), 1 << 20, "file", "chunk"); }).message,
              HasSubstr("not a zstd frame"));
  const std::string claims("\x28\xb5\x2f\xfd\xe0\0\0\0\x40\0\0\0\0\x01\0\0", 16);  // 1 GiB in no block
  EXPECT_THROW(unzstd(bytes(claims), std::uint64_t{1} << 40, "file", "chunk"), Error);
}

TEST(Orbax, ReportsOtherFolders) {
  const Scratch folder;
  EXPECT_FALSE(is_orbax(folder.path()));
  EXPECT_THROW(open_orbax(folder.path()), Error);
  EXPECT_THROW(open_orbax(folder.path() / "missing"), Error);
  EXPECT_TRUE(is_orbax(kMade / "steps"));
  EXPECT_TRUE(is_orbax(kMade / "v1"));
}

TEST(Crc32c, MatchesCastagnoli) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text))), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

}  // namespace
}  // namespace mw::formats
