// SPDX-License-Identifier: Apache-2.0
#include "core/present/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/present/html.h"

namespace mw::present {
namespace {

using testing::HasSubstr;

Table compared() {
  Table table{
      .columns = {{.align = Align::left}, {.title = "v6e-8"}, {.title = "two H100, a burst", .compared = true}}};
  Row& rate = table.rows.emplace_back(Row{"128.ttft_ms", "ms", {"TTFT at 128", {"61.5", 61.4999}, {"2.5", 2.5}}});
  rate.cells[2].change = -0.96;
  rate.cells[2].remark = "impossible: below the floor";
  rate.cells[2].mark = Mark::bad;
  table.rows.push_back({"kv_dtype", {}, {"KV cache type", "bf16", "fp8|e5m2"}});
  return table;
}

TEST(Table, AlignsColumnsAndListsRemarksOnATerminal) {
  EXPECT_EQ(to_text(compared(), 2),
            "                               two H100, a\n"
            "                    v6e-8            burst\n"
            "  TTFT at 128 (ms)   61.5  2.5  -96 %  (1)\n"
            "  KV cache type      bf16         fp8|e5m2\n"
            "  (1) two H100, a burst, TTFT at 128: impossible: below the floor\n");
}

TEST(Table, WrapsLongTitlesSoThatTheyStayApart) {
  Table table = figure_table({"run", "a name that is long, with 1 device", "a name that is long, with 8 devices"});
  table.add({"step", "1", "2"});
  const std::string text = to_text(table);
  EXPECT_THAT(text, HasSubstr("device      devices\n")) << "the ends, which tell them apart";
  std::string_view rest = text;
  while (!rest.empty()) EXPECT_LE(characters(take_line(rest)), 32u) << text;
}

TEST(Table, CutsLongFiguresButNoTexts) {
  const std::string longest(80, 'x');
  Table table = figure_table({"row", "figure"});
  table.columns.push_back({.title = "text", .align = Align::left});
  table.add({"a", longest, longest});
  const std::string text = to_text(table);
  EXPECT_THAT(text, HasSubstr("\u2026"));
  EXPECT_THAT(text, HasSubstr(longest));
}

TEST(Table, ShortRowsAndNoRowsHaveEveryForm) {
  Table table = left_table({"a", "b"});
  for (const auto& render : {to_markdown, to_latex, to_csv}) EXPECT_FALSE(render(table).empty());
  EXPECT_EQ(html_table(table), "");
  table.add({"only one"});
  EXPECT_EQ(to_text(table), "a         b\nonly one\n");
  EXPECT_EQ(to_csv(table), "a,b\nonly one,\n");
  EXPECT_THAT(to_markdown(table), HasSubstr("| only one |  |\n"));
}

TEST(Table, CsvHasKeysUnitsChangesAndRemarks) {
  EXPECT_EQ(to_csv(compared()),
            "key,label,unit,v6e-8,\"two H100, a burst\",\"two H100, a burst, change\",marks\n"
            "128.ttft_ms,TTFT at 128,ms,61.4999,2.5,-0.96,\"two H100, a burst: impossible: below the floor\"\n"
            "kv_dtype,KV cache type,,bf16,fp8|e5m2,,\n");
}

TEST(Table, EscapesWhatMeansSomethingInItsForm) {
  EXPECT_THAT(to_markdown(compared()), HasSubstr("fp8\\|e5m2"));
  EXPECT_THAT(to_markdown(compared()), HasSubstr("|---|---:|---:|"));
  EXPECT_EQ(escape_latex("50% & $x_{1}$ \\~^<>\n#"),
            "50\\% \\& \\$x\\_\\{1\\}\\$ \\textbackslash{}\\textasciitilde{}\\textasciicircum{}\\textless{}"
            "\\textgreater{} \\#");
  Table table = left_table({"<b>"});
  table.add({"a & \"b\""});
  EXPECT_THAT(html_table(table), HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(html_table(table), HasSubstr("a &amp; &quot;b&quot;"));
  EXPECT_THAT(html_table(compared()), HasSubstr("<td class=\"bad\">2.5<br><small>-96 %</small></td>"));
}

TEST(Table, ANameForgesNoRowAndNoFormula) {
  Table table = figure_table({"na\nme", "figure"});
  table.add({"line 1\r\n\tline 2", "\n=1+1"});
  const std::string text = to_text(table);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_EQ(text.find('\t'), std::string::npos);
  EXPECT_THAT(to_csv(table), HasSubstr("\"'\n=1+1\""));
  EXPECT_EQ(escape_latex("a\x1b[31m"), "a [31m");
}

TEST(Table, HugeChangesKeepTheirSign) {
  EXPECT_EQ(change_text(1e300), "+1e+302 %");
  EXPECT_EQ(change_text(-0.96), "-96 %");
}

TEST(Table, RowsThatArePrintedOneByOneStandBelowTheirTitles) {
  const std::vector<Column> columns{{"rate", "req/s", Align::right, 14}, {.title = "verdict", .align = Align::left}};
  EXPECT_EQ(title_line(columns), "  rate (req/s) verdict\n");
  EXPECT_EQ(row_line(columns, {"0.5", "stable"}), "           0.5 stable\n");
}

}  // namespace
}  // namespace mw::present
