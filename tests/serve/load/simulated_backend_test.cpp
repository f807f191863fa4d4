// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/simulated_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/plan/requests.h"
#include "tests/serve/load/linear_cost_backend.h"

namespace mw::serve {
namespace {

// Fitted to published measurements of Qwen3-32B bf16 with vLLM on two H100.
constexpr LinearCost kQwen{
    .base = 14.53e-3, .per_sequence = 0.038e-3, .per_read_token = 56.9e-9, .per_prompt_token = 57.1e-6};

TEST(StepLoad, CountsPairsAndReads) {
  const Step step{.items = {{RequestId{1}, 100, 1, true},
                            {RequestId{2}, 5, 1, true},
                            {RequestId{3}, 7, 9, false},
                            {RequestId{4}, 0, 1, true}},
                  .preempted = {},
                  .rejected = {}};
  const int window = 10;
  const plan::StepLoad l = step_load(step, window);
  double pairs = 1, in_window = 1;  // of request 4
  for (int i = 7; i < 16; ++i) pairs += i + 1, in_window += std::min(i + 1, window);
  EXPECT_EQ(l.decoding, 2);
  EXPECT_EQ(l.prefilling, 2);
  EXPECT_EQ(l.prefill_tokens, 10);
  EXPECT_EQ(l.prefill_pairs, pairs);
  EXPECT_EQ(l.prefill_window_pairs, in_window);
  EXPECT_EQ(l.read_tokens, 105);
  EXPECT_EQ(l.read_window_tokens, 15);
  EXPECT_EQ(step_load(step, 0).prefill_window_pairs, 0);
}

TEST(SimulatedBackend, SingleRequestTakesTheStepsOfTheModel) {
  plan::Request request = plan::request("gemma3-1b", "v6e-1", model::Stack::vllm_tpu, {{"tp", 1}});
  request.work = plan::Work::serve;
  request.targets.clear();
  SchedulerSettings settings{.max_num_seqs = 8, .max_num_batched_tokens = 2048, .max_model_len = 4096, .kv = {}};
  const auto p =
      run_load(*make_cost_model_backend(request, settings), {.input_len = 3000, .output_len = 3, .num_prompts = 1});
  const CostModelExecutor executor(request);
  const int window = executor.model().window();
  ASSERT_GT(window, 0);
  const auto seconds = [&](int first, int count) {
    const Step step{.items = {{RequestId{0}, first, count, first + count >= 3000}}, .preempted = {}, .rejected = {}};
    return executor.model().seconds(step_load(step, window));
  };
  const double host = executor.model().request_seconds() + 3000 * executor.model().tokenize_seconds();
  EXPECT_GT(host, 0);
  EXPECT_NEAR(p.ttft.mean * 1e-3, host + seconds(0, 2048) + seconds(2048, 952), 1e-12);
  ASSERT_EQ(p.requests.at(0).gaps_ms.size(), 2u);
  EXPECT_NEAR(p.requests[0].gaps_ms[0] * 1e-3, seconds(3000, 1), 1e-6 * seconds(3000, 1));
  EXPECT_NEAR(p.requests[0].gaps_ms[1] * 1e-3, seconds(3001, 1), 1e-6 * seconds(3001, 1));
}

// With steps of 1 s, the second request arrives during the first step of the first one.
Load two_requests() {
  Load load;
  load.settings.num_prompts = 2;
  load.requests = {{.id = 0, .at_s = 0, .prompt_len = 1, .output_len = 8, .prompt_seed = 1},
                   {.id = 1, .at_s = 0.5, .prompt_len = 1, .output_len = 8, .prompt_seed = 2}};
  return load;
}
std::vector<formats::RequestResult> served(HostOverheads host) {
  const auto server =
      make_simulated_backend(std::make_unique<LinearExecutor>(LinearCost{.base = 1}), roomy(4, 64), host);
  return server->run(two_requests(), {}, {}).requests;
}

TEST(SimulatedBackend, StepPlannedAheadMissesLaterArrivals) {
  const auto between = served({}), ahead = served({.scheduling = plan::Scheduling::ahead});
  EXPECT_DOUBLE_EQ(between.at(0).first_token_s, 1);
  EXPECT_DOUBLE_EQ(ahead.at(0).first_token_s, 1);  // an idle server begins at once
  EXPECT_DOUBLE_EQ(between.at(1).first_token_s, 2);
  EXPECT_DOUBLE_EQ(ahead.at(1).first_token_s, 3);  // the step at 1 was planned at 0
  EXPECT_DOUBLE_EQ(ahead.at(1).end_s - ahead.at(1).first_token_s, 7);
}

TEST(SimulatedBackend, HostOverheadDelaysEveryRequest) {
  const auto requests = served({.request_s = 0.25});
  EXPECT_DOUBLE_EQ(requests.at(0).sent_s, 0);
  EXPECT_DOUBLE_EQ(requests.at(0).first_token_s, 1.25);
  EXPECT_DOUBLE_EQ(requests.at(1).first_token_s, 2.25);  // known at 0.75, before the step at 1.25
  EXPECT_DOUBLE_EQ(served({.request_s = 0.8}).at(1).first_token_s, 2.8);
  EXPECT_DOUBLE_EQ(served({.request_s = 5}).at(1).first_token_s, 7);
}

// Steps of 1 s: the long prompt is sent first and known last.
TEST(SimulatedBackend, LongPromptsReachTheSchedulerLater) {
  Load load;
  load.settings.num_prompts = 2;
  load.requests = {{.id = 0, .prompt_len = 100, .output_len = 2}, {.id = 1, .prompt_len = 25, .output_len = 2}};
  const auto first_tokens = [&](HostOverheads host) {
    const auto server =
        make_simulated_backend(std::make_unique<LinearExecutor>(LinearCost{.base = 1}), roomy(4, 1024), host);
    std::vector<double> at;
    for (const auto& r : server->run(load, {}, {}).requests) at.push_back(r.first_token_s);
    return at;
  };
  EXPECT_EQ(first_tokens({}), (std::vector<double>{1, 1}));
  const auto at = first_tokens({.request_s = 0.25, .tokenize_s = 0.01});  // known at 1.25 and 0.5
  EXPECT_DOUBLE_EQ(at.at(0), 2.5);
  EXPECT_DOUBLE_EQ(at.at(1), 1.5);
}

TEST(SimulatedBackend, ClosedLoopMatchesTheAnalyticThroughput) {
  for (const int users : {8, 32, 64})
    for (const int in : {1024, 4096}) {
      const int out = 512;
      const auto server = linear_server(kQwen, roomy(256, 8192));
      const auto p = run_load(*server, {.arrival = Arrival::closed,
                                        .concurrency = users,
                                        .input_len = in,
                                        .output_len = out,
                                        .num_prompts = 4 * users});
      const double law = kQwen.per_prompt_token * in + kQwen.base * out / users + kQwen.per_sequence * out +
                         kQwen.per_read_token * out * (in + out / 2.0);
      EXPECT_NEAR(p.e2el.mean * 1e-3 / users, law, 0.005 * law) << users << " users, " << in;
      EXPECT_EQ(p.completed, 4 * users);
      EXPECT_EQ(p.max_concurrent_requests, users);
      EXPECT_EQ(p.verdict, "stable");
      EXPECT_TRUE(std::isnan(p.request_rate));
    }
}

TEST(SimulatedBackend, QueueingTimeMatchesPollaczekKhinchine) {
  // One sequence at a time with steps of 10 ms: n output tokens take n steps.
  for (const LengthDistribution lengths : {LengthDistribution::fixed, LengthDistribution::uniform}) {
    const auto server = linear_server({.base = 0.01}, roomy(1, 64));
    LoadSettings s{.request_rate = 7,
                   .input_len = 8,
                   .output_len = 10,
                   .lengths = lengths,
                   .spread = 0.9,
                   .num_prompts = 20000,
                   .seed = 4};
    const Load load = make_load(s);
    const LoadResult result = server->run(load, {}, {});
    double service = 0, squares = 0, wait = 0;
    for (const auto& r : result.requests) {
      const double seconds = 0.01 * r.output_tokens;
      EXPECT_NEAR(r.end_s - r.scheduled_s, seconds, 1e-6);
      service += seconds, squares += seconds * seconds, wait += r.scheduled_s - r.sent_s;
    }
    const double n = static_cast<double>(result.requests.size());
    const double rate = n / load.requests.back().at_s, rho = rate * service / n;
    const double expected = rate * squares / n / (2 * (1 - rho));
    EXPECT_NEAR(wait / n, expected, 0.1 * expected) << "utilisation " << rho;
  }
}

TEST(SimulatedBackend, ObeysLittlesLaw) {
  const auto server = linear_server(kQwen, roomy(64, 2048));
  const auto p = run_load(*server, {.request_rate = 2, .input_len = 1024, .output_len = 256, .num_prompts = 1500});
  EXPECT_EQ(p.verdict, "stable");
  double inside = 0, before = 0;  // requests in the server, integrated over time
  for (const auto& sample : p.timeline) {
    inside += (sample.running + sample.waiting) * (sample.time_s - before);
    before = sample.time_s;
  }
  const double by_time = inside / p.duration_s, by_law = p.request_throughput * p.e2el.mean * 1e-3;
  EXPECT_NEAR(by_time, by_law, 0.03 * by_law);
}

TEST(SimulatedBackend, IsOverloadedAboveItsCapacity) {
  const LinearCost cost{.base = 0.01};
  const auto server = linear_server(cost, roomy(16, 2048));
  // 16 requests of 100 tokens take about 100 steps of 10 ms: at most 16 requests/s.
  const auto p = run_load(*server, {.request_rate = 24, .input_len = 16, .output_len = 100, .num_prompts = 600});
  EXPECT_EQ(p.verdict, "overloaded");
  EXPECT_NEAR(p.output_throughput, 1600, 80);
  EXPECT_NEAR(p.max_output_tokens_per_s, 1600, 33);
  EXPECT_EQ(run_load(*server, {.request_rate = 8, .input_len = 16, .output_len = 100, .num_prompts = 600}).verdict,
            "stable");
}

TEST(SimulatedBackend, ClientLimitShowsOnlyInIntendedLatencies) {
  const auto server = linear_server({.base = 0.01}, roomy(64, 2048));
  const auto p =
      run_load(*server, {.request_rate = 20, .concurrency = 4, .input_len = 16, .output_len = 100, .num_prompts = 100});
  EXPECT_EQ(p.max_concurrent_requests, 4);
  EXPECT_LT(p.ttft.percentile(99), 21) << "sent when a step could admit it";
  EXPECT_GT(p.intended_ttft.percentile(99), 10000) << "intended long before";
  EXPECT_EQ(p.verdict, "overloaded");
  for (const auto& r : p.requests) EXPECT_GE(r.sent_s, r.intended_s);
}

TEST(SimulatedBackend, ReplayedPromptsHitThePrefixCacheAndSaltedPromptsDoNot) {
  for (const PromptMode prompts : {PromptMode::replayed, PromptMode::salted}) {
    const auto server = linear_server(kQwen, roomy(64, 2048));
    LoadSettings s{
        .request_rate = 1, .input_len = 1000, .output_len = 32, .prompts = prompts, .num_prompts = 30, .salt = 1};
    const auto first = run_load(*server, s);
    s.request_rate = 4, s.salt = 2;
    const auto second = run_load(*server, s);
    EXPECT_EQ(first.prefix_hits, 0);
    if (prompts == PromptMode::salted) {
      EXPECT_EQ(second.prefix_hits, 0);
    } else {
      EXPECT_NEAR(second.prefix_hits, 992.0 / 1000, 1e-12) << "full blocks";
      EXPECT_LT(second.ttft.median, 0.5 * first.ttft.median);
    }
  }
}

TEST(SimulatedBackend, EvictedPromptsMissThePrefixCache) {
  // 30 requests of 1,032 tokens fill 1,950 blocks. With fewer, the oldest are evicted.
  const auto server = linear_server(kQwen, roomy(64, 2048, 1200));
  const LoadSettings s{
      .request_rate = 1, .input_len = 1000, .output_len = 32, .prompts = PromptMode::replayed, .num_prompts = 30};
  run_load(*server, s);
  EXPECT_EQ(run_load(*server, s).prefix_hits, 0);
}

TEST(SimulatedBackend, WarmUpsAreNotCounted) {
  const auto server = linear_server(kQwen, roomy(64, 2048));
  LoadSettings s{
      .request_rate = 2, .input_len = 512, .output_len = 16, .shared_prefix = 256, .num_prompts = 20, .warmups = 4};
  const auto p = run_load(*server, s);
  EXPECT_EQ(p.completed, 20);
  EXPECT_NEAR(p.prefix_hits, 0.5, 1e-12) << "they cached the shared prefix";
  EXPECT_EQ(p.requests.front().intended_s, 0);
  EXPECT_LT(p.requests.front().first_token_s, 0.1) << "time 0 is after them";
}

TEST(SimulatedBackend, IsDeterministic) {
  const LoadSettings s{.request_rate = 6,
                       .input_len = 700,
                       .output_len = 200,
                       .lengths = LengthDistribution::uniform,
                       .spread = 0.5,
                       .num_prompts = 200};
  const auto a = linear_server(kQwen, roomy(32, 2048, 900)), b = linear_server(kQwen, roomy(32, 2048, 900));
  const auto pa = run_load(*a, s), pb = run_load(*b, s);
  ASSERT_EQ(pa.requests.size(), pb.requests.size());
  int preemptions = 0;
  for (size_t i = 0; i < pa.requests.size(); ++i) {
    EXPECT_EQ(pa.requests[i].end_s, pb.requests[i].end_s);
    EXPECT_EQ(pa.requests[i].gaps_ms, pb.requests[i].gaps_ms);
    EXPECT_EQ(pa.requests[i].output_tokens, pb.requests[i].output_tokens);
    preemptions += pa.requests[i].preemptions;
  }
  EXPECT_GT(preemptions, 0) << "900 blocks are too few for all at once";
  EXPECT_EQ(pa.completed, 200);
}

TEST(SimulatedBackend, TooLongRequestsFailWithTheReason) {
  SchedulerSettings settings = roomy(8, 2048);
  settings.max_model_len = 1000;
  const auto server = linear_server(kQwen, settings);
  const auto p = run_load(*server, {.request_rate = 1,
                                    .input_len = 980,
                                    .output_len = 20,
                                    .lengths = LengthDistribution::uniform,
                                    .spread = 0.1,
                                    .num_prompts = 50});
  EXPECT_GT(p.failed, 5);
  EXPECT_GT(p.completed, 5);
  EXPECT_EQ(p.failed + p.completed, 50);
  for (const auto& r : p.requests) EXPECT_EQ(r.error.find("max_model_len") != std::string::npos, !r.completed());
}

TEST(SimulatedBackend, StopKeepsCompletedRequestsAndEmptiesTheServer) {
  const auto server = linear_server(kQwen, roomy(8, 2048));
  std::stop_source source;
  const Load load = make_load({.request_rate = 4, .input_len = 512, .output_len = 64, .num_prompts = 100});
  const LoadResult result = server->run(
      load,
      [&](long done, long) {
        if (done >= 30) source.request_stop();
      },
      source.get_token());
  EXPECT_GE(result.requests.size(), 30u);
  EXPECT_LT(result.requests.size(), 60u);
  for (const auto& r : result.requests) EXPECT_EQ(r.output_tokens, 64);
  const auto after = run_load(*server, load.settings);
  EXPECT_EQ(after.completed, 100);
  EXPECT_EQ(after.timeline.back().running, 0);
}

TEST(SimulatedBackend, RejectsStepsWithoutAFiniteTime) {
  const auto server = linear_server({.base = std::nan("")}, roomy(8, 2048));
  EXPECT_THROW(run_load(*server, {}), Error);
}

}  // namespace
}  // namespace mw::serve
