// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/data_file.h"

#include <zlib.h>
#include <zstd.h>

#include "core/base/json.h"
#include "core/data/dataset/scan.h"

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

std::string zstd_packed(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  out.resize(::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string many_lines() {
  Rng rng{11};
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += Json{{"prompt", "the small river " + random_text(rng, rng.below(40))}, {"completion", "Yes"}}.dump() + "\n";
  return text;
}

std::vector<ScannedRow> scanned_rows(const DatasetOptions& o, Sha256* sum = nullptr) {
  std::vector<ScannedRow> rows;
  scan_rows(
      o, bpe(), {}, {}, [&](ScannedRow row) { rows.push_back(std::move(row)); }, sum);
  return rows;
}

TEST(DataFile, CompressedRowsAreThoseOfThePlainFile) {
  const Scratch scratch;
  const std::string text = many_lines(), first = text.substr(0, 1000), second = text.substr(1000);
  DatasetOptions o;
  o.path = scratch.put("a.jsonl", text);
  const std::vector<ScannedRow> plain = scanned_rows(o);
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a.jsonl.gz", gzipped(text)},
      {"b.jsonl.GZ", gzipped(first) + gzipped("") + gzipped(second)},
      {"a.jsonl.zst", zstd_packed(text)},
      {"b.jsonl.zst", zstd_packed(first) + zstd_packed(second)}};
  for (const auto& [name, content] : files) {
    o.path = scratch.put(name, content);
    Sha256 sum;
    const std::vector<ScannedRow> rows = scanned_rows(o, &sum);
    EXPECT_EQ(hex(sum.finish()), hex(Sha256().add(content).finish())) << name;
    ASSERT_EQ(rows.size(), plain.size()) << name;
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].example.ids, plain[i].example.ids);
      EXPECT_EQ(rows[i].position.offset, plain[i].position.offset);
      if (i % 500 == 7) {
        EXPECT_EQ(rescan_row(o, bpe(), rows[i]).example.ids, plain[i].example.ids);
      }
    }
  }
}

TEST(DataFile, NamesTheDamagedByte) {
  const Scratch scratch;
  const std::string text = many_lines();
  DatasetOptions o;
  o.path = scratch.put("a.jsonl.gz", "");
  EXPECT_TRUE(scanned_rows(o).empty());
  for (const auto& [name, whole] :
       {std::pair("b.jsonl.gz", gzipped(text)), std::pair("b.jsonl.zst", zstd_packed(text))}) {
    o.path = scratch.put(name, whole.substr(0, whole.size() - 5));
    Problem p = problem_of([&] { scanned_rows(o); });
    EXPECT_EQ(p.id, "DATA-COMPRESSED");
    EXPECT_EQ(p.message, "the compressed file is incomplete");
    EXPECT_EQ(p.place, "byte " + std::to_string(whole.size() - 5));
    o.path = scratch.put(name, whole + "garbage");
    p = problem_of([&] { scanned_rows(o); });
    EXPECT_EQ(p.message, "the compressed file is damaged") << name;
    EXPECT_FALSE(p.found.empty());
  }
}

TEST(DataFile, ExtensionIsThatOfTheContent) {
  EXPECT_EQ(data_extension("a/B.CSV.gz"), ".csv");
  EXPECT_EQ(data_extension("a.jsonl"), ".jsonl");
  EXPECT_EQ(data_extension("a.zst"), "");
}

}  // namespace
}  // namespace mw::data::testing
