// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/engine_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/serve/scheduling/engine_executor.h"
#include "tests/engine/tiny_model.h"

namespace mw::serve {
namespace {

class EngineBackendTest : public ::testing::Test {
 protected:
  EngineBackendTest() : device_(Bytes(0), 2), network_(engine::test::tiny_config(), device_, model::WeightType::f32) {
    engine::test::fill(network_, 8, 0.25f);
  }
  std::unique_ptr<LoadBackend> backend(int seqs = 8) {
    SchedulerSettings s{.max_num_seqs = seqs, .max_num_batched_tokens = 64, .max_model_len = 96, .kv = {}};
    s.kv.block_size = 4;
    return make_engine_backend(network_, lay_out_engine_kv(network_.config(), s, Bytes(0)),
                               {.first_id = 3, .vocab = 61});
  }
  static options::LoadSettings settings(double rate = 400) {
    options::LoadSettings s;
    s.request_rate = rate, s.input_len = 20, s.output_len = 10, s.num_prompts = 30;
    return s;
  }
  engine::Device device_;
  engine::Network network_;
};

TEST_F(EngineBackendTest, TimesOpenLoopRequestsFromTheirIntendedTime) {
  options::LoadSettings s = settings();
  s.warmups = 3;
  const Load load = make_load(s);
  long last = 0;
  const LoadResult result = backend()->run(load,
                                           [&](long done, long total) {
                                             EXPECT_LE(done, total);
                                             last = done;
                                           },
                                           {});
  EXPECT_EQ(last, 30);
  ASSERT_EQ(result.requests.size(), 30u);
  double end = 0;
  for (size_t i = 0; i < 30; ++i) {
    const formats::RequestResult& r = result.requests[i];
    EXPECT_TRUE(r.completed()) << r.error;
    EXPECT_DOUBLE_EQ(r.intended_s, load.requests[i].at_s);
    EXPECT_GE(r.sent_s, r.intended_s - 1e-4);
    EXPECT_GE(r.scheduled_s, r.sent_s);
    EXPECT_GE(r.first_token_s, r.scheduled_s);
    EXPECT_GE(r.end_s, r.first_token_s);
    EXPECT_EQ(r.prompt_tokens, 20);
    EXPECT_EQ(r.output_tokens, 10);
    EXPECT_EQ(r.gaps_ms.size(), 9u);
    end = std::max(end, r.end_s);
  }
  EXPECT_NEAR(result.duration_s, end - load.requests.front().at_s, 1e-9);
  EXPECT_EQ(result.prefix_hits, 0) << "salted prompts";
  double tokens = 0, sampled = 0;
  for (const formats::TimedStep& step : result.steps) {
    EXPECT_GT(step.seconds, 0);
    EXPECT_LE(step.work.requests, 8);
    tokens += step.count * step.work.tokens, sampled += step.count * step.work.sampled;
  }
  EXPECT_NEAR(sampled, 30 * 10, 1e-6) << "the tokens of all completions without the warm-ups";
  EXPECT_NEAR(tokens, 30 * (20 + 9), 1e-6);
}

TEST_F(EngineBackendTest, ClosedLoopKeepsItsConcurrency) {
  options::LoadSettings s = settings();
  s.arrival = options::Arrival::closed, s.concurrency = 3;
  const LoadResult result = backend()->run(make_load(s), {}, {});
  ASSERT_EQ(result.requests.size(), 30u);
  for (const formats::RequestResult& r : result.requests) {
    EXPECT_EQ(r.intended_s, r.sent_s);
    int others = 0;
    for (const formats::RequestResult& o : result.requests) others += o.sent_s <= r.sent_s && o.end_s > r.sent_s;
    EXPECT_LE(others, 3);
  }
}

TEST_F(EngineBackendTest, ReplayedPromptsHitThePrefixCacheOfTheLastLoad) {
  options::LoadSettings s = settings();
  s.prompts = options::PromptMode::replayed, s.num_prompts = 3;
  const auto server = backend();
  EXPECT_EQ(server->run(make_load(s), {}, {}).prefix_hits, 0);
  const LoadResult again = server->run(make_load(s), {}, {});
  EXPECT_NEAR(again.prefix_hits, 16.0 / 20, 1e-9) << "four of five blocks; at least one token is computed";
  for (const formats::RequestResult& r : again.requests) EXPECT_EQ(r.cached_tokens, 16);
}

TEST_F(EngineBackendTest, StopKeepsCompletedRequestsAndTheBackendUsable) {
  const auto server = backend(2);
  options::LoadSettings s = settings(2000);
  s.num_prompts = 2000, s.output_len = 60;
  std::stop_source stop;
  const LoadResult cut = server->run(
      make_load(s),
      [&](long done, long) {
        if (done >= 5) stop.request_stop();
      },
      stop.get_token());
  EXPECT_GE(cut.requests.size(), 5u);
  EXPECT_LT(cut.requests.size(), 2000u);
  for (const formats::RequestResult& r : cut.requests) EXPECT_EQ(r.output_tokens, 60);
  EXPECT_EQ(server->run(make_load(settings()), {}, {}).requests.size(), 30u);
}

TEST_F(EngineBackendTest, RequestsLongerThanTheContextFailWithoutTimes) {
  options::LoadSettings s = settings();
  s.input_len = 90, s.num_prompts = 3;
  const LoadResult result = backend()->run(make_load(s), {}, {});
  ASSERT_EQ(result.requests.size(), 3u);
  for (const formats::RequestResult& r : result.requests) {
    EXPECT_FALSE(r.completed());
    EXPECT_TRUE(std::isnan(r.first_token_s));
  }
}

}  // namespace
}  // namespace mw::serve
