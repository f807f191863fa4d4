// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that a row of measurements.json says, an experiment can say, with the same prediction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/model/catalogue.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/measurements.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/experiment/predict_sizes.h"

#include "tests/plan/documents/planned.h"

namespace mw::plan {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

using test::context;
using test::error_of_plan;

// The experiment that says what a row says; key names differ.
experiment::Experiment said(const Json& row) {
  experiment::Experiment e;
  const bool serves = row.value("work", "train") == "serve";
  const auto copy = [&](const char* from, const std::string& to) {
    if (row.contains(from)) e.set_value(to, row.at(from));
  };
  e.set_value("kind", serves ? "serve" : "train");
  e.set_value("train.dtype", "bf16");
  copy("model", "model.id");
  copy("target", "target.id");
  copy("stack", serves ? "serve.stack" : "train.stack");
  copy("rules", "sharding.preset");
  for (const auto& [axis, size] : row.at("mesh").items()) e.set_value("mesh." + axis, size);
  if (serves) {
    for (const char* key :
         {"max_num_seqs", "max_model_len", "max_num_batched_tokens", "memory_utilisation", "sliding_window_kv",
          "async_scheduling", "sampling", "input_len", "output_len", "kv_dtype", "products"})
      copy(key, std::string("serve.") + key);
    copy("weights", "serve.weight_dtype");
    return e;
  }
  e.set_value("train.loss_chunk", row.value("loss_chunk", 0));
  e.set_value("train.method", row.value("method", "full"));
  e.set_value("train.remat", row.value("remat", "none"));
  for (const char* key : {"batch", "accumulation", "saved", "offload", "products", "logit_bytes", "other_models"})
    copy(key, std::string("train.") + key);
  if (row.contains("compile")) e.set_value("train.compile", row.at("compile").get<bool>() ? "compiled" : "eager");
  copy("rank", "lora.rank");
  copy("alpha", "lora.alpha");
  if (row.value("dropout", false)) e.set_value("lora.dropout", 0.05);
  copy("lora_targets", "lora.targets");
  copy("max_len", "data.max_len");
  copy("mean", "data.mean_len");
  e.set_value("data.rows", row.value("count", 10000));
  const std::string rows = row.value("rows", "padded");
  e.set_value("data.packing", rows == "packed");
  e.set_value("data.padding", rows == "ragged" ? "longest" : "max_len");
  return e;
}

TEST(MeasuredTerms, EveryRowCanBeSaidByAnExperiment) {
  const std::string file = MW_RESOURCES "/hardware/measurements.json";
  const Json document = read_json(file);
  const plan::Calibration fitted = context().calibration;
  int compared = 0;
  for (plan::Measurement& m : plan::read_measurements(file, context().catalogue).rows) {
    const Json* row = nullptr;
    for (const Json& each : document.at("rows"))
      if (m.id == each.at("id") || m.id.starts_with(each.at("id").get<std::string>() + ", ")) row = &each;
    ASSERT_NE(row, nullptr) << m.id;
    const auto ids = model::catalogue_ids();
    const bool shipped = std::find(ids.begin(), ids.end(), m.request.model.id) != ids.end() &&
                         !document.at("configs").contains(m.request.model.id);
    // Configurations of the file itself are given by model.path; lengths by data.lengths; forwards are size points.
    if (!shipped || row->contains("lengths") ||
        (m.request.work != plan::Work::train && m.request.work != plan::Work::serve))
      continue;
    plan::apply(fitted, m.request);
    // An experiment sets the host time of async scheduling after the calibration.
    if (m.request.serve.scheduling == plan::Scheduling::ahead) plan::enable_async_scheduling(m.request);
    m.request.train.epochs = 0;
    m.request.train.steps = 200;
    const plan::Request request = plan_request(said(*row), context());
    const plan::Plan measured = plan::predict(m.request), planned = plan::predict(request);
    EXPECT_EQ(planned.step.seconds.value, measured.step.seconds.value) << m.id;
    EXPECT_EQ(planned.memory.at_peak.total(), measured.memory.at_peak.total()) << m.id;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

experiment::Experiment titan(const std::vector<std::string>& sets = {}) {
  experiment::Experiment e;
  experiment::apply_sets(
      e, {"kind=train", "model.id=llama3.1-8b", "target.id=8xh100", "train.stack=torchtitan", "mesh.fsdp=8",
          "train.batch=8", "train.method=full", "train.remat=layer", "train.dtype=bf16", "data.max_len=4096"});
  experiment::apply_sets(e, sets);
  return e;
}

TEST(PlanOptions, ChangeMemoryAndTime) {
  const plan::Plan plain = plan_experiment(titan(), context()).plan;
  const auto with = [&](const char* set) { return plan_experiment(titan({set}), context()).plan; };
  EXPECT_LT(with("train.products=fp8").step.seconds.value, plain.step.seconds.value);
  EXPECT_LT(with("train.saved=attention,down_proj").step.seconds.value, plain.step.seconds.value);
  EXPECT_GT(with("train.saved=attention,down_proj").memory.category_peaks[MemoryCategory::activations],
            plain.memory.category_peaks[MemoryCategory::activations]);
  EXPECT_GT(with("train.compile=eager").step.seconds.value, plain.step.seconds.value);
  EXPECT_GT(with("train.logit_bytes=16").memory.category_peaks[MemoryCategory::logits],
            plain.memory.category_peaks[MemoryCategory::logits]);
  EXPECT_GT(with("train.other_models=1").memory.at_peak[MemoryCategory::weights],
            plain.memory.at_peak[MemoryCategory::weights]);
  EXPECT_THAT(plan_experiment(titan({"train.products=fp8"}), context()).plan.sources, Contains(HasSubstr("fp8 peak")));
}

TEST(PlanOptions, AreRefusedWhereTheSoftwareLacksThem) {
  EXPECT_EQ(error_of_plan(titan({"train.offload=host"})).place, "train.offload");
  EXPECT_EQ(error_of_plan(titan({"train.products=fp8", "target.id=8xa100-80"})).place, "train.products");
  EXPECT_EQ(error_of_plan(titan({"train.stack=megatron", "train.compile=eager"})).place, "train.compile");
  EXPECT_EQ(error_of_plan(titan({"train.stack=trl-fsdp", "train.saved=q_proj"})).place, "train.saved");
  // The checker says the same as the plan.
  const plan::Diagnosis d = diagnostics(titan({"train.offload=host"}), context());
  ASSERT_FALSE(d.found.empty());
  EXPECT_EQ(d.found.front().problem.id, "PLAN-OPTION");
}

TEST(PlanOptions, ServersSetDefaultsThatTheDocumentLeavesOut) {
  experiment::Experiment e;
  experiment::apply_sets(e, {"kind=serve", "model.id=gemma4-31b", "target.id=2xh100", "mesh.tp=2", "train.dtype=bf16",
                             "serve.stack=tensorrt-llm"});
  const options::Serving trt = e.config().serve;
  EXPECT_EQ(trt.block_size, 32);
  EXPECT_EQ(trt.max_num_batched_tokens, 8192);
  EXPECT_FALSE(trt.chunked_prefill);
  EXPECT_TRUE(trt.async_scheduling);
  e.set_value("serve.block_size", 64);
  EXPECT_EQ(e.config().serve.block_size, 64);
  e.set_value("serve.stack", "sglang");
  EXPECT_TRUE(e.config().serve.chunked_prefill);
  EXPECT_GT(plan_experiment(e, context()).plan.serve->kv_tokens, 0);
}

TEST(PlanPrices, WarnOfOldOnesAndMarkUnverifiedOnes) {
  const ExperimentPlan old = plan_experiment(titan(), context());  // listed in May 2026
  EXPECT_THAT(old.problems, Contains(Field(&Problem::id, "PRICE-OLD")));
  EXPECT_THAT(planned_text(old), HasSubstr("warning PRICE-OLD: price.usd_per_chip_hour: the price may have changed"));
  bool in_json = false;
  const Json json = planned_json(old);
  for (const Json& d : json["diagnostics"]) in_json = in_json || d["id"] == "PRICE-OLD";
  EXPECT_TRUE(in_json);
  EXPECT_EQ(json["price"]["amount"], old.request.price.usd_per_chip_hour);
  EXPECT_EQ(json["price"]["currency"], "USD");
  EXPECT_EQ(json["price"]["per"], "chip-hour");
  EXPECT_EQ(json["price"]["date"], "2026-05");
  EXPECT_EQ(json["price"]["source"], old.request.price.source);
  EXPECT_GT(json["price"]["age_days"].get<int>(), hardware::kPriceDays);
  EXPECT_TRUE(json["price"]["stale"].get<bool>());
  const ExperimentPlan own = plan_experiment(titan({"price.usd_per_chip_hour=2"}), context());
  EXPECT_THAT(own.problems, testing::Not(Contains(Field(&Problem::id, "PRICE-OLD"))));
  const Json own_price = planned_json(own)["price"];
  EXPECT_EQ(own_price["amount"], 2);
  EXPECT_FALSE(own_price["stale"].get<bool>());
  EXPECT_TRUE(own_price["date"].is_null() && own_price["age_days"].is_null());
  const ExperimentPlan today =
      plan_experiment(titan({"price.usd_per_chip_hour=2", "price.date=2999-01-01"}), context());
  EXPECT_THAT(today.problems, testing::Not(Contains(Field(&Problem::id, "PRICE-OLD"))));
  const ExperimentPlan aged = plan_experiment(titan({"price.usd_per_chip_hour=2", "price.date=2024-03"}), context());
  EXPECT_THAT(aged.problems, Contains(Field(&Problem::id, "PRICE-OLD")));
  EXPECT_EQ(planned_json(aged)["price"]["date"], "2024-03");
  EXPECT_EQ(error_of_plan(titan({"price.date=soon"})).place, "price.date");
  const ExperimentPlan unpublished = plan_experiment(titan({"target.id=8xh20"}), context());
  EXPECT_TRUE(planned_json(unpublished)["price"].is_null());
  EXPECT_THAT(unpublished.problems, Contains(Field(&Problem::id, "PRICE-NONE")));
  EXPECT_EQ(unpublished.plan.run.usd.value, 0);
  const ExperimentPlan own_h20 = plan_experiment(titan({"target.id=8xh20", "price.usd_per_chip_hour=2"}), context());
  EXPECT_THAT(own_h20.problems, testing::Not(Contains(Field(&Problem::id, "PRICE-NONE"))));
  const ExperimentPlan mi355x = plan_experiment(titan({"target.id=8xmi355x"}), context());
  EXPECT_THAT(mi355x.plan.sources, Contains(HasSubstr("(unverified)")));
}

TEST(PlanOptions, OtherModelsTakeMemoryInSizes) {
  experiment::Experiment e;
  experiment::apply_sets(e, {"kind=size", "model.id=gemma3-1b", "target.id=v5e-1", "size.batches=[4]"});
  const auto weights = [&](const char* set) {
    experiment::apply_sets(e, {set});
    std::vector<std::int64_t> out;
    predict_sizes(predicted_sizes(e, context()), [&](const serve::MeasuredSize& point) {
      out.push_back(point.predicted[MemoryCategory::weights].value);
    });
    return out;
  };
  const auto alone = weights("train.other_models=0"), twice = weights("train.other_models=1");
  ASSERT_FALSE(alone.empty());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(twice[i], 2 * alone[i]);
}

TEST(MultiSlicePlan, PutsADataAxisOverTheSlicesAndIsPriced) {
  experiment::Experiment e;
  experiment::apply_sets(e, {"kind=train", "model.id=llama3.1-8b", "target.id=2xv5p-8", "train.stack=maxtext",
                             "train.batch=8", "train.method=full", "train.remat=layer"});
  const ExperimentPlan p = plan_experiment(e, context());
  EXPECT_EQ(p.request.mesh.size("data"), 2);
  EXPECT_EQ(p.request.mesh.size("fsdp"), 4);
  EXPECT_DOUBLE_EQ(p.plan.run.usd_per_hour, 8 * 4.20);
}

}  // namespace
}  // namespace mw::plan
