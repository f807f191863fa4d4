// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <cmath>

#include "core/jobs/sweep_run.h"
#include "core/serve/load/sweep.h"

namespace mw::jobs {
namespace {

experiment::Experiment experiment(Json sweep) {
  return experiment::Experiment::from_json(
      {{"schema", 1}, {"kind", "serve"}, {"model", {{"id", "gemma3-1b"}}}, {"sweep", std::move(sweep)}});
}

std::string place_of_error(const experiment::Experiment& e) {
  try {
    serve::sweep_settings(e.config());
  } catch (const Error& error) {
    return error.problem().place;
  }
  return "no error";
}

TEST(SweepSettings, KeepsTheOrderOfUniqueRatesAndAcceptsInf) {
  const auto s =
      serve::sweep_settings(experiment({{"request_rates", {8, "inf", 1, 8}}, {"input_lens", {1024, 128}}}).config());
  EXPECT_EQ(s.request_rates, (std::vector<double>{8, INFINITY, 1}));
  EXPECT_EQ(s.input_lens, (std::vector<int>{1024, 128}));
}

TEST(SweepSettings, EveryErrorNamesItsKey) {
  EXPECT_EQ(place_of_error(experiment({{"request_rates", {0}}})), "sweep.request_rates");
  EXPECT_EQ(place_of_error(experiment({{"request_rates", {"fast"}}})), "sweep.request_rates");
  EXPECT_EQ(place_of_error(experiment({{"request_rates", Json::array()}})), "sweep.request_rates");
  EXPECT_EQ(place_of_error(experiment({{"input_lens", {12.5}}})), "sweep.input_lens");
  EXPECT_EQ(place_of_error(experiment({{"arrival", "closed"}})), "sweep.concurrency");
  EXPECT_EQ(place_of_error(experiment({{"lengths", "recorded"}})), "sweep.workload");
  EXPECT_EQ(place_of_error(experiment({{"input_lens", {4090}}})), "serve.max_model_len");
}

// Without chunks, a step of the server must hold a whole prompt; otherwise every request of the sweep would fail.
TEST(SweepSettings, RefusesPromptsThatNoStepHoldsWithoutChunkedPrefill) {
  experiment::Experiment e = experiment({{"input_lens", {256, 1024}}});
  e.set_value("serve.max_num_batched_tokens", 512);
  EXPECT_EQ(place_of_error(e), "no error");
  e.set_value("serve.chunked_prefill", false);
  EXPECT_EQ(place_of_error(e), "serve.max_num_batched_tokens");
  e.set_value("serve.max_num_batched_tokens", 1024);
  EXPECT_EQ(place_of_error(e), "no error");
  e.set_value("sweep.lengths", "uniform");
  e.set_value("sweep.spread", 0.5);
  EXPECT_EQ(place_of_error(e), "serve.max_num_batched_tokens");
}

TEST(SweepSettings, NumbersOfRequestsMayDependOnTheLength) {
  const auto s = serve::sweep_settings(
      experiment({{"input_lens", {128, 1024}}, {"num_prompts", 30}, {"num_prompts_at", {"1024:6"}}}).config());
  EXPECT_EQ(s.num_prompts(128), 30);
  EXPECT_EQ(s.num_prompts(1024), 6);
  EXPECT_EQ(s.fewest_prompts(), 6);
  for (const char* text : {"6", "1024:", ":6", "1024:0", "1024:6:1", "0:6"})
    EXPECT_EQ(place_of_error(experiment({{"num_prompts_at", {text}}})), "sweep.num_prompts_at") << text;
}

TEST(SweepSettings, TheBackendFollowsTheTargetByDefault) {
  experiment::Experiment e = experiment(Json::object());
  EXPECT_EQ(serve::sweep_backend(e.config()), options::SweepBackend::engine);
  e.set("target.id", "v6e-8");
  EXPECT_EQ(serve::sweep_backend(e.config()), options::SweepBackend::model);
  e.set("sweep.backend", "http");
  EXPECT_EQ(serve::sweep_backend(e.config()), options::SweepBackend::http);
}

TEST(SweepSettings, RecordsTheConditionsOfASweep) {
  const auto context = plan::PlanContext::load(std::filesystem::path(MW_RESOURCES) / "hardware");
  experiment::Experiment e = experiment(Json::object());
  e.set("target.id", "v6e-8");
  e.set("serve.kv_dtype", "fp8");
  e.set("price.usd_per_chip_hour", "2.5");
  const formats::BenchSet set = serve::sweep_facts(e.config(), context.catalogue);
  EXPECT_EQ(set.provenance, formats::ResultProvenance::predicted);
  EXPECT_EQ(set.chips, 8);
  EXPECT_EQ(set.usd_per_hour, 20);
  EXPECT_EQ(set.conditions.at("kv_dtype"), "fp8");
  EXPECT_EQ(set.conditions.at("prefix_cache"), "on");
  e.set("sweep.backend", "http");
  e.set("sweep.url", "http://127.0.0.1:8000");
  const formats::BenchSet http = serve::sweep_facts(e.config(), context.catalogue);
  EXPECT_EQ(http.provenance, formats::ResultProvenance::measured);
  EXPECT_FALSE(http.conditions.contains("kv_dtype")) << "of a server somewhere else that is not known";
}

}  // namespace
}  // namespace mw::jobs
