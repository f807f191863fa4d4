// SPDX-License-Identifier: GPL-3.0-or-later
// Experiments that no stack starts: the plan refuses them with one error, whose fix leads to a plan that runs.
#include <gmock/gmock.h>

#include "core/experiment/bound_experiment.h"
#include "core/jobs/sweep_run.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/search/smallest_changes.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

using experiment::Experiment;
using test::context;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Sets = std::vector<std::string>;

Experiment made(const char* document, const Sets& sets) {
  Experiment e = Experiment::from_json(parse_json(document, "test"));
  experiment::apply_sets(e, sets);
  return e;
}
Experiment trl(const Sets& sets) {
  return made(
      R"({"model": {"id": "gemma3-1b"}, "target": {"id": "4xh100"}, "train": {"stack": "trl-fsdp", "batch": 4}})",
      sets);
}
Experiment server(const Sets& sets) {
  return made(R"({"kind": "serve", "model": {"id": "gemma4-31b"}, "target": {"id": "8xh100"}, "mesh": {"tp": 8}})",
              sets);
}
Experiment example(const std::string& name, const Sets& sets) {
  Experiment e = Experiment::load(std::filesystem::path(MW_RESOURCES) / "examples" / (name + ".json"));
  experiment::apply_sets(e, sets);
  return e;
}

std::vector<std::string> refused_ids(const ExperimentPlan& planned) {
  std::vector<std::string> ids;
  for (const Problem& p : planned.plan.refusals) ids.push_back(p.id);
  return ids;
}

const Diagnostic& refusal(const ExperimentPlan& planned) {
  const auto& found = planned.diagnosis.found;
  const auto at = std::find_if(found.begin(), found.end(),
                               [](const Diagnostic& d) { return lint::is_refusal(d.problem.id, d.problem.severity); });
  EXPECT_NE(at, found.end());
  return *at;
}

// Refused for `id` alone, without times and price; each fix of the checker leads to a plan that is not refused.
void refuses(const std::string& id, const Experiment& e) {
  SCOPED_TRACE(id + "\n" + e.text());
  const ExperimentPlan planned = plan_experiment(e, context());
  EXPECT_THAT(refused_ids(planned), testing::ElementsAre(id));
  EXPECT_FALSE(planned.plan.fits());
  const Json json = planned_json(planned);
  EXPECT_FALSE(json["fits"].get<bool>());
  EXPECT_EQ(json["refusals"][0]["id"], id);
  EXPECT_TRUE(json["run"]["usd"].is_null());
  EXPECT_TRUE(json["run"]["hours"].is_null());
  EXPECT_THAT(planned_text(planned), testing::AllOf(HasSubstr("cannot run"), Not(HasSubstr("\nrun:"))));
  const Diagnostic& d = refusal(planned);
  EXPECT_EQ(d.problem.id, id);
  ASSERT_FALSE(d.fixes.empty());
  for (const lint::Fix& fix : d.fixes) {
    Experiment fixed = e;
    apply(fixed, fix);
    EXPECT_THAT(refused_ids(plan_experiment(fixed, context())), testing::IsEmpty()) << set_text(fix);
  }
}

void runs(const Experiment& e) {
  EXPECT_THAT(refused_ids(plan_experiment(e, context())), testing::IsEmpty()) << e.text();
}

TEST(Refusals, AxesThatReplicateSilently) {
  for (const char* axis : {"tp", "pp", "cp", "ep", "dp"})
    refuses("MESH-2", trl({"mesh.fsdp=2", std::string("mesh.") + axis + "=2"}));
  runs(trl({"mesh.fsdp=4"}));
  runs(trl({"mesh.fsdp=2", "mesh.data=2"}));
  const ExperimentPlan planned = plan_experiment(trl({"mesh.fsdp=2", "mesh.tp=2"}), context());
  EXPECT_EQ(set_text(refusal(planned).fixes.at(0)), "--set mesh.tp=1 --set mesh.fsdp=4");
}

TEST(Refusals, ExpertsAreSharedOutOverEpOnly) {
  const auto served = [](const char* model) {
    return server({std::string("model.id=") + model, "target.id=8xh100", "mesh.tp=1", "mesh.ep=8"});
  };
  runs(served("qwen3-30b-a3b"));
  refuses("MESH-2", served("qwen3-32b"));  // no experts
}

TEST(Refusals, AServerNeverGetsAnFsdpAxisAndSweepRefusesWhatPlanRefuses) {
  const Experiment e = server({"target.id=3xh100", "mesh.tp=3"});
  const ExperimentPlan planned = plan_experiment(e, context());
  EXPECT_FALSE(planned.plan.refusals.empty());
  for (const Diagnostic& d : planned.diagnosis.found)
    for (const lint::Fix& fix : d.fixes) EXPECT_THAT(set_text(fix), Not(HasSubstr("fsdp")));
  try {
    jobs::make_backend(e, context(), [](const auto&) {});
    FAIL() << "the sweep runs";
  } catch (const Error& error) {
    EXPECT_EQ(error.problem().id, "TP-1");
  }
  refuses("MESH-2", server({"mesh.tp=4", "mesh.fsdp=2"}));
}

TEST(Refusals, AServerThatDoesNotFitIsNotToldToRecomputeLayers) {
  const ExperimentPlan planned = plan_experiment(server({"target.id=1xh100", "mesh.tp=1"}), context());
  for (const Problem& p : planned.plan.problems) EXPECT_THAT(p.fix, Not(HasSubstr("remat")));
}

TEST(Refusals, LimitsOfAServer) {
  refuses("SERVE-1", example("paper-serve-2xh100", {"serve.chunked_prefill=false", "serve.max_num_batched_tokens=512",
                                                    "serve.max_num_seqs=256"}));
  runs(example("paper-serve-2xh100", {"serve.chunked_prefill=false", "serve.max_num_batched_tokens=16384"}));
  refuses("SERVE-2", example("paper-serve-2xh100", {"serve.max_num_batched_tokens=32", "serve.max_num_seqs=64"}));
  refuses("SERVE-3", example("paper-serve-2xh100", {"model.id=llama2-7b", "serve.max_model_len=32768"}));
  runs(example("paper-serve-2xh100", {"model.id=llama2-7b", "serve.max_model_len=4096"}));
}

TEST(Refusals, AKvCacheThatHoldsNoRequest) {
  // 58.6 GiB of weights in 79.7 GiB, of which 0.8 may be used.
  const Experiment e = server({"target.id=1xh200", "mesh.tp=1", "serve.memory_utilisation=0.47"});
  const ExperimentPlan planned = plan_experiment(e, context());
  EXPECT_THAT(refused_ids(planned), Contains("SERVE-4"));
  EXPECT_FALSE(planned.plan.fits());
  EXPECT_LT(planned.plan.serve->longest_request, 4096);
  const Experiment tight = server({"target.id=1xh200", "mesh.tp=1", "serve.max_model_len=262144"});
  const ExperimentPlan long_requests = plan_experiment(tight, context());
  if (!long_requests.plan.refusals.empty()) refuses("SERVE-4", tight);
}

TEST(Refusals, PlannedRequestsThatTheServerRejectsAreAWarning) {
  const auto ids = [](const Experiment& e) {
    std::vector<std::string> out;
    for (const Diagnostic& d : plan_experiment(e, context()).diagnosis.found) out.push_back(d.problem.id);
    return out;
  };
  const Experiment long_requests = server({"serve.max_model_len=1024", "serve.input_len=1024", "serve.output_len=128"});
  runs(long_requests);
  EXPECT_THAT(ids(long_requests), Contains("SERVE-5"));
  for (const Diagnostic& d : plan_experiment(long_requests, context()).diagnosis.found)
    if (d.problem.id == "SERVE-5")
      for (const lint::Fix& fix : d.fixes) {
        Experiment fixed = long_requests;
        apply(fixed, fix);
        EXPECT_THAT(ids(fixed), Not(Contains("SERVE-5"))) << set_text(fix);
      }
  EXPECT_THAT(ids(server({"serve.max_model_len=1152", "serve.input_len=1024", "serve.output_len=128"})),
              Not(Contains("SERVE-5")));
}

TEST(Refusals, Int8Training) {
  refuses("DTYPE-2", trl({"mesh.fsdp=4", "train.dtype=int8"}));
  refuses("DTYPE-2", trl({"mesh.fsdp=4", "train.dtype=int8", "train.method=full"}));
  runs(server({"train.dtype=int8"}));
}

TEST(Refusals, KvHeadsThatDoNotDivideAreNeitherFittingNorPriced) {
  const Experiment e = example("paper-train-v5p-8", {"target.id=v5p-16", "mesh.tp=8", "train.batch=2"});
  const ExperimentPlan planned = plan_experiment(e, context());
  EXPECT_EQ(refusal(planned).problem.id, "TP-2");
  EXPECT_FALSE(planned_json(planned)["fits"].get<bool>());
  EXPECT_TRUE(planned_json(planned)["run"]["usd"].is_null());
  EXPECT_FALSE(planned.tco);
}

TEST(Retarget, ChoosesALegalMeshAndDropsTheMeasurementOfAnotherTarget) {
  const Experiment paper = example("paper-train-v5p-8", {});
  Experiment moved = paper;
  retarget(moved, "v5p-16", context());
  const ExperimentPlan planned = plan_experiment(moved, context());
  EXPECT_TRUE(planned.plan.refusals.empty());
  EXPECT_EQ(planned.request.mesh.size("tp"), 4);
  EXPECT_EQ(planned.measured_hours, 0);
  EXPECT_FALSE(planned.measured_tco);
}

TEST(Retarget, SaysWhatComesAlongAndOffersTheExperimentOfTheTarget) {
  const Experiment paper = example("paper-train-v5p-8", {});
  Experiment moved = paper;
  retarget(moved, "2xh100", context());
  EXPECT_EQ(moved.value("train.batch"), 2);  // one row per device, and eight per step as before
  EXPECT_EQ(moved.value("train.accumulation"), 4);
  const CarriedAssumptions carried = carried_assumptions(paper, moved, context());
  const Json json = to_json(carried);
  EXPECT_EQ(json["kept"]["train.remat"], "layer");
  EXPECT_FALSE(json["kept"].contains("train.stack"));
  std::vector<std::string> changed;
  for (const ChangedValue& c : carried.changed) changed.push_back(c.key);
  EXPECT_THAT(changed, testing::IsSupersetOf({"train.stack", "train.batch", "lora.module_path", "measured.hours"}));
  ASSERT_TRUE(carried.other);
  EXPECT_EQ(carried.other->file.filename(), "paper-train-2xh100.json");
  EXPECT_NEAR(carried.other->seconds, 15.5, 1.5);  // as measured
  EXPECT_THAT(to_text(carried), testing::AllOf(HasSubstr("train.remat layer"), HasSubstr("train.stack tunix to"),
                                               HasSubstr("paper-train-2xh100.json is written for 2xh100")));
}

TEST(Fixes, PackingPromisesThePlanAfterIt) {
  for (const char* name : {"paper-train-v5p-8", "paper-train-2xh100", "torchax-gemma2-2b-alpaca"}) {
    const Experiment e = example(name, {});
    const ExperimentPlan before = plan_experiment(e, context());
    const auto& found = before.diagnosis.found;
    const auto pad = std::find_if(found.begin(), found.end(), [](const auto& d) { return d.problem.id == "PAD-1"; });
    ASSERT_NE(pad, found.end()) << name;
    const lint::Fix& fix = pad->fixes.at(0);
    Experiment packed = e;
    apply(packed, fix);
    const ExperimentPlan after = plan_experiment(packed, context());
    EXPECT_LT(after.plan.run.hours.value, 0.5 * before.plan.run.hours.value) << name;
    EXPECT_DOUBLE_EQ(fix.outcome->hours, after.plan.run.hours.value);
    EXPECT_THAT(fix.cost, HasSubstr(to_text(Usd(before.plan.run.usd.value - after.plan.run.usd.value)) + " less"));
  }
}

TEST(Fixes, MaterialisedScoresThatDoNotFitAreOfferedFusedAttention) {
  const Experiment e = example("paper-train-v5p-8", {"data.max_len=131072"});
  const ExperimentPlan planned = plan_experiment(e, context());
  ASSERT_FALSE(planned.plan.memory.fits());
  const auto& found = planned.diagnosis.found;
  const auto memory = std::find_if(found.begin(), found.end(), [](const auto& d) { return d.problem.id == "MEMORY"; });
  ASSERT_NE(memory, found.end());
  ASSERT_FALSE(memory->fixes.empty());
  EXPECT_THAT(set_text(memory->fixes.front()), HasSubstr("train.attention=fused"));
  Experiment fixed = e;
  apply(fixed, memory->fixes.front());
  EXPECT_TRUE(plan_experiment(fixed, context()).plan.memory.fits());
}

TEST(Fixes, ChangesOfTimeAreWordedByTheirSize) {
  EXPECT_EQ(slowdown_text(0.3), "30 % slower");
  EXPECT_EQ(slowdown_text(1.5), "2.5 times as slow");
  EXPECT_EQ(slowdown_text(-0.2), "20 % less time");
  EXPECT_EQ(slowdown_text(-0.97), "33.3 times as fast");
  EXPECT_EQ(slowdown_text(0.001), "as fast");
}

TEST(ServedPlan, TellsDecodeStepsFromTheTimePerTokenUnderLoad) {
  const ExperimentPlan planned = plan_experiment(server({}), context());
  const Json serve = planned_json(planned)["serve"];
  EXPECT_GT(serve["tpot_under_load_ms"].get<double>(), serve["tpot_ms"].get<double>());
  EXPECT_GE(serve["running"].get<double>(), 1);
  EXPECT_THAT(planned_text(planned), testing::AllOf(HasSubstr("for a step that only decodes"), HasSubstr("(TPOT)")));
}

TEST(ServedPlan, TextHasThePriceOfTheJson) {
  const ExperimentPlan planned = plan_experiment(server({"price.usd_per_chip_hour=3"}), context());
  const double each = planned_json(planned)["serve"]["usd_per_million_output_tokens"].get<double>();
  EXPECT_THAT(planned_text(planned), HasSubstr(" an hour, " + to_text(Usd(each)) + " per million output tokens"));
}

}  // namespace
}  // namespace mw::plan
