// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/distributed/cluster.h"
#include "core/plan/document/engine_request.h"

#include <gtest/gtest.h>

#include "core/engine/kernels/packed.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/jobs/model_server.h"
#include "core/plan/experiment/experiment_plan.h"
#include "tests/shipped.h"

namespace mw::jobs {
namespace {

experiment::Experiment shipped_server() {
  return experiment::Experiment::load(MW_RESOURCES "/examples/tiny-serve.json");
}

TEST(EngineServer, IsPredictedExactly) {
  for (const char* windows : {"true", "false"}) {
    experiment::Experiment e = shipped_server();
    e.set("serve.sliding_window_kv", windows);
    const ServedModel real = load_served(e);
    const auto executor = make_executor(real);
    const Ledger held = real.model.cluster->network(0).device().arena.use().now;
    const plan::DeviceMemory planned = plan::plan_experiment(e, test::context()).plan.memory;
    const serve::SchedulerSettings settings = plan::engine_server(e.config(), real.model.cluster->network(0).config());
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      EXPECT_EQ(planned.at_peak[category].value, held[category].value) << to_string(category);
    }
    EXPECT_GT(held[MemoryCategory::kv_cache].value, 0);
    EXPECT_EQ(settings.kv.capacity, real.settings.kv.capacity);
    EXPECT_EQ(settings.max_model_len, real.settings.max_model_len);
  }
}

TEST(EngineServer, UsesHalfOfTheFreeMemoryOfASmallMachine) {
  experiment::Experiment e = shipped_server();
  const model::Config config = formats::model_config(e.config().model);
  const serve::SchedulerSettings roomy = plan::engine_server(e.config(), config);
  e.set("target.memory_gib", "0.035");
  const serve::SchedulerSettings small = plan::engine_server(e.config(), config);
  EXPECT_LT(small.kv.capacity, roomy.kv.capacity);
  EXPECT_TRUE(plan::plan_experiment(e, test::context()).plan.memory.fits());
  EXPECT_EQ(small.kv.capacity, load_served(e).settings.kv.capacity);
}

TEST(EngineServer, MatchesThePlanOfALocalServer) {
  const experiment::Experiment e = shipped_server();
  const plan::ExperimentPlan planned = plan::plan_experiment(e, test::context());
  const serve::SchedulerSettings server = plan::engine_server(e.config(), formats::model_config(e.config().model));
  EXPECT_EQ(planned.plan.memory.at_peak[MemoryCategory::runtime].value, 0) << "there is no CUDA context";
  EXPECT_NEAR(static_cast<double>(planned.plan.serve->kv_tokens) * planned.plan.serve->kv_bytes_per_token,
              static_cast<double>(server.kv.capacity.value), planned.plan.serve->kv_bytes_per_token);
}

}  // namespace
}  // namespace mw::jobs
