// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/scan.h"

#include <algorithm>
#include <utility>

#include "core/base/json.h"
#include "core/data/dataset/dataset.h"

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

DatasetOptions scan_options(const std::filesystem::path& path) {
  DatasetOptions o;
  o.path = path;
  o.max_len = 40;
  o.eval_fraction = 0.3;
  o.seed = 5;
  o.on_error = options::OnError::skip;
  return o;
}

std::vector<ScannedRow> scan(const DatasetOptions& o) {
  std::vector<ScannedRow> rows;
  scan_rows(o, bpe(), {}, {}, [&](ScannedRow row) { rows.push_back(std::move(row)); });
  return rows;
}

// Rows of every state in each file layout, and running text with invalid lines.
std::vector<std::filesystem::path> files(const Scratch& scratch) {
  Rng rng{17};
  std::string lines, list, text = "\xEF\xBB\xBF";
  for (int i = 0; i < 200; ++i) {
    std::string answer;
    for (std::uint64_t n = 1 + rng.below(40); n > 0; --n) answer += " the river";
    std::string row = R"({"prompt":"the small \u00e9 )" + std::to_string(i) + R"(", "completion":")" + answer + "\"}";
    const auto kind = rng.below(12);
    if (kind == 0) row = R"({"prompt":"no answer"})";
    if (kind == 1) row = R"({"prompt":[{"role":"user","content":"only asked"}],"completion":[]})";
    if (kind == 2) row = R"({"prompt":"x","completion":"<bos>"})";
    if (kind == 3) row = R"({"prompt":")" + answer + answer + answer + R"(","completion":"Yes"})";  // beyond max_len
    lines += row + (rng.below(5) ? "\n" : "\r\n\n");
    list += (i ? ",\n " : "") + row;
    text += "the small river " + answer + (rng.below(30) == 0 ? "<bos>" : "") + (rng.below(40) == 0 ? "\xff" : "");
    text += rng.below(4) ? "\n" : "\n\n";
  }
  const std::string once = text.substr(3);
  for (int i = 0; i < 3; ++i) text += once;  // several blocks
  return {scratch.put("a.jsonl", "\xEF\xBB\xBF" + lines), scratch.put("a.json", "[" + list + "]"),
          scratch.put("b.json", "{\"n\": 3, \"rows\": [" + list + "]}"), scratch.put("a.txt", text)};
}

TEST(Scan, LoadDatasetKeepsUsedRows) {
  const Scratch scratch;
  for (const auto& file : files(scratch))
    for (const options::Overlong overlong : {options::Overlong::drop, options::Overlong::truncate}) {
      DatasetOptions o = scan_options(file);
      o.overlong = overlong;
      const Dataset d = load_dataset(o, bpe());
      std::int64_t of[5] = {0, 0, 0, 0, 0};
      size_t train = 0, eval = 0;
      for (const ScannedRow& row : scan(o)) {
        ++of[static_cast<size_t>(row.state)];
        const bool used = row.state == RowState::ok || row.state == RowState::truncated;
        EXPECT_EQ(row.used > 0, used);
        EXPECT_EQ(row.problem.message.empty(), row.state != RowState::bad);
        if (!used) continue;
        const Example& kept = row.split == Split::train ? d.train.at(train++) : d.eval.at(eval++);
        EXPECT_EQ(kept.row, row.example.row);
        ASSERT_EQ(kept.ids.size(), row.used);
        EXPECT_TRUE(std::equal(kept.ids.begin(), kept.ids.end(), row.example.ids.begin()));
        EXPECT_TRUE(std::equal(kept.loss.begin(), kept.loss.end(), row.example.loss.begin()));
      }
      EXPECT_EQ(train, d.train.size());
      EXPECT_EQ(eval, d.eval.size());
      EXPECT_GT(eval, 0u);
      EXPECT_EQ(of[0] + of[1], d.report.kept);
      EXPECT_EQ(of[1], d.report.truncated);
      EXPECT_EQ(of[2], d.report.dropped_long);
      EXPECT_EQ(of[3], d.report.no_loss);
      EXPECT_EQ(of[4], d.report.skipped_bad);
      EXPECT_GT(of[4], 0);
      if (file.extension() != ".txt") {
        EXPECT_GT(overlong == options::Overlong::drop ? of[2] : of[1], 0);
        EXPECT_EQ(of[3] > 0, overlong == options::Overlong::truncate);  // truncation removes the answer
      }
    }
}

TEST(Scan, RescannedRowEqualsFirstScan) {
  const Scratch scratch;
  for (const auto& file : files(scratch)) {
    DatasetOptions o = scan_options(file);
    if (file.extension() == ".txt") o.max_len = 700;  // longer than many lines
    int n = 0;
    for (const ScannedRow& row : scan(o)) {
      if (n++ % 7 && row.state != RowState::bad) continue;
      ScannedRow like = row;
      like.example = {.row = row.example.row, .ids = {}, .loss = {}, .prompt = {}, .answer = {}};
      like.problem = {};
      const ScannedRow again = rescan_row(o, bpe(), like);
      EXPECT_EQ(again.state, row.state);
      EXPECT_EQ(again.split, row.split);
      EXPECT_EQ(again.example.row, row.example.row);
      EXPECT_EQ(again.example.ids, row.example.ids) << file << " row " << row.example.row;
      EXPECT_EQ(again.example.loss, row.example.loss);
      EXPECT_EQ(again.used, row.used);
      EXPECT_EQ(again.problem.message, row.problem.message);
      EXPECT_EQ(again.problem.found, row.problem.found);
      if (row.position.bytes > 0) {
        EXPECT_EQ(to_text(again.problem), to_text(row.problem));
      }
    }
    EXPECT_GT(n, 20);
  }
}

// A field of a CSV file.
std::string quoted_field(const std::string& text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + '"';
}

// A large file is read in chunks on several threads, and a row alone when it is read again.
TEST(Scan, RowsOfALargeFileAreThoseOfEachRowAlone) {
  const Scratch scratch;
  for (const char* name : {"a.jsonl", "a.json", "a.txt", "a.csv"}) {
    const std::string extension = std::filesystem::path(name).extension();
    Rng rng{31};
    std::string text = extension == ".json" ? "[" : extension == ".csv" ? "prompt,completion\n" : "";
    for (int i = 0; i < 30000; ++i) {
      std::string line = "the small river " + std::to_string(i) + random_text(rng, rng.below(30));
      if (extension == ".csv")
        line = quoted_field(line) + (rng.below(50) ? ",Yes" : "");
      else if (extension != ".txt")
        line = Json{{"prompt", line}, {rng.below(50) ? "completion" : "answer", "Yes"}}.dump();
      if (extension == ".jsonl" && rng.below(200) == 0) line.pop_back();
      text += line + (extension == ".json" ? i < 29999 ? "," : "]" : rng.below(9) ? "\n" : "\n\n");
    }
    DatasetOptions o = scan_options(scratch.put(name, text));
    o.max_len = 100;
    std::int64_t next = 0;
    long done = 0;
    std::vector<ScannedRow> rows;
    scan_rows(
        o, bpe(), {}, [&](long now, long) { EXPECT_GE(now, std::exchange(done, now)); },
        [&](ScannedRow row) { rows.push_back(std::move(row)); });
    EXPECT_EQ(done, static_cast<long>(text.size()));
    for (const ScannedRow& row : rows) {
      if (row.example.row >= 0) {
        EXPECT_EQ(row.example.row, next++);
      }
      if (rng.below(200)) continue;
      const ScannedRow again = rescan_row(o, bpe(), row);
      EXPECT_EQ(again.state, row.state);
      EXPECT_EQ(again.example.ids, row.example.ids) << name << " row " << row.example.row;
      EXPECT_EQ(again.example.loss, row.example.loss);
      EXPECT_EQ(again.problem.message, row.problem.message);
    }
    EXPECT_GT(next, extension == ".txt" ? 1000 : 29999);
  }
}

TEST(Scan, RowsBeforeAFaultOfALargeFileAreRead) {
  const Scratch scratch;
  std::string text = "[";
  for (int i = 0; i < 30000; ++i) text += R"({"prompt":"the small river","completion":"Yes"},)";
  const auto file = scratch.put("a.json", text + "{\"prompt\":");
  std::int64_t seen = 0;
  EXPECT_EQ(problem_of([&] { scan_rows(scan_options(file), bpe(), {}, {}, [&](const ScannedRow&) { ++seen; }); }).id,
            "DATA-ROW");
  EXPECT_EQ(seen, 30000);
  std::stop_source stop;
  seen = 0;
  const auto stop_early = [&](const ScannedRow&) {
    if (++seen == 5) stop.request_stop();
  };
  EXPECT_EQ(problem_of([&] { scan_rows(scan_options(file), bpe(), stop.get_token(), {}, stop_early); }).id,
            "CANCELLED");
  EXPECT_LT(seen, 30000);
}

TEST(Scan, RescanReportsChangedFile) {
  const Scratch scratch;
  const auto file = scratch.put("a.txt", "the river\nthe small river\n");
  ScannedRow row = scan(scan_options(file)).at(0);
  row.position.offset = 100000;
  EXPECT_EQ(problem_of([&] { rescan_row(scan_options(file), bpe(), row); }).id, "DATA-CHANGED");
  const auto lines = scratch.put("a.jsonl", "{\"text\":\"the river\"}\n");
  row = scan(scan_options(lines)).at(0);
  scratch.put("a.jsonl", "{\"te\n");
  EXPECT_EQ(rescan_row(scan_options(lines), bpe(), row).state, RowState::bad);
}

TEST(Scan, StopsOnFaultsOfTheWholeFile) {
  const Scratch scratch;
  const std::string row = R"({"prompt":"a","completion":"b"})";
  int seen = 0;
  const auto count = [&](const DatasetOptions& o) {
    seen = 0;
    return problem_of([&] { scan_rows(o, bpe(), {}, {}, [&](const ScannedRow&) { ++seen; }); });
  };
  EXPECT_EQ(count(scan_options(scratch.put("a.json", "[" + row + ",\n" + row + ",\n{\"prompt\":"))).id, "DATA-ROW");
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(count(scan_options(scratch.put("a.jsonl", "{\"q\":1}\n" + row))).id, "DATA-FORMAT");
  EXPECT_EQ(seen, 0);
  DatasetOptions short_rows = scan_options(scratch.put("a.jsonl", row));
  short_rows.max_len = 1;
  EXPECT_EQ(count(short_rows).id, "DATA-LEN");
}

}  // namespace
}  // namespace mw::data::testing
