// SPDX-License-Identifier: GPL-3.0-or-later
// A server under a constant number of requests, in the mean.
#include "core/plan/prediction/steady_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/plan/calibration/calibration_file.h"
#include "tests/plan/requests.h"

namespace mw::plan {
namespace {

Request qwen(int tp) {
  Request r = request("qwen3-32b", (std::to_string(tp) + "xh100").c_str(), model::Stack::vllm_gpu, {{"tp", tp}});
  r.work = Work::serve;
  r.targets.clear();
  r.serve.max_model_len = 8192;
  r.serve.max_num_batched_tokens = 8192;
  r.serve.max_num_seqs = 256;
  return r;
}

TEST(SteadyState, LittlesLawHolds) {
  for (const int users : {1, 8, 32, 100}) {
    const Request r = qwen(4);
    const SteadyState s = steady_state(ServeStepModel(r), r.serve, {users, 1024, 512});
    ASSERT_EQ(s.running, users);
    const double in_flight = s.output_tokens_per_s / 512 * (s.ttft_s + 511 * s.tpot_s);
    EXPECT_NEAR(in_flight, users, 0.06 * users);
  }
}

TEST(SteadyState, PlanMatchesTheServerModel) {
  Request r = qwen(4);
  r.serve.input_len = 3000, r.serve.output_len = 200;
  r.serve.max_num_batched_tokens = 2048;  // two chunks
  const Plan plan = predict(r);
  const ServeStepModel model(r);
  const SteadyState s = steady_state(model, r.serve, {256, 3000, 200});
  EXPECT_EQ(plan.serve->output_tokens_per_second, s.output_tokens_per_s);
  EXPECT_GT(model.request_seconds(), 0);
  const double rows = std::floor(s.running);
  EXPECT_NEAR(plan.serve->decode_step.value,
              model.seconds(
                  {.decoding = static_cast<int>(rows), .read_tokens = rows * 3100, .read_window_tokens = rows * 3100}),
              1e-9);
  EXPECT_NEAR(plan.serve->ttft.value,
              model.request_seconds() + 3000 * model.tokenize_seconds() +
                  model.seconds({.prefill_tokens = 2048, .prefilling = 1, .prefill_pairs = 2048 * 1024.0}) +
                  model.seconds({.prefill_tokens = 952, .prefilling = 1, .prefill_pairs = 952 * 2524.0}),
              1e-9);
  const StepTime& step = plan.step;
  EXPECT_NEAR(step.seconds.value, step.compute.value + step.memory.value + step.communication.value + step.fixed.value,
              1e-9);
  EXPECT_EQ(step.seconds.value, plan.serve->decode_step.value);
}

TEST(SteadyState, MoreUsersGiveMoreTokensAndLongerSteps) {
  const Request r = qwen(2);
  const ServeStepModel model(r);
  SteadyState before;
  for (const int users : {1, 2, 4, 8, 16, 32, 64}) {
    const SteadyState now = steady_state(model, r.serve, {users, 1024, 512});
    EXPECT_GT(now.output_tokens_per_s, before.output_tokens_per_s);
    EXPECT_GT(now.tpot_s, before.tpot_s);
    before = now;
  }
}

TEST(SteadyState, WhatTheCacheDoesNotHoldWaits) {
  const Request r = qwen(2);
  const ServeStepModel model(r);
  const SteadyState few = steady_state(model, r.serve, {20, 4096, 512}),
                    many = steady_state(model, r.serve, {200, 4096, 512});
  EXPECT_EQ(few.running, 20);
  EXPECT_LT(many.running, 110);
  EXPECT_GT(many.ttft_s, 10 * few.ttft_s);
  EXPECT_NEAR(many.output_tokens_per_s, steady_state(model, r.serve, {400, 4096, 512}).output_tokens_per_s, 1);
}

TEST(SteadyState, PromptsBeyondTheBudgetMakeMoreSteps) {
  Request r = qwen(2);
  const SteadyState wide = steady_state(ServeStepModel(r), r.serve, {256, 2000, 64});
  r.serve.max_num_batched_tokens = 2048;
  const SteadyState narrow = steady_state(ServeStepModel(r), r.serve, {256, 2000, 64});
  // Prompts fill every step either way: narrow steps read the weights more often.
  EXPECT_LT(narrow.output_tokens_per_s, wide.output_tokens_per_s);
  EXPECT_GT(narrow.output_tokens_per_s, 0.5 * wide.output_tokens_per_s);
}

}  // namespace
}  // namespace mw::plan
