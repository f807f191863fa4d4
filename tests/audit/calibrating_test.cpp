// SPDX-License-Identifier: GPL-3.0-or-later
// Measurement files and runs as they are given: one error per bad row, nothing fitted from what was not understood, the
// plan says who calibrated it.
#include "core/audit/calibrating.h"

#include <gmock/gmock.h>

#include <fstream>

#include "core/base/files.h"
#include "core/views/design_view.h"
#include "tests/store/store_fixture.h"

namespace mw::audit {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kHardware = std::string(MW_RESOURCES) + "/hardware";

Json row(const std::string& id, int batch, double value) {
  return {{"id", id},         {"use", "calibration"},  {"value", value},
          {"unit", "s/step"}, {"model", "gemma3-1b"},  {"target", "v5e-1"},
          {"stack", "tunix"}, {"mesh", {{"fsdp", 1}}}, {"method", "lora"},
          {"batch", batch},   {"max_len", 1024},       {"source", "my own steps"}};
}

struct Calibrating : testing::Test {
  const Scratch folder;
  const fs::path own = folder.path() / "hardware";

  plan::PlanContext context() const { return plan::PlanContext::load(kHardware, own); }
  fs::path file(const Json& rows, const std::string& name = "steps.json") const {
    const fs::path path = folder.path() / name;
    std::ofstream(path) << Json{{"rows", rows}}.dump(1);
    return path;
  }
  CalibrationResult of(std::vector<fs::path> files, std::vector<store::RunId> runs = {}) const {
    return calibrate({.files = std::move(files),
                      .runs = std::move(runs),
                      .runs_folder = folder.path() / "runs",
                      .published = kHardware + "/measurements.json",
                      .date = "2026-11-21"},
                     context());
  }
  // Rows that take so many times what is planned now.
  Json rows(double times) const {
    Json out = Json::array();
    for (const int batch : {1, 2, 4}) out.push_back(row("step " + std::to_string(batch), batch, 1));
    const CalibrationResult probe = of({file(out)});
    for (size_t i = 0; i < out.size(); ++i) out[i]["value"] = probe.proposal->rows[i].now.predicted * times;
    return out;
  }
};

TEST_F(Calibrating, ReturnsAProposalWithoutWritingFiles) {
  const CalibrationResult c = of({file(rows(1.2))});
  ASSERT_TRUE(c.proposal);
  EXPECT_TRUE(c.problems.empty());
  EXPECT_NEAR(c.proposal->now.mean, 0.167, 0.01);
  EXPECT_LT(c.proposal->fitted.mean, 0.05);
  EXPECT_LT(c.proposal->held_out.mean, 0.08);
  EXPECT_EQ(c.proposal->calibration.basis.source, "steps.json");
  EXPECT_EQ(c.proposal->shipped_now.rows, c.proposal->shipped_fitted.rows);
  EXPECT_GT(c.proposal->shipped_now.rows, 20);
  EXPECT_FALSE(fs::exists(own));
  EXPECT_THAT(calibrated_text(c), AllOf(HasSubstr("step 4"), HasSubstr("held out"), HasSubstr("matmul")));
  const Json json = calibrated_json(c);
  EXPECT_EQ(json["rows"].size(), 3U);
  EXPECT_EQ(json["efficiencies"][0]["rows"].size(), 3U);
}

TEST_F(Calibrating, ChosenNamesApplyToServers) {
  Json serving = Json::array();
  const Json published = read_json(fs::path(kHardware) / "measurements.json");
  for (const Json& r : published.at("rows"))
    if (r.at("id") == "v6e-8-llama3.3-70b-c64" || r.at("id") == "v6e-8-llama3.3-70b-c128") {
      serving.push_back(r);
      serving.back()["source"] = "my own server";
    }
  ASSERT_EQ(serving.size(), 2U);
  CalibrationRequest request{.files = {file(serving, "served.json")},
                             .runs = {},
                             .runs_folder = {},
                             .published = kHardware + "/measurements.json",
                             .names = {"kv_reads"},
                             .date = "2026-11-21"};
  const CalibrationResult c = calibrate(request, context());
  ASSERT_TRUE(c.proposal);
  ASSERT_EQ(c.proposal->efficiencies.size(), 1U);
  EXPECT_EQ(c.proposal->efficiencies[0].factor.name, "kv_reads");
  request.names.clear();
  std::vector<std::string> fitted;  // without the efficiencies that only GPUs have
  const CalibrationResult all = calibrate(request, context());
  for (const auto& f : all.proposal->efficiencies) fitted.push_back(f.factor.name);
  EXPECT_THAT(fitted, UnorderedElementsAre("matmul", "memory", "kv_reads", "sequence_s"));
}

TEST_F(Calibrating, ReportsEachBadRowAndUsesTheOthers) {
  Json all = rows(1.2);
  const auto bad = [&](const char* id, const char* key, const Json& value) {
    Json one = row(id, 1, 1);
    one[key] = value;
    all.push_back(one);
  };
  bad("no such chip", "target", "v5e-7777");
  bad("no such model", "model", "gemma9");
  bad("no such stack", "stack", "tunixx");
  bad("no such unit", "unit", "parsec");
  bad("negative", "value", -1);
  bad("text", "value", "fast");
  bad("mesh too large", "mesh", {{"fsdp", 8}});
  bad("unknown key", "bach", 3);
  bad("no such use", "use", "sometimes");
  bad("step 1", "value", 2);  // an id twice
  all.push_back(3);
  const CalibrationResult c = of({file(all)});
  ASSERT_TRUE(c.proposal);
  EXPECT_EQ(c.proposal->rows.size(), 3U);
  EXPECT_EQ(c.problems.size(), 11U);
  for (const Problem& p : c.problems) {
    EXPECT_EQ(p.id, "MEASUREMENT") << to_text(p);
    EXPECT_THAT(p.file, HasSubstr("steps.json")) << to_text(p);
    EXPECT_THAT(p.place, testing::StartsWith("rows")) << to_text(p);
    EXPECT_FALSE(p.found.empty() || p.expected.empty() || p.fix.empty()) << to_text(p);
  }
}

TEST_F(Calibrating, RejectsAnInvalidFileWithoutAProposal) {
  const fs::path no_json = folder.path() / "a.json", no_rows = folder.path() / "b.json";
  std::ofstream(no_json) << "{\"rows\": [";
  std::ofstream(no_rows) << "{\"rows\": {}}";
  for (const fs::path& f : {no_json, no_rows, folder.path() / "missing.json"}) {
    const CalibrationResult c = of({f});
    EXPECT_FALSE(c.proposal);
    ASSERT_EQ(c.problems.size(), 1U) << to_text(c.problems.back());
    EXPECT_EQ(c.problems[0].file, f.string());
  }
  EXPECT_EQ(of({no_json, file(rows(1.2))}).proposal->rows.size(), 3U);
}

TEST_F(Calibrating, RepeatedRowsCountOnce) {
  const Json one = rows(1.2);
  const CalibrationResult c = of({file(one), file(one, "again.json")});
  EXPECT_EQ(c.proposal->rows.size(), 3U);
  EXPECT_EQ(c.problems.size(), 3U);
}

TEST_F(Calibrating, PlanNamesTheCalibrationUntilItIsRemoved) {
  experiment::Experiment e;
  for (const auto& [key, value] : {std::pair{"model.id", "gemma3-1b"}, {"target.id", "v5e-1"}, {"mesh.fsdp", "1"}})
    e.set(key, value);
  const views::Design before = views::design(e, context());
  plan::accept_proposal(own, *of({file(rows(1.3))}).proposal);
  const views::Design after = views::design(e, context());
  EXPECT_GT(after.plan().step.seconds.value, before.plan().step.seconds.value * 1.05);
  const auto said = [](const views::Design& d) {
    std::string all;
    for (const std::string& s : d.plan().sources) all += s + "\n";
    for (const views::PlanLine& l : views::plan_lines(d)) all += l.label + ": " + l.value + "\n";
    return all + views::provenance(d.plan().step.seconds);
  };
  const std::string by = "by you, 2026-11-21, steps.json";
  EXPECT_THAT(said(before), testing::Not(HasSubstr("by you")));
  EXPECT_THAT(said(after), AllOf(HasSubstr("efficiencies: calibrated " + by), HasSubstr("Calibrated: " + by),
                                 HasSubstr("; calibrated " + by)));
  plan::remove_user_calibration(own);
  const views::Design again = views::design(e, context());
  EXPECT_DOUBLE_EQ(again.plan().step.seconds.value, before.plan().step.seconds.value);
  EXPECT_THAT(said(again), testing::Not(HasSubstr("by you")));
}

// Fitting again what is in force already gives the same: factors are on the defaults, not on each other.
TEST_F(Calibrating, AcceptingTwiceHasNoFurtherEffect) {
  const fs::path steps = file(rows(1.3));
  plan::accept_proposal(own, *of({steps}).proposal);
  const std::string once = *plan::user_calibration(own);
  const CalibrationResult again = of({steps});
  EXPECT_NEAR(again.proposal->efficiencies[0].after, again.proposal->efficiencies[0].before, 1e-3);
  EXPECT_LT(again.proposal->now.mean, again.proposal->held_out.mean);
}

store::RunId add_run(const fs::path& runs, double rate) {
  store::Store store(runs);
  const store::RunId run =
      store.create(experiment::Experiment::load(std::string(MW_RESOURCES) + "/examples/tiny-lora.json"), "mine");
  store.append(run, {0, event::Started{Json{{"steps", 300}}}});
  for (long step = 1; step <= 6; ++step)
    store.append(run, {static_cast<double>(step), event::Metric{"train/tokens_per_second", step, rate}});
  store.flush();
  return run;
}

// Plans of this machine follow from its benchmark and its runs: the error of a run is shown, and nothing is fitted.
TEST_F(Calibrating, NothingIsFittedToThisMachine) {
  const fs::path runs = folder.path() / "runs";
  const double predicted = of({}, {add_run(runs, 1)}).proposal->rows[0].now.predicted;
  const CalibrationResult c = of({}, {add_run(runs, predicted / 2.5)});
  ASSERT_EQ(c.proposal->rows.size(), 1U);
  EXPECT_NEAR(c.proposal->rows[0].now.error, -0.6, 1e-6);
  EXPECT_EQ(c.proposal->rows[0].fitted.predicted, c.proposal->rows[0].now.predicted);
  EXPECT_TRUE(c.proposal->efficiencies.empty());
  EXPECT_THAT(calibrated_text(c), HasSubstr("bench --save"));
  EXPECT_EQ(of({}, {"run-99"}).problems.size(), 1U);
  Json rows = Json::array({row("mine", 1, 5)});
  rows[0]["target"] = "cpu", rows[0]["stack"] = "engine";
  const CalibrationResult refused = of({file(rows)});
  EXPECT_FALSE(refused.proposal);
  ASSERT_EQ(refused.problems.size(), 1U);
  EXPECT_THAT(to_text(refused.problems[0]), AllOf(HasSubstr("rows.mine"), HasSubstr("bench --save")));
}

}  // namespace
}  // namespace mw::audit
