// SPDX-License-Identifier: GPL-3.0-or-later
// A proposed calibration: rows are held out from what predicts them, what others measured stays, nothing is written
// before it is accepted, and taking it back restores the file to the byte.
#include "core/plan/calibration/proposal.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"
#include "tests/base/scratch.h"
#include "tests/plan/measured_rows.h"
#include "tests/plan/shipped_rows.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using test::context;
using test::measured;
using test::shipped_rows;
using test::small;
using testing::HasSubstr;

const CalibrationBasis kMine{"2026-11-21", "steps.json", CalibrationAuthor::user};

const Calibration& shipped_calibration() {
  static const Calibration c = context().calibration;
  return c;
}

ProposalInput input(std::vector<Measurement> rows) {
  return {.rows = std::move(rows), .published = {}, .in_force = {}, .basis = kMine};
}

const CalibrationFactor* factor(const Calibration& c, model::Stack stack, const std::string& chip,
                                const std::string& name = "matmul") {
  for (const CalibrationFactor& f : c.factors)
    if (f.stack == stack && f.chip == chip && f.name == name) return &f;
  return nullptr;
}

TEST(Proposal, RecoversTheEfficiencyOfGeneratedRows) {
  ProposalInput in = input(measured(0.7, MeasurementUse::calibration));
  in.options.trust = 100;
  const Proposal p = propose(in);
  ASSERT_EQ(p.efficiencies.size(), 1U);
  const ProposedEfficiency& e = p.efficiencies.front();
  EXPECT_EQ(e.factor.name, "matmul");
  EXPECT_NEAR(e.after, 0.7 * e.before, 0.005);
  EXPECT_EQ(e.factor.rows.size(), 5U);
  EXPECT_LT(e.low, e.after);
  EXPECT_GT(e.high, e.after);
  EXPECT_FALSE(e.at_limit);
  EXPECT_GT(p.now.mean, 0.1);
  EXPECT_LT(p.fitted.mean, 0.01);
  EXPECT_LT(p.held_out.mean, 0.01);  // every row follows the same truth
}

TEST(Proposal, PredictsHeldOutRowsFromTheOthers) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration);
  const Proposal before = propose(input(rows));
  rows[2].value *= 1.3;
  const Proposal after = propose(input(rows));
  // Its own value never enters its held-out prediction, and does enter everybody else's.
  EXPECT_DOUBLE_EQ(after.rows[2].held_out->predicted, before.rows[2].held_out->predicted);
  EXPECT_NE(after.rows[1].held_out->predicted, before.rows[1].held_out->predicted);
  EXPECT_EQ(after.rows[2].others, 4);
  EXPECT_GT(std::abs(after.rows[2].held_out->error), std::abs(after.rows[2].fitted.error));
  EXPECT_EQ(after.held_out.worst_row, rows[2].id);
}

TEST(Proposal, UsesTenFoldsForMoreThanTenRows) {
  int parts = 0;
  const Proposal p = propose(input(measured(0.8, MeasurementUse::calibration, 14)),
                             [&](int, int total) { parts = std::max(parts, total); });
  EXPECT_EQ(parts, 10);
  for (const ProposedRow& r : p.rows) {
    ASSERT_TRUE(r.held_out);
    EXPECT_GE(r.others, 12);
    EXPECT_LT(r.others, 14);
  }
}

TEST(Proposal, SingleRowUsesDefaultsAndAddsANote) {
  const Proposal p = propose(input(measured(0.7, MeasurementUse::calibration, 1)));
  EXPECT_EQ(p.rows[0].others, 0);
  EXPECT_DOUBLE_EQ(p.rows[0].held_out->predicted, p.rows[0].now.predicted);
  ASSERT_FALSE(p.notes.empty());
  EXPECT_THAT(p.notes.back().message, HasSubstr("one row only"));
}

// Accepted once and fitted again: what a row left in the calibration in force does not predict it.
TEST(Proposal, HeldOutRowsDropTheirOldFactors) {
  const std::vector<Measurement> one = measured(0.7, MeasurementUse::calibration, 1);
  ProposalInput again = input(one);
  again.in_force = propose(input(one)).calibration;
  const Proposal p = propose(again);
  EXPECT_GT(p.rows[0].now.error, -0.04);
  EXPECT_NEAR(p.rows[0].held_out->error, propose(input(one)).rows[0].held_out->error, 1e-12);
  EXPECT_LT(p.rows[0].held_out->error, -0.05);
  EXPECT_THAT(p.notes.front().message, HasSubstr("not a held-out error"));
}

TEST(Proposal, HeldOutRowsDoNotChangeTheFit) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration);
  const Proposal alone = propose(input(rows));
  for (Measurement& m : measured(0.4, MeasurementUse::holdout)) {
    m.id += " apart";
    rows.push_back(m);
  }
  const Proposal p = propose(input(rows));
  EXPECT_DOUBLE_EQ(p.efficiencies[0].after, alone.efficiencies[0].after);
  EXPECT_EQ(p.apart_now.rows, 5);
  EXPECT_EQ(p.now.rows, 5);
  EXPECT_FALSE(p.rows.back().held_out);
}

TEST(Proposal, PublishedHeldOutRowsStayHeldOutUnderAnyId) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration, 2);
  for (const Measurement& m : shipped_rows())
    if (m.id.starts_with("paper-v5p-8")) {
      rows.push_back(m);
      rows.back().id = "my own " + m.id;
      rows.back().purpose = MeasurementUse::calibration;
      rows.back().alternative_of = "";
    }
  ASSERT_GT(rows.size(), 2U);
  ProposalInput in = input(rows);
  in.published = shipped_rows();
  const Proposal p = propose(in);
  EXPECT_EQ(p.now.rows, 2);
  EXPECT_EQ(factor(p.calibration, model::Stack::tunix, "v5p"), nullptr);
  EXPECT_EQ(p.notes.front().id, "HELD-OUT");
}

TEST(Proposal, KeepsOtherFactorsWithTheirSource) {
  ProposalInput in = input(measured(0.7, MeasurementUse::calibration));
  in.in_force = shipped_calibration();
  const std::string date = in.in_force.basis.date;
  const Proposal p = propose(in);
  const CalibrationFactor *mine = factor(p.calibration, model::Stack::maxtext, "v5e"),
                          *kept = factor(p.calibration, model::Stack::maxtext, "v6e");
  ASSERT_TRUE(mine && kept);
  EXPECT_FALSE(mine->basis);
  ASSERT_TRUE(kept->basis);
  EXPECT_EQ(kept->basis->by, CalibrationAuthor::program);
  Request own = small(1, 512), other = small(1, 512, "v6e-1"), unmeasured = small(1, 512, "v5p-8");
  unmeasured.mesh.axes = {{"fsdp", 4}};
  set_stack(unmeasured, model::Stack::tunix);
  const double tunix = unmeasured.efficiencies.matmul.value;
  for (Request* r : {&own, &other, &unmeasured}) apply(p.calibration, *r);
  EXPECT_THAT(own.efficiencies.matmul.source, HasSubstr("calibrated by you, 2026-11-21, steps.json, fitted to 5"));
  EXPECT_THAT(other.efficiencies.matmul.source, HasSubstr("calibrated, " + date + ", resources/hardware"));
  EXPECT_DOUBLE_EQ(unmeasured.efficiencies.matmul.value, tunix);
}

TEST(Proposal, KeepsEfficienciesThatAreNotFitted) {
  const std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration);
  ProposalInput first = input(rows);
  first.options.names = {"memory"};
  ProposalInput second = input(rows);
  second.in_force = propose(first).calibration;
  const Proposal p = propose(second);
  ASSERT_NE(factor(p.calibration, model::Stack::maxtext, "v5e", "memory"), nullptr);
  ASSERT_NE(factor(p.calibration, model::Stack::maxtext, "v5e", "matmul"), nullptr);
  EXPECT_LE(p.fitted.mean, p.now.mean + 1e-6);
}

// overlap_sums is 0 by default, which no factor can change: its complement is fitted.
TEST(Proposal, RecoversAShareThatIsZeroByDefault) {
  std::vector<Measurement> rows;
  for (int i = 0; i < 3; ++i) {
    Measurement m;
    m.id = "sums " + std::to_string(i);
    m.purpose = MeasurementUse::calibration;
    m.unit = "s/step";
    m.request = small(1 << i, 1024, "v5e-4");
    m.request.mesh.axes = {{"tp", 4}};
    ASSERT_EQ(m.request.efficiencies.overlap_sums.value, 0);
    Request faster = m.request;
    faster.efficiencies.overlap_sums.value = 0.45;
    m.value = predict(faster).step.seconds.value;
    ASSERT_LT(m.value, 0.99 * predict(m.request).step.seconds.value);
    rows.push_back(std::move(m));
  }
  ProposalInput in = input(rows);
  in.options.names = {"overlap_sums"};
  in.options.trust = 100;
  const Proposal p = propose(in);
  ASSERT_EQ(p.efficiencies.size(), 1U);
  const ProposedEfficiency& e = p.efficiencies[0];
  EXPECT_EQ(e.before, 0);
  EXPECT_NEAR(e.after, 0.45, 0.02);
  EXPECT_LE(e.low, e.after);
  EXPECT_GE(e.high, e.after);
  EXPECT_LT(p.fitted.mean, 0.01);
}

TEST(Proposal, RejectsWhatCannotBeFittedAndCanBeCancelled) {
  EXPECT_THROW(propose(input({})), Error);
  EXPECT_THROW(propose(input(measured(0.8, MeasurementUse::holdout))), Error);
  ProposalInput in = input(measured(0.8, MeasurementUse::calibration));
  in.options.names = {"runtime_bytes"};
  EXPECT_THROW(propose(in), Error);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(propose(input(measured(0.8, MeasurementUse::calibration)), {}, stop.get_token()), Error);
}

TEST(Proposal, UnpredictableRowBecomesANote) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration, 3);
  rows[1].request.mesh.axes = {{"fsdp", 0}};
  const Proposal p = propose(input(rows));
  EXPECT_EQ(p.rows.size(), 2U);
  ASSERT_FALSE(p.notes.empty());
  EXPECT_THAT(p.notes.front().place, HasSubstr("rows.row 1"));
}

struct UserCalibration : testing::Test {
  const test::Scratch scratch;
  const fs::path folder = scratch / "hardware";
  plan::PlanContext loaded() const { return plan::PlanContext::load(std::string(MW_RESOURCES) + "/hardware", folder); }
};

TEST_F(UserCalibration, AcceptedProposalRoundTrips) {
  const Proposal p = propose(input(measured(0.7, MeasurementUse::calibration)));
  EXPECT_FALSE(fs::exists(folder));  // proposing writes nothing
  EXPECT_FALSE(accept_proposal(folder, p).has_value());
  EXPECT_EQ(loaded().catalogue.calibration(), user_calibration_file(folder));
  const Calibration back = read_calibration(loaded().catalogue.calibration());
  EXPECT_EQ(back.basis.by, CalibrationAuthor::user);
  EXPECT_EQ(back.basis.source, "steps.json");
  ASSERT_EQ(back.factors.size(), p.calibration.factors.size());
  const Json document = read_json(user_calibration_file(folder));
  EXPECT_EQ(document["rows"].size(), 5U);
  EXPECT_NEAR(document["step_time_of_fitted_rows"]["held_out"]["mean"].get<double>(), p.held_out.mean, 1e-4);
  for (const Json& row : document["rows"]) EXPECT_TRUE(row.contains("error_held_out"));
}

TEST_F(UserCalibration, KeptFactorsKeepTheirSourceThroughTheFile) {
  ProposalInput in = input(measured(0.7, MeasurementUse::calibration));
  in.in_force = shipped_calibration();
  accept_proposal(folder, propose(in));
  Request own = small(1, 512), other = small(1, 512, "v6e-1");
  const Calibration back = read_calibration(loaded().catalogue.calibration());
  apply(back, own);
  apply(back, other);
  EXPECT_THAT(own.efficiencies.matmul.source, HasSubstr("calibrated by you, 2026-11-21, steps.json"));
  EXPECT_THAT(other.efficiencies.matmul.source, HasSubstr("resources/hardware/measurements.json"));
}

TEST_F(UserCalibration, RestoresThePreviousFileExactly) {
  const auto first = accept_proposal(folder, propose(input(measured(0.7, MeasurementUse::calibration))));
  EXPECT_FALSE(first);
  const std::string one = *user_calibration(folder);
  const auto before = accept_proposal(folder, propose(input(measured(0.9, MeasurementUse::calibration))));
  ASSERT_TRUE(before);
  EXPECT_EQ(*before, one);
  EXPECT_EQ(read_file(folder / "calibration.json.bak"), one);
  restore_calibration(folder, before);
  EXPECT_EQ(*user_calibration(folder), one);
  restore_calibration(folder, first);
  EXPECT_FALSE(user_calibration(folder));
}

TEST_F(UserCalibration, RemovingRestoresTheShippedOne) {
  accept_proposal(folder, propose(input(measured(0.7, MeasurementUse::calibration))));
  const std::string mine = *user_calibration(folder);
  EXPECT_EQ(remove_user_calibration(folder), mine);
  EXPECT_EQ(loaded().catalogue.calibration(), fs::path(MW_RESOURCES) / "hardware" / "calibration.json");
  EXPECT_EQ(read_file(folder / "calibration.json.bak"), mine);
  EXPECT_FALSE(remove_user_calibration(folder).has_value());  // twice is no error
}

TEST_F(UserCalibration, UnwritableFolderIsAnErrorWithoutDataLoss) {
  EXPECT_THROW(accept_proposal({}, propose(input(measured(0.7, MeasurementUse::calibration, 2)))), Error);
  const fs::path file = scratch.put("no_folder", "a file");
  EXPECT_THROW(accept_proposal(file / "hardware", propose(input(measured(0.7, MeasurementUse::calibration, 2)))),
               Error);
  EXPECT_EQ(read_file(file), "a file");
}

}  // namespace
}  // namespace mw::plan
