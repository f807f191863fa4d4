// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/simulated_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/plan/prediction/steady_state.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/sweep.h"
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
      const auto p = run_load(*server, {.arrival = options::Arrival::closed,
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
  for (const options::LengthDistribution lengths :
       {options::LengthDistribution::fixed, options::LengthDistribution::uniform}) {
    const auto server = linear_server({.base = 0.01}, roomy(1, 64));
    options::LoadSettings s{.request_rate = 7,
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
  for (const options::PromptMode prompts : {options::PromptMode::replayed, options::PromptMode::salted}) {
    const auto server = linear_server(kQwen, roomy(64, 2048));
    options::LoadSettings s{
        .request_rate = 1, .input_len = 1000, .output_len = 32, .prompts = prompts, .num_prompts = 30};
    const auto first = run_load(*server, s);
    s.request_rate = 4;
    const auto second = run_load(*server, s);
    EXPECT_EQ(first.prefix_hits, 0);
    if (prompts == options::PromptMode::salted) {
      EXPECT_EQ(second.prefix_hits, 0);
    } else {
      EXPECT_NEAR(second.prefix_hits, 992.0 / 1000, 1e-12) << "full blocks";
      EXPECT_LT(second.ttft.median, 0.5 * first.ttft.median);
    }
  }
}

// A cache that holds some of the prompts: what a rate finds depends on every rate before it.
TEST(SimulatedBackend, ResumedSweepsHaveThePointsOfUninterruptedOnes) {
  SweepSettings settings;
  settings.request_rates = {4, 1, 8}, settings.input_lens = {700, 1000}, settings.repeats = 2;
  settings.load.output_len = 32, settings.load.num_prompts = 30;
  for (const options::PromptMode prompts : {options::PromptMode::salted, options::PromptMode::replayed}) {
    settings.load.prompts = prompts;
    const auto played = [&](const std::vector<formats::BenchPoint>& done) {
      std::vector<formats::BenchPoint> points;
      const auto server = make_simulated_backend(std::make_unique<LinearExecutor>(kQwen), roomy(64, 2048, 1500), {},
                                                 {.count = 2, .routing = options::Routing::least_loaded});
      run_sweep(settings, *server, done, {.point = [&](const formats::BenchPoint& p) { points.push_back(p); }}, {});
      return points;
    };
    const std::vector<formats::BenchPoint> whole = played({});
    ASSERT_EQ(whole.size(), 12u);
    for (size_t finished = 1; finished < whole.size(); ++finished) {
      const auto at = whole.begin() + static_cast<std::ptrdiff_t>(finished);
      const std::vector<formats::BenchPoint> rest = played({whole.begin(), at});
      ASSERT_EQ(rest.size(), whole.size() - finished);
      for (size_t i = 0; i < rest.size(); ++i)
        EXPECT_EQ(to_json(rest[i], formats::Detail::requests),
                  to_json(at[static_cast<std::ptrdiff_t>(i)], formats::Detail::requests));
    }
    double hits = 0;
    for (const formats::BenchPoint& p : whole) hits = std::max(hits, p.prefix_hits);
    EXPECT_EQ(hits > 0.3 && hits < 1, prompts == options::PromptMode::replayed) << hits;
  }
}

TEST(SimulatedBackend, EvictedPromptsMissThePrefixCache) {
  // 30 requests of 1,032 tokens fill 1,950 blocks. With fewer, the oldest are evicted.
  const auto server = linear_server(kQwen, roomy(64, 2048, 1200));
  const options::LoadSettings s{.request_rate = 1,
                                .input_len = 1000,
                                .output_len = 32,
                                .prompts = options::PromptMode::replayed,
                                .num_prompts = 30};
  run_load(*server, s);
  EXPECT_EQ(run_load(*server, s).prefix_hits, 0);
}

TEST(SimulatedBackend, WarmUpsAreNotCounted) {
  const auto server = linear_server(kQwen, roomy(64, 2048));
  options::LoadSettings s{
      .request_rate = 2, .input_len = 512, .output_len = 16, .shared_prefix = 256, .num_prompts = 20, .warmups = 4};
  const auto p = run_load(*server, s);
  EXPECT_EQ(p.completed, 20);
  EXPECT_NEAR(p.prefix_hits, 0.5, 1e-12) << "they cached the shared prefix";
  EXPECT_EQ(p.requests.front().intended_s, make_load(s).requests.front().at_s);
  EXPECT_LT(p.requests.front().first_token_s - p.requests.front().intended_s, 0.1) << "time 0 is after them";
}

TEST(SimulatedBackend, IsDeterministic) {
  const options::LoadSettings s{.request_rate = 6,
                                .input_len = 700,
                                .output_len = 200,
                                .lengths = options::LengthDistribution::uniform,
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
                                    .lengths = options::LengthDistribution::uniform,
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

// --- Schedulers of other servers ---

plan::Request qwen_on(model::Stack stack) {
  const bool tpu = stack == model::Stack::jetstream;
  plan::Request r = plan::request("qwen3-32b", tpu ? "v6e-4" : "4xh100", stack, {{"tp", 4}});
  r.work = plan::Work::serve;
  r.targets.clear();
  r.serve.max_num_seqs = 32, r.serve.max_model_len = 2048, r.serve.max_num_batched_tokens = 4096;
  // Less than a decode step, so that prompts of users who end together do not gather in larger waves.
  r.efficiencies.request_s.value = 6.7e-3;
  r.efficiencies.token_s.value = 1.5e-6;
  return r;
}
formats::BenchPoint served_by(model::Stack stack) {
  const SchedulerSettings settings{.max_num_seqs = 32,
                                   .max_num_batched_tokens = 4096,
                                   .max_model_len = 2048,
                                   .prefix_cache = PrefixCache::off,
                                   .kv = {}};
  return run_load(*make_cost_model_backend(qwen_on(stack), settings), {.arrival = options::Arrival::closed,
                                                                       .concurrency = 32,
                                                                       .input_len = 1024,
                                                                       .output_len = 128,
                                                                       .num_prompts = 96});
}

TEST(SimulatedBackend, SglangComputesPromptsBeforeAnyAnswerGoesOn) {
  const plan::Request request = qwen_on(model::Stack::sglang);
  const plan::ServeStepModel model(request);
  const plan::SteadyState steady = plan::steady_state(model, request.serve, {32, 1024, 128});
  EXPECT_EQ(steady.itl_s, model.seconds({.decoding = 32, .read_tokens = 32 * 1088.0}));
  const formats::BenchPoint mixed = served_by(model::Stack::vllm_gpu), separate = served_by(model::Stack::sglang);
  EXPECT_NEAR(separate.tpot.mean * 1e-3, steady.tpot_s, 0.1 * steady.tpot_s);
  EXPECT_NEAR(separate.ttft.mean * 1e-3, steady.ttft_s, 0.2 * steady.ttft_s);
  EXPECT_NEAR(separate.output_throughput, steady.output_tokens_per_s, 0.1 * steady.output_tokens_per_s);
  EXPECT_GT(separate.ttft.mean, 1.5 * mixed.ttft.mean);
  EXPECT_LT(separate.tpot.mean, mixed.tpot.mean);
}

TEST(SimulatedBackend, JetstreamComputesOnePromptAtATime) {
  const auto steps_until = [](model::Stack stack) {
    const formats::BenchPoint point = served_by(stack);
    std::set<double> first;
    for (const formats::RequestResult& r : point.requests) first.insert(r.first_token_s);
    return first.size();
  };
  EXPECT_EQ(steps_until(model::Stack::jetstream), 96u);
  EXPECT_LT(steps_until(model::Stack::sglang), 48u);
}

// --- Counting blocks instead of following them ---

plan::Request served_model() {
  plan::Request request = plan::request("gemma3-1b", "v6e-1", model::Stack::vllm_tpu, {{"tp", 1}});
  request.work = plan::Work::serve;
  request.targets.clear();
  return request;
}

// The cost model's executor in a simulation that follows every block.
std::unique_ptr<LoadBackend> following_blocks(const plan::Request& request, SchedulerSettings settings) {
  auto executor = std::make_unique<CostModelExecutor>(request);
  const HostOverheads host{.request_s = executor->model().request_seconds(),
                           .tokenize_s = executor->model().tokenize_seconds(),
                           .scheduling = request.serve.scheduling};
  return make_simulated_backend(std::move(executor), std::move(settings), host);
}

long expect_same_requests(const options::LoadSettings& load, const SchedulerSettings& settings) {
  const plan::Request request = served_model();
  const Load requests = make_load(load);
  const LoadResult counted = make_cost_model_backend(request, settings)->run(requests, {}, {}),
                   followed = following_blocks(request, settings)->run(requests, {}, {});
  EXPECT_EQ(counted.requests.size(), followed.requests.size());
  EXPECT_EQ(counted.duration_s, followed.duration_s);
  EXPECT_EQ(counted.prefix_hits, followed.prefix_hits);
  EXPECT_EQ(counted.timeline.size(), followed.timeline.size());
  for (size_t i = 0; i < std::min(counted.timeline.size(), followed.timeline.size()); ++i)
    EXPECT_EQ(counted.timeline[i].kv_used, followed.timeline[i].kv_used);
  long preemptions = 0;
  for (size_t i = 0; i < std::min(counted.requests.size(), followed.requests.size()); ++i) {
    const formats::RequestResult &a = counted.requests[i], &b = followed.requests[i];
    EXPECT_EQ(a.sent_s, b.sent_s);
    EXPECT_EQ(a.scheduled_s, b.scheduled_s);
    EXPECT_EQ(a.first_token_s, b.first_token_s);
    EXPECT_EQ(a.end_s, b.end_s);
    EXPECT_EQ(a.cached_tokens, b.cached_tokens);
    EXPECT_EQ(a.preemptions, b.preemptions);
    EXPECT_EQ(a.gaps_ms, b.gaps_ms);
    EXPECT_EQ(a.error, b.error);
    preemptions += a.preemptions;
  }
  return preemptions;
}

// `blocks` of 16 tokens in layers that see everything; sliding layers keep 512 tokens.
SchedulerSettings two_groups(int blocks, PrefixCache cache = PrefixCache::on) {
  return {.max_num_seqs = 32,
          .max_num_batched_tokens = 1000,
          .max_model_len = 20000,
          .prefix_cache = cache,
          .kv = {.block_size = 16,
                 .groups = {{.block_bytes = Bytes(4)}, {.window = 512, .block_bytes = Bytes(9)}},
                 .capacity = Bytes(13 * blocks)}};
}

TEST(SimulatedBackend, CountingBlocksChangesNoStep) {
  const options::LoadSettings load{.request_rate = 40,
                                   .input_len = 3000,
                                   .output_len = 40,
                                   .lengths = options::LengthDistribution::uniform,
                                   .spread = 0.9,
                                   .num_prompts = 120,
                                   .warmups = 3};
  EXPECT_EQ(expect_same_requests(load, two_groups(1 << 20)), 0);
  for (const PrefixCache cache : {PrefixCache::on, PrefixCache::off})
    EXPECT_GT(expect_same_requests(load, two_groups(600, cache)), 0) << "preempted requests find their blocks again";
  options::LoadSettings shared = load;
  shared.shared_prefix = 700;
  expect_same_requests(shared, two_groups(1 << 20));
  options::LoadSettings few = load;
  few.shared_prefix = 7;  // less than a block
  expect_same_requests(few, two_groups(1 << 20));
  options::LoadSettings users = load;
  users.arrival = options::Arrival::closed;
  users.concurrency = 9;
  expect_same_requests(users, two_groups(1500));
}

TEST(SimulatedBackend, SomeRequestsAreRefusedInBothWays) {
  const options::LoadSettings load{.request_rate = 40,
                                   .input_len = 9000,
                                   .output_len = 40,
                                   .lengths = options::LengthDistribution::uniform,
                                   .spread = 0.9,
                                   .num_prompts = 60};
  expect_same_requests(load, two_groups(500));
}

// --- Metrics without requests ---

void expect_close(const formats::LatencyStats& sketched, const formats::LatencyStats& exact) {
  EXPECT_NEAR(sketched.mean, exact.mean, 1e-9 * exact.mean);
  EXPECT_NEAR(sketched.deviation, exact.deviation, 1e-6 * exact.mean);
  EXPECT_NEAR(sketched.median, exact.median, QuantileSketch::kError * exact.median);
  for (const auto& [p, value] : exact.percentiles)
    EXPECT_NEAR(sketched.percentile(p), value, QuantileSketch::kError * value) << p;
}

TEST(SimulatedBackend, MeasuresWithoutKeepingRequests) {
  const options::Slo slo{.ttft_ms = 200, .tpot_ms = 20};
  for (const double rate : {4.0, 30.0, 300.0}) {
    SCOPED_TRACE(rate);
    const options::LoadSettings settings{.request_rate = rate,
                                         .input_len = 800,
                                         .output_len = 60,
                                         .lengths = options::LengthDistribution::uniform,
                                         .spread = 0.5,
                                         .num_prompts = 1500,
                                         .warmups = 2};
    const auto backend = make_cost_model_backend(served_model(), two_groups(6000));
    const formats::BenchPoint exact = run_load(*backend, settings, slo);
    const auto point = backend->measure(settings, slo, {}, {});
    ASSERT_TRUE(point);
    EXPECT_TRUE(point->requests.empty());
    EXPECT_EQ(point->completed, exact.completed);
    EXPECT_EQ(point->failed, exact.failed);
    EXPECT_EQ(point->num_prompts, exact.num_prompts);
    EXPECT_EQ(point->total_input_tokens, exact.total_input_tokens);
    EXPECT_EQ(point->total_output_tokens, exact.total_output_tokens);
    EXPECT_EQ(point->duration_s, exact.duration_s);
    EXPECT_EQ(point->output_throughput, exact.output_throughput);
    EXPECT_EQ(point->request_goodput, exact.request_goodput);
    EXPECT_EQ(point->max_concurrent_requests, exact.max_concurrent_requests);
    EXPECT_NEAR(point->max_output_tokens_per_s, exact.max_output_tokens_per_s, 0.02 * exact.max_output_tokens_per_s);
    EXPECT_EQ(point->verdict, exact.verdict);
    EXPECT_EQ(point->timeline.size(), exact.timeline.size());
    expect_close(point->ttft, exact.ttft);
    expect_close(point->tpot, exact.tpot);
    expect_close(point->itl, exact.itl);
    expect_close(point->e2el, exact.e2el);
    expect_close(point->intended_ttft, exact.intended_ttft);
    expect_close(point->intended_e2el, exact.intended_e2el);
  }
}

TEST(SimulatedBackend, MeasuresNothingAfterAStop) {
  std::stop_source stopped;
  stopped.request_stop();
  const auto backend = make_cost_model_backend(served_model(), two_groups(6000));
  EXPECT_FALSE(backend->measure({.num_prompts = 5}, {}, {}, stopped.get_token()));
}

TEST(QuantileSketch, PercentilesAreWithinItsError) {
  for (const double scale : {0.1, 1.0, 3e4}) {
    QuantileSketch sketch;
    std::vector<double> values;
    const Rng rng{7, 9};
    for (std::uint64_t i = 0; i < 20000; ++i) {
      values.push_back(scale * std::exp(2.0 * rng.normal_at(i)));
      sketch.add(values.back());
    }
    expect_close(sketch.stats(), formats::latency_stats(values));
    for (const double p : {0.0, 0.1, 99.9, 100.0}) {
      const double exact = formats::percentile_of(values, p);
      EXPECT_NEAR(sketch.percentile(p), exact, QuantileSketch::kError * exact) << p;
    }
  }
  QuantileSketch sketch;
  EXPECT_EQ(sketch.percentile(50), 0);
  EXPECT_FALSE(sketch.stats().known());
  sketch.add(0, 3);
  sketch.add(1e300);
  EXPECT_EQ(sketch.percentile(0), 0);
  EXPECT_NEAR(sketch.percentile(100), QuantileSketch::kMost, QuantileSketch::kError * QuantileSketch::kMost);
}

}  // namespace
}  // namespace mw::serve
