// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/row_reader.h"

#include "core/data/dataset/dataset.h"
#include "core/data/dataset/scan.h"

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

std::vector<Json> table_rows(const std::filesystem::path& file) {
  std::vector<Json> rows;
  RowReader reader(file);
  for (RawRow raw; reader.next(raw);) rows.push_back(parse_row(raw, reader.syntax(), file.string()));
  return rows;
}

TEST(Table, ReadsQuotesDelimitersAndLineBreaks) {
  const Scratch scratch;
  const std::vector<Json> expected = {{{"prompt", "a, \"b\"\r\nc"}, {"completion", ""}},
                                      {{"prompt", "d \"e\""}, {"completion", "\xc3\xa9"}}};
  EXPECT_EQ(table_rows(scratch.put("a.csv",
                                   "\xEF\xBB\xBFprompt,completion\r\n\"a, \"\"b\"\"\r\nc\",\r\n\r\n"
                                   "d \"e\",\"\xc3\xa9\"")),
            expected);
  EXPECT_EQ(table_rows(scratch.put("a.CSV", "\"prompt\";completion\n\"a, \"\"b\"\"\r\nc\";\"\"\nd \"e\";\xc3\xa9\n")),
            expected);
  EXPECT_EQ(table_rows(scratch.put("a.tsv", "prompt\tcompletion\n\"a, \"\"b\"\"\r\nc\"\t\nd \"e\"\t\xc3\xa9\n")),
            expected);
  EXPECT_EQ(table_rows(scratch.put("b.csv", "text\nthe river\n")), (std::vector<Json>{Json{{"text", "the river"}}}));
  EXPECT_TRUE(table_rows(scratch.put("c.csv", "")).empty());
}

TEST(Table, ErrorsNameLineAndColumn) {
  const Scratch scratch;
  const auto place = [&](const std::string& text) {
    const Problem p = problem_of([&] { table_rows(scratch.put("a.csv", text)); });
    EXPECT_EQ(p.file, (scratch.path() / "a.csv").string());
    return p.place;
  };
  EXPECT_EQ(place("a,b\n1,2\n1,2,3\n"), "line 3, column 5");
  EXPECT_EQ(place("a,b\n\"1\n\n2\"\n"), "line 4, column 3");
  EXPECT_EQ(place("a,b\n\"1\" x,2\n"), "line 2, column 4");
  EXPECT_EQ(place("a,b\n1,2\n3,\"4\n5,6\n"), "line 3, column 3");
  EXPECT_EQ(place("a,b,a\n"), "line 1, column 5");
  EXPECT_EQ(place("a,b\n1,\xff\n"), "line 2");
}

TEST(Table, BadRowsAreSkippedAndOthersTrained) {
  const Scratch scratch;
  DatasetOptions o;
  o.path = scratch.put("a.csv", "question,answer\nthe small river,Yes\nonly\n\"the\nriver\",No\n");
  o.columns = {{"prompt", "question"}, {"completion", "answer"}};
  o.on_error = options::OnError::skip;
  const Dataset d = load_dataset(o, bpe());
  ASSERT_EQ(d.train.size(), 2u);
  EXPECT_EQ(d.report.skipped_bad, 1);
  EXPECT_EQ(d.report.problems.at(0).place, "line 3, column 5");
  const auto lines = scratch.put("a.jsonl",
                                 "{\"prompt\":\"the small river\",\"completion\":\"Yes\"}\n"
                                 "{\"prompt\":\"the\\nriver\",\"completion\":\"No\"}\n");
  o.path = lines;
  o.columns.clear();
  const Dataset same = load_dataset(o, bpe());
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(d.train[i].ids, same.train.at(i).ids);
}

TEST(Table, CellsMayHoldMessages) {
  const Scratch scratch;
  DatasetOptions o;
  o.path = scratch.put("a.csv",
                       "messages\n\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"the river\"\"},"
                       "{\"\"role\"\":\"\"assistant\"\",\"\"content\"\":\"\"Yes\"\"}]\"\n[]\nthe river\n");
  o.on_error = options::OnError::skip;
  const Dataset d = load_dataset(o, bpe());
  ASSERT_EQ(d.train.size(), 1u);
  EXPECT_EQ(d.train[0].answer, "Yes");
  EXPECT_EQ(d.report.problems.back().message, "\"messages\" is not a list of messages");
}

}  // namespace
}  // namespace mw::data::testing
