// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/files.h"
#include "core/report/report_charts.h"
#include "tests/base/scratch.h"
#include "tests/shipped.h"

namespace mw::report {
namespace {

using test::Scratch;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<script>alert(1)</script>\"'&\x01<img src=x onerror=y>";

// The tags of the document in order, with their attributes; closes what it opened, in order.
std::vector<std::string> balanced_tags(const std::string& html) {
  static const std::set<std::string> kVoid{"!DOCTYPE", "meta", "br", "line", "polyline", "circle"};
  std::vector<std::string> open, all;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "a tag is not closed: " << html.substr(at, 60);
      break;
    }
    const std::string tag = html.substr(at + 1, end - at - 1);
    std::string name = tag.substr(0, tag.find_first_of(" /\n"));
    if (tag.starts_with('/')) {
      const std::string closed = tag.substr(1);
      EXPECT_TRUE(!open.empty() && open.back() == closed) << "</" << closed << "> closes nothing";
      if (!open.empty()) open.pop_back();
    } else if (!kVoid.contains(name)) {
      open.push_back(name);
    }
    if (!tag.starts_with('/')) all.push_back(tag);
  }
  EXPECT_TRUE(open.empty()) << "still open: " << (open.empty() ? "" : open.back());
  return all;
}

// Without the values of attributes.
std::string names_in(const std::string& tag) {
  std::string out;
  for (size_t at = 0; at < tag.size();) {
    const size_t quote = std::min(tag.find('"', at), tag.size());
    out += tag.substr(at, quote - at);
    at = quote == tag.size() ? quote : std::min(tag.find('"', quote + 1), tag.size() - 1) + 1;
  }
  return out;
}

void expect_self_contained(const std::string& html) {
  for (const std::string& whole : balanced_tags(html)) {
    const std::string tag = names_in(whole);
    EXPECT_THAT(tag, Not(testing::ContainsRegex("^(script|img|link|iframe|object|embed|a|form)([ /]|$)"))) << tag;
    EXPECT_THAT(tag, Not(testing::ContainsRegex(" (on[a-z]+|src|href)="))) << tag;
  }
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
}

store::RunId recorded_run(store::Store& store, const std::string& name, double loss) {
  experiment::Experiment experiment;
  experiment.set_value("name", name);
  experiment.set_value("train.learning_rate", loss / 100);
  experiment.set_value("data.path", kHostile);
  const store::RunId run = store.create(experiment, name);
  const auto lock = store.lock(run);
  store.append(run, {0, event::Started{{{"steps", 3}, {"software", kHostile}, {"versions", {{"a<b", "1"}}}}}});
  for (long step = 1; step <= 3; ++step)
    store.append(run, {static_cast<double>(step), event::Metric{"train/loss", step, loss / static_cast<double>(step)}});
  store.append(run, {3, event::Metric{std::string("train/") + kHostile, 3, 1}});
  store.append(run, {3, event::Log{"warning", kHostile}});
  event::Finished finished;
  finished.steps = 3;
  finished.seconds = 3;
  store.finish(run, 3, finished);
  return run;
}

TEST(Report, EscapesEveryTextOfARun) {
  const Scratch folder;
  store::Store store(folder / "runs");
  const store::RunId run = recorded_run(store, kHostile, 2);
  store.set_tags(run, kHostile);
  const std::string html = html_report({report_item(store, run, test::context())}, "2026-01-31T12:00:00Z");
  expect_self_contained(html);
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\uFFFD"));
  EXPECT_THAT(html, Not(HasSubstr("\x01")));
  EXPECT_THAT(html, HasSubstr("Written by Meshwright " MW_VERSION ", 2026-01-31T12:00:00Z."));
  EXPECT_THAT(html, HasSubstr("Last training loss"));
  EXPECT_THAT(html, HasSubstr("<polyline class=\"line c0\""));
  EXPECT_THAT(html, HasSubstr("train.learning_rate"));
}

TEST(Report, ShowsDifferingSettingsOfAComparisonBeforeEqualOnes) {
  const Scratch folder;
  store::Store store(folder / "runs");
  std::vector<ReportItem> items;
  for (const auto& [name, loss] : {std::pair("first", 2.0), {"second", 1.0}})
    items.push_back(report_item(store, recorded_run(store, name, loss), test::context()));
  const std::string html = html_report(items, "2026-01-31T12:00:00Z");
  expect_self_contained(html);
  const size_t rate = html.find("train.learning_rate"), equal = html.find("Settings that are equal"),
               path = html.find("data.path");
  EXPECT_LT(rate, equal);
  EXPECT_GT(path, equal);
  EXPECT_THAT(html, HasSubstr("-50 %")) << "the change of the loss";
  EXPECT_THAT(html, HasSubstr("line c1"));
}

TEST(Report, MarksPredictedFiguresOfAnExperimentAndResultsOfAFile) {
  const std::filesystem::path resources = MW_RESOURCES;
  const auto planned = report_items(resources / "examples/paper-train-v5p-8.json", test::context());
  ASSERT_EQ(planned.size(), 1u);
  const std::string plan = html_report(planned, "now");
  expect_self_contained(plan);
  EXPECT_THAT(plan, HasSubstr("<span class=\"badge\">predicted</span>"));
  EXPECT_THAT(plan, HasSubstr("Peak memory of a device"));
  EXPECT_THAT(plan, Not(HasSubstr("<h2>Results</h2>"))) << "nothing has run";
  const auto sets = report_items(std::filesystem::path(MW_FIXTURES) / "bench/vllm_appended.json", test::context());
  ASSERT_EQ(sets.size(), 2u);
  const std::string results = html_report(sets, "now");
  expect_self_contained(results);
  EXPECT_THAT(results, HasSubstr("TTFT by load"));
  EXPECT_THAT(results, HasSubstr("line c1 imported"));
}

TEST(SvgChart, BreaksLinesAtGapsAndDrawsNothingWithoutPoints) {
  SvgChart chart{.title = "a<b", .x_title = "x", .y_title = "y", .lines = {}};
  EXPECT_EQ(svg_chart(chart), "");
  chart.lines.push_back({"line", {{0, 1}, {1, 2}, {2, NAN}, {3, 4}}, formats::ResultProvenance::predicted});
  const std::string svg = svg_chart(chart);
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  size_t parts = 0;
  for (size_t at = svg.find("<polyline class=\"line c0 predicted\""); at != std::string::npos;
       at = svg.find("<polyline", at + 1))
    ++parts;
  EXPECT_EQ(parts, 2u);
}

TEST(SvgChart, TicksAreRoundAndFew) {
  std::vector<double> places;
  for (const AxisTick& tick : round_ticks(0, 9.7, 5)) places.push_back(tick.place);
  EXPECT_EQ(places, (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(round_ticks(-1e-9, 1e-9, 5).size(), 5u);
  EXPECT_TRUE(round_ticks(1, 1, 5).empty());
  EXPECT_TRUE(round_ticks(0, INFINITY, 5).empty());
}

}  // namespace
}  // namespace mw::report
