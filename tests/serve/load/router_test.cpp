// SPDX-License-Identifier: GPL-3.0-or-later
// Replicas behind a router against the servers that they consist of.
#include "core/serve/load/simulated_backend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/serve/load/load.h"
#include "tests/serve/load/linear_cost_backend.h"

namespace mw::serve {
namespace {

constexpr LinearCost kCost{.base = 0.01, .per_sequence = 0.001, .per_prompt_token = 1e-4};

std::unique_ptr<LoadBackend> server() {
  return linear_server(kCost, roomy(4, 128));
}

std::unique_ptr<LoadBackend> replicas(int count, options::Routing routing = options::Routing::round_robin) {
  return make_simulated_backend(std::make_unique<LinearExecutor>(kCost), roomy(4, 128), {},
                                {.count = count, .routing = routing});
}

Load constant_load(double rate, int requests) {
  return make_load({.arrival = options::Arrival::constant,
                    .request_rate = rate,
                    .input_len = 64,
                    .output_len = 16,
                    .num_prompts = requests});
}

TEST(Router, OneReplicaIsThatServer) {
  const Load load = constant_load(20, 60);
  const LoadResult same = server()->run(load, {}, {});
  for (const options::Routing routing :
       {options::Routing::round_robin, options::Routing::least_loaded, options::Routing::prefix_aware}) {
    const LoadResult one = replicas(1, routing)->run(load, {}, {});
    ASSERT_EQ(one.requests.size(), same.requests.size());
    for (size_t i = 0; i < one.requests.size(); ++i) EXPECT_EQ(one.requests[i].end_s, same.requests[i].end_s);
    EXPECT_DOUBLE_EQ(one.duration_s, same.duration_s);
    EXPECT_EQ(one.timeline.size(), same.timeline.size());
  }
}

TEST(Router, RoundRobinGivesEachReplicaEveryNthRequest) {
  const Load load = constant_load(20, 61);
  std::vector<long> done;
  const LoadResult all = replicas(3)->run(load,
                                          [&](long n, long total) {
                                            EXPECT_EQ(total, 61);
                                            done.push_back(n);
                                          },
                                          {});
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  ASSERT_EQ(all.requests.size(), 61u);
  for (size_t k = 0; k < 3; ++k) {
    Load part{.settings = load.settings, .warmups = {}, .requests = {}};
    for (size_t i = k; i < load.requests.size(); i += 3) part.requests.push_back(load.requests[i]);
    const LoadResult alone = server()->run(part, {}, {});
    for (size_t i = 0; i < alone.requests.size(); ++i)
      EXPECT_EQ(all.requests[k + 3 * i].first_token_s, alone.requests[i].first_token_s);
  }
  const auto peak = std::max_element(all.timeline.begin(), all.timeline.end(),
                                     [](const auto& a, const auto& b) { return a.running < b.running; });
  ASSERT_NE(peak, all.timeline.end());
  EXPECT_GT(peak->running, 0);
}

TEST(Router, ServesFewerRequestsThanReplicas) {
  EXPECT_EQ(replicas(4)->run(constant_load(1, 2), {}, {}).requests.size(), 2u);
}

// Two long requests first: round robin sends every other short one behind them.
TEST(Router, LeastLoadedAvoidsTheBusyReplica) {
  Load load = constant_load(2, 40);
  for (size_t i = 0; i < 40; i += 2) load.requests[i].output_len = 400;
  const auto mean_ttft = [&](options::Routing routing) {
    double sum = 0;
    for (const auto& r : replicas(2, routing)->run(load, {}, {}).requests) sum += r.first_token_s - r.sent_s;
    return sum / 40;
  };
  EXPECT_LT(mean_ttft(options::Routing::least_loaded), 0.5 * mean_ttft(options::Routing::round_robin));
}

TEST(Router, AClosedLoopKeepsItsUsersOverAllReplicas) {
  const Load load = make_load(
      {.arrival = options::Arrival::closed, .concurrency = 5, .input_len = 64, .output_len = 16, .num_prompts = 60});
  const LoadResult r = replicas(3, options::Routing::least_loaded)->run(load, {}, {});
  ASSERT_EQ(r.requests.size(), 60u);
  for (const auto& at : r.requests) {  // just before each start
    const auto running = std::count_if(r.requests.begin(), r.requests.end(), [&](const auto& other) {
      return other.sent_s <= at.sent_s && other.end_s > at.sent_s;
    });
    EXPECT_LE(running, 5);
  }
}

options::LoadSettings of_eight_prefixes() {
  return {.arrival = options::Arrival::constant,
          .request_rate = 20,
          .input_len = 256,
          .output_len = 4,
          .shared_prefix = 192,
          .shared_prefixes = 8,
          .num_prompts = 160};
}

TEST(Router, PrefixAwareComputesAPrefixOnOneReplicaOnly) {
  const auto hits = [](options::Routing routing) {
    return replicas(8, routing)->run(make_load(of_eight_prefixes()), {}, {}).prefix_hits;
  };
  // Each of eight prefixes is computed once, of 20 requests on average.
  EXPECT_NEAR(hits(options::Routing::prefix_aware), 0.75 * (1 - 8.0 / 160), 1e-9);
  EXPECT_LT(hits(options::Routing::round_robin), 0.6);
}

TEST(Router, PrefixAwareLeavesAnOverloadedReplica) {
  Router router({.count = 2, .routing = options::Routing::prefix_aware});
  const TimedRequest request{.prompt_len = 100, .shared_seed = 7, .shared = 50};
  EXPECT_EQ(router.route(request, {0, 0}), 0u);
  EXPECT_EQ(router.route(request, {60, 0}), 0u) << "holds the prefix";
  EXPECT_EQ(router.route(request, {70, 0}), 1u) << "uneven by more than 64 requests";
  EXPECT_EQ(router.route(request, {1, 0}), 1u) << "both hold it now";
  EXPECT_EQ(router.route({.prompt_len = 1000, .shared_seed = 9, .shared = 50}, {0, 3}), 0u) << "too short a prefix";
}

TEST(Router, MeasuresAsTheRequestsSay) {
  const options::LoadSettings settings = of_eight_prefixes();
  const formats::BenchPoint kept = run_load(*replicas(4, options::Routing::least_loaded), settings);
  const auto point = replicas(4, options::Routing::least_loaded)->measure(settings, {}, {}, {});
  ASSERT_TRUE(point);
  EXPECT_EQ(point->completed, kept.completed);
  EXPECT_NEAR(point->ttft.median, kept.ttft.median, 0.02 * kept.ttft.median);
  EXPECT_DOUBLE_EQ(point->duration_s, kept.duration_s);
  EXPECT_DOUBLE_EQ(point->prefix_hits, kept.prefix_hits);
}

}  // namespace
}  // namespace mw::serve
