// SPDX-License-Identifier: Apache-2.0
// What the Design page says of a design, and of two beside each other.
#include "core/views/design_view.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "core/designer/canvas.h"
#include "tests/shipped.h"

namespace mw::views {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Design designed(const Json& changes = Json::object()) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/paper-train-v5p-8.json");
  for (const auto& [key, value] : changes.items()) e.set_value(key, value);
  return design(e, test::context());
}

std::string marked(const std::vector<HeadingPart>& parts) {
  std::string out;
  for (const HeadingPart& p : parts) out += (out.empty() ? "" : " | ") + p.text + (p.changed ? "*" : "");
  return out;
}

TEST(Heading, NamesTheMeshAndItsResults) {
  const Heading h = heading(designed(), nullptr);
  EXPECT_EQ(marked(h.what), "v5p-8 | fsdp 1 | tp 4");
  ASSERT_EQ(h.comes_to.size(), 2u);
  EXPECT_THAT(h.comes_to[0].text, HasSubstr(" per step"));
  EXPECT_THAT(h.comes_to[1].text, StartsWith("$"));
}

TEST(Heading, MarksDifferences) {
  const Design paper = designed();
  const Heading same = heading(paper, &paper);
  EXPECT_THAT(marked(same.what) + marked(same.comes_to), testing::Not(HasSubstr("*")));
  const Heading meshes = heading(designed({{"mesh", {{"fsdp", 2}, {"tp", 2}}}}), &paper);
  EXPECT_EQ(marked(meshes.what), "v5p-8 | fsdp 2* | tp 2*");
  EXPECT_THAT(meshes.comes_to[0].text, HasSubstr("%)"));
  EXPECT_TRUE(meshes.comes_to[0].changed);
  const Heading gpus = heading(designed({{"target.id", "2xh100"}, {"mesh", {{"fsdp", 2}, {"tp", 1}}}}), &paper);
  EXPECT_EQ(marked(gpus.what), "2xh100* | fsdp 2* | tp 1*");
  const Heading model = heading(designed({{"model.id", "gemma3-27b"}}), &paper);
  EXPECT_THAT(marked(model.what), StartsWith("gemma3-27b* | v5p-8 |"));
}

TEST(ChangeText, NamesTheStepBeforeAndAfter) {
  const Design paper = designed();
  const Design two = designed({{"mesh", {{"fsdp", 2}, {"tp", 2}}}});
  const double change = two.plan().step.seconds.value / paper.plan().step.seconds.value - 1;
  ASSERT_GT(change, 0.1);
  EXPECT_THAT(change_text(paper, two), testing::MatchesRegex("[0-9.]+ to [0-9.]+ s \\(\\+[0-9]+ %\\)"));
  EXPECT_THAT(change_text(paper, two), HasSubstr("(+" + number_text(std::round(100 * change)) + " %)"));
  EXPECT_THAT(change_text(two, paper), HasSubstr(" s (-"));
  EXPECT_THAT(change_text(paper, paper), HasSubstr(", unchanged"));
  EXPECT_THAT(change_text(paper, designed({{"train.batch", 512}})), HasSubstr("; does not fit: "));
}

TEST(Difference, OfRowsNamesBytesAndTheFormerSpec) {
  ShardRow before{.name = "embed",
                  .first = "embed",
                  .shape = "",
                  .spec = {{{"tp"}, {}}},
                  .shard = "",
                  .per_device = Bytes(100),
                  .rule = ""};
  ShardRow after = before;
  EXPECT_EQ(difference(&before, after), "same");
  after.per_device = Bytes(112);
  EXPECT_EQ(difference(&before, after), "+12 %");
  after.spec = {{{}, {}}};
  EXPECT_EQ(difference(&before, after), "+12 %, was (tp, -)");
  EXPECT_EQ(difference(nullptr, after), "new");
}

TEST(PlanLines, HeadlinesAreMemoryStepRunCostAndUtilisation) {
  std::vector<std::string> names;
  for (const PlanLine& line : plan_lines(designed()))
    if (!line.headline.empty()) names.push_back(line.headline);
  EXPECT_THAT(names, testing::ElementsAre("Memory", "Step", "Run", "Cost", "MFU"));
}

TEST(PlanLines, HaveAKeyOfTheirOwnThatDoesNotChangeWithTheWork) {
  std::set<std::string> keys;
  for (const PlanLine& line : plan_lines(designed())) {
    EXPECT_FALSE(line.key.empty()) << line.label;
    EXPECT_TRUE(keys.insert(line.key).second) << line.key;
  }
  for (const char* key : {"memory", "step", "run", "usd", "tokens_per_second"}) EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(ShardRows, GroupTensorsByKind) {
  const Design d = designed();
  std::size_t tensors = 0;
  Bytes held;
  for (const ShardRow& r : shard_rows(d)) {
    tensors += static_cast<std::size_t>(r.count);
    held += r.per_device;
    EXPECT_NE(mesh::find_tensor(d.placement, r.first), nullptr) << r.first;
    EXPECT_EQ(r.name.starts_with("layers.*."), r.count > 1) << r.name;
  }
  EXPECT_EQ(tensors, d.placement.tensors.size() + d.placement.adapters.size());
  EXPECT_GT(held.value, 0);
}

TEST(Traffic, SumsTensorAndBlockByAxis) {
  const std::vector<Traffic> lines = traffic(designed({{"mesh", {{"fsdp", 2}, {"tp", 2}}}}), "layers.0.q_proj");
  ASSERT_GE(lines.size(), 2u);
  std::map<std::string, int> labels;
  for (const Traffic& t : lines) {
    EXPECT_THAT(t.text, HasSubstr(" over " + t.axis + ": "));
    EXPECT_THAT(t.text, HasSubstr(" each, "));
    labels[t.axis] += !t.label.empty();
  }
  EXPECT_EQ(labels, (std::map<std::string, int>{{"fsdp", 1}, {"tp", 1}}));
}

}  // namespace
}  // namespace mw::views
