// SPDX-License-Identifier: GPL-3.0-or-later
// The audit of training: published measurements pass, impossible claims are named, and MFU is told by its formula.
#include <gmock/gmock.h>

#include <cmath>

#include "core/base/files.h"
#include "core/compare/audited_training.h"
#include "core/model/catalogue.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::compare {
namespace {

namespace fs = std::filesystem;
using audit::TrainingClaim;
using audit::Verdict;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> rules_of(const audit::TrainingAudit& audit, Verdict least) {
  std::vector<std::string> out;
  for (const audit::AuditFinding& f : audit.findings)
    if (f.verdict >= least) out.push_back(f.rule + " " + f.metric);
  return out;
}
audit::TrainingAudit audited(const TrainingClaim& claim) {
  return audit_known(claim, test::context());
}

// Every training row of the shipped measurements that names a model of the catalogue.
TEST(TrainingAudit, PublishedMeasurementsPass) {
  const Json file = read_json(fs::path(MW_RESOURCES) / "hardware" / "measurements.json");
  const auto ids = model::catalogue_ids();
  int speeds = 0, memories = 0;
  for (const Json& row : file.at("rows")) {
    const std::string model = row.value("model", ""), unit = row.value("unit", "");
    if (std::find(ids.begin(), ids.end(), model) == ids.end() || row.contains("alternative_of") ||
        !row.contains("value"))
      continue;
    TrainingClaim claim{.name = row.at("id"), .model = model, .target = row.at("target")};
    claim.method = row.value("method", "lora") == "full" ? model::TrainMethod::full : model::TrainMethod::lora;
    const int chips = test::context().catalogue.target(claim.target).chips();
    const double value = row.at("value");
    if (row.contains("batch")) claim.batch = row["batch"].get<double>();
    if (row.contains("max_len")) claim.max_len = row["max_len"].get<double>();
    if (row.contains("accumulation")) claim.accumulation = row["accumulation"].get<double>();
    if (unit == "s/step")
      claim.seconds_per_step = value, ++speeds;
    else if (unit == "tokens/s/device")
      claim.padded_tokens_per_second = value * chips, ++speeds;
    else if (unit == "GiB reserved" || unit == "GiB active")
      claim.peak_bytes = value * 1073741824.0, ++memories;
    else
      continue;
    const audit::TrainingAudit audit = audited(claim);
    EXPECT_THAT(rules_of(audit, Verdict::impossible), IsEmpty()) << claim.name << to_text(audit);
    if (!std::isnan(claim.padded_tokens_per_second)) {
      EXPECT_FALSE(audit.mfu.empty()) << claim.name;
    }
  }
  EXPECT_GE(speeds, 15);
  EXPECT_GE(memories, 5);
}

// arXiv 2605.25645: Gemma 4 31B, LoRA on v5p-8 (763 real tokens/s, 3.34 h, $56.11) and on 2xH100.
TrainingClaim paper() {
  TrainingClaim claim{.name = "paper", .model = "gemma4-31b", .target = "v5p-8", .dtype = "bf16"};
  claim.method = model::TrainMethod::lora;
  claim.tokens_per_second = 763;
  claim.batch = 8;
  claim.steps = 1244;
  claim.rows = 10000;
  claim.epochs = 1;
  claim.seconds = 3.34 * 3600;
  claim.usd = 56.11;
  claim.usd_per_hour = 16.80;
  return claim;
}

TEST(TrainingAudit, ThePaperIsPossibleAndItsMfuIsGivenByFormula) {
  const audit::TrainingAudit audit = audited(paper());
  EXPECT_THAT(audit.findings, IsEmpty()) << to_text(audit);
  std::vector<std::string> names;
  for (const audit::MfuFormula& f : audit.mfu) names.push_back(f.name);
  EXPECT_THAT(names, testing::ElementsAre("6N, tokens without padding", "4N, tokens without padding"));
  EXPECT_NEAR(audit.mfu[0].share,
              6 * audit::active_parameters(model::catalogue_config("gemma4-31b")) * 763 / (4 * 459e12), 1e-3);
  EXPECT_NEAR(audit.mfu[1].share, audit.mfu[0].share * 4 / 6, 1e-9);
}

struct Impossible {
  const char* rule;
  void (*change)(TrainingClaim&);
  const char* text;
};
class ImpossibleClaims : public testing::TestWithParam<Impossible> {};

TEST_P(ImpossibleClaims, AreNamed) {
  TrainingClaim claim = paper();
  GetParam().change(claim);
  const audit::TrainingAudit audit = audited(claim);
  ASSERT_THAT(rules_of(audit, Verdict::impossible), Contains(GetParam().rule)) << to_text(audit);
  EXPECT_EQ(worst(audit), Verdict::impossible);
  EXPECT_THAT(to_text(audit), HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Of, ImpossibleClaims,
    testing::Values(
        Impossible{"FLOOR-COMPUTE tokens_per_second", [](TrainingClaim& c) { c.tokens_per_second = 76300; },
                   "that v5p-8 can compute at its peak"},
        Impossible{"FLOOR-MEMORY seconds_per_step", [](TrainingClaim& c) { c.seconds_per_step = 0.001; },
                   "can read the weights twice per micro-batch"},
        Impossible{"MEMORY peak_bytes", [](TrainingClaim& c) { c.peak_bytes = 96.0 * 1073741824.0 * 2; },
                   "more than a device of v5p-8 has"},
        Impossible{"MEMORY peak_bytes", [](TrainingClaim& c) { c.peak_bytes = 4.0 * 1073741824.0; },
                   "less than the weights take"},
        Impossible{"MFU mfu", [](TrainingClaim& c) { c.mfu = 41; }, "exceeds the peak"},
        Impossible{"MFU mfu",
                   [](TrainingClaim& c) {
                     c.mfu = 0.4;
                     c.mfu_formula = "6N, tokens without padding";
                   },
                   "not 40 %"},
        Impossible{"LOSS-ACCURACY train_loss",
                   [](TrainingClaim& c) {
                     c.train_loss = 0.072;
                     c.token_accuracy = 0.80;
                   },
                   "each wrong token costs at least ln 2"},
        Impossible{"UNITS usd", [](TrainingClaim& c) { c.usd = 5.6; }, "the cost in dollars is"},
        Impossible{"UNITS perplexity",
                   [](TrainingClaim& c) {
                     c.eval_loss = 2;
                     c.perplexity = 2;
                   },
                   "exp(eval_loss)"},
        Impossible{"UNITS seconds", [](TrainingClaim& c) { c.seconds_per_step = 30; }, "longer than the claimed"},
        Impossible{"UNITS tokens_per_second",
                   [](TrainingClaim& c) {
                     c.seconds_per_step = 5;
                     c.max_len = 128;
                   },
                   "but a step has at most 1,024"},
        Impossible{"UNITS train_loss", [](TrainingClaim& c) { c.train_loss = -0.5; }, "which no training run has"}));

TEST(TrainingAudit, NamesTheFormulaOfAClaimedMfu) {
  TrainingClaim claim = paper();
  const double real6 = audited(claim).mfu[0].share, real4 = audited(claim).mfu[1].share;
  claim.mfu = real4;
  EXPECT_EQ(audited(claim).claimed_formula, "4N, tokens without padding");
  claim.mfu = real6 * 1.01;
  EXPECT_EQ(audited(claim).claimed_formula, "6N, tokens without padding");
  claim.mfu_formula = "4N, tokens without padding";
  EXPECT_THAT(to_text(audited(claim)), HasSubstr("\"6N, tokens without padding\" gives that"));
  claim.mfu_formula.clear();
  claim.mfu = real6 * 1.5;
  EXPECT_THAT(to_text(audited(claim)), HasSubstr("no formula gives the claimed MFU"));
}

// The data sheet's 80 GB are 80 GiB on an A100, of which CUDA reports 79.15.
TEST(TrainingAudit, AcceptsAPeakThatTheRuntimeReportsAsMemory) {
  TrainingClaim claim{.name = "A", .model = "llama2-13b", .target = "2xa100-80"};
  claim.peak_bytes = 78.0 * 1073741824.0;
  EXPECT_THAT(rules_of(audited(claim), Verdict::impossible), IsEmpty());
  claim.peak_bytes = 81.0 * 1073741824.0;
  EXPECT_THAT(rules_of(audited(claim), Verdict::impossible), testing::ElementsAre("MEMORY peak_bytes"));
}

TEST(TrainingAudit, ReadsClaimsAndRefusesUnknownMembers) {
  const test::Scratch folder;
  const fs::path file = folder.path() / "claims.json";
  write_file_atomically(file,
                        R"({"training_claims": [{"name": "A", "model": "gemma3-1b", "target": "v5e-1", "method": "lora",
    "hours": 2, "peak_gib": 12, "token_accuracy": 0.9}]})");
  EXPECT_TRUE(audit::is_training_claims(file));
  const auto claims = audit::read_training_claims(file);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].seconds, 7200);
  EXPECT_EQ(claims[0].peak_bytes, 12 * 1073741824.0);
  for (const char* bad :
       {R"({"training_claims": [{"tokens_per_sec": 1}]})", R"({"training_claims": [{"mfu": "40 %"}]})",
        R"({"training_claims": [3]})", R"({"training_claims": {}})", R"({"training_claims": [{"method": "qlora"}]})"}) {
    write_file_atomically(file, bad);
    EXPECT_THROW(audit::read_training_claims(file), Error) << bad;
  }
}

// A log of transformers with TRL's token accuracy.
TEST(TrainingAudit, ReadsLogsOfOtherPrograms) {
  const test::Scratch folder;
  const fs::path file = folder.path() / "trainer_state.json";
  const auto log = [&](double loss) {
    write_file_atomically(file,
                          R"({"max_steps": 2, "log_history": [{"step": 1, "loss": 2.0, "mean_token_accuracy": 0.5},
      {"step": 2, "loss": )" + std::to_string(loss) +
                              R"(, "mean_token_accuracy": 0.6}]})");
    return audited(training_claim(compared_log(file)));
  };
  EXPECT_THAT(log(1.5).findings, IsEmpty());
  EXPECT_THAT(rules_of(log(0.05), Verdict::impossible), Contains("LOSS-ACCURACY train_loss"));
}

}  // namespace
}  // namespace mw::compare
