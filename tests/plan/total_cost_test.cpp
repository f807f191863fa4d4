// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/total_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/rng.h"
#include "core/plan/prediction/steady_state.h"
#include "tests/plan/requests.h"

namespace mw::plan {
namespace {

TEST(WaitingProbability, IsErlangsC) {
  EXPECT_NEAR(waiting_probability(1, 0.5), 0.5, 1e-12) << "M/M/1: the share of time that it is busy";
  EXPECT_NEAR(waiting_probability(2, 1), 1.0 / 3, 1e-12);
  EXPECT_NEAR(waiting_probability(10, 8), 0.4092, 5e-5);  // published tables
  EXPECT_EQ(waiting_probability(4, 0), 0);
  EXPECT_EQ(waiting_probability(4, 4), 1);
}

// By simulation of the queue, without Erlang's formula.
TEST(WaitingProbability, AgreesWithASimulatedQueue) {
  constexpr int kSlots = 8, kArrivals = 400000;
  constexpr double kRate = 6.4, kPatience = 0.3;
  std::vector<double> free_at(kSlots, 0);
  double now = 0;
  int late = 0;
  Rng rng{7, 1};
  const auto exponential = [&](double mean) { return -mean * std::log(1 - rng.next_uniform()); };
  for (int i = 0; i < kArrivals; ++i) {
    now += exponential(1 / kRate);
    auto first = std::min_element(free_at.begin(), free_at.end());
    const double start = std::max(now, *first);
    late += start - now > kPatience;
    *first = start + exponential(1);
  }
  const double predicted = waiting_probability(kSlots, kRate) * std::exp(-(kSlots - kRate) * kPatience);
  EXPECT_NEAR(static_cast<double>(late) / kArrivals, predicted, 0.01);
}

Request serving() {
  Request r = request("gemma4-31b", "v6e-8", model::Stack::vllm_tpu, {{"tp", 8}});
  r.work = Work::serve;
  r.targets.clear();
  r.serve.max_num_seqs = 128;
  return r;
}

CostInputs inputs() {
  return {.train_hours = 10,
          .train_usd_per_hour = 20,
          .serve_usd_per_hour = 4,
          .requests_per_day = 86400,
          .months = 1,
          .capacity = 2,
          .start_hours = 0.1};
}

TEST(TotalCost, IsTrainingServersStartsAndPreemptions) {
  const double month = 365.25 * 2;  // hours
  CostInputs in = inputs();
  const TotalCost one = total_cost(in);
  EXPECT_EQ(one.training, 200);
  EXPECT_NEAR(one.serving, month * 4, 1e-9);
  EXPECT_NEAR(one.starting, 0.4, 1e-12);
  EXPECT_EQ(one.preempted, 0);
  in.peak = 2.5;  // 2.5 requests/s need two servers
  EXPECT_EQ(total_cost(in).first_servers, 2);
  in.peak = 1;
  in.months = 3;
  in.growth = 1;  // 1, 2 and 4 requests/s
  const TotalCost grown = total_cost(in);
  EXPECT_EQ(grown.first_servers, 1);
  EXPECT_EQ(grown.last_servers, 2);
  EXPECT_NEAR(grown.serving, (1 + 1 + 2) * month * 4, 1e-9);
  EXPECT_NEAR(grown.requests, 7 * 86400 * month / 24, 1e-3);
  in = inputs();
  in.preemptions = 2;
  in.lost_train_hours = 0.5;
  EXPECT_NEAR(total_cost(in).preempted, month / 24 * 2 * 0.1 * 4 + 10.0 / 24 * 2 * 0.5 * 20, 1e-9);
}

TEST(Swings, RankTheInputsByWhatTheyMove) {
  CostInputs in = inputs();
  in.requests_per_day = 864000;  // five servers
  const auto swings = plan::swings(in, 0.2);
  ASSERT_GE(swings.size(), 4u);
  for (size_t i = 1; i < swings.size(); ++i) EXPECT_GE(swings[i - 1].span(), swings[i].span());
  const auto of = [&](const std::string& name) {
    for (const Swing& s : swings)
      if (s.input == name) return s;
    return Swing{};
  };
  EXPECT_NEAR(of("training hours").span(), 0.4 * 200, 1e-9);
  EXPECT_NEAR(of("price of serving").high_usd - total_cost(in).total(), 0.2 * (total_cost(in).total() - 200), 1e-6);
  EXPECT_GT(of("capacity of a server").low_usd, of("capacity of a server").high_usd) << "a slower server costs more";
  EXPECT_EQ(of("preemptions").input, "") << "moves nothing";
}

TEST(BreakEven, RequestsAboveWhichTheSameOneStaysCheaper) {
  CostInputs cheap_to_train = inputs(), cheap_to_serve = inputs();
  cheap_to_serve.train_hours = 1000;
  cheap_to_serve.capacity = 4;
  const auto requests = break_even_requests(cheap_to_train, cheap_to_serve);
  ASSERT_TRUE(requests);
  const auto ahead = [&](double at) {
    CostInputs a = cheap_to_train, b = cheap_to_serve;
    a.requests_per_day = b.requests_per_day = at;
    return total_cost(a).total() - total_cost(b).total();
  };
  EXPECT_LE(ahead(*requests * 0.999), 0);
  for (const double more : {1.01, 2.0, 100.0}) EXPECT_GT(ahead(*requests * more), 0) << more;
  EXPECT_FALSE(break_even_requests(inputs(), inputs()));
  CostInputs always = inputs();
  always.train_hours = 1;
  EXPECT_FALSE(break_even_requests(always, inputs()));
  const auto hours = break_even_hours(cheap_to_train, cheap_to_serve);
  EXPECT_FALSE(hours) << "one server each, at the same price: the dearer training is never made up for";
  cheap_to_serve.serve_usd_per_hour = 2;
  EXPECT_NEAR(*break_even_hours(cheap_to_train, cheap_to_serve), (20000 - 200) / 2.0, 1e-9);
}

TEST(ServerCapacity, MeetsTheServiceLevelAndMoreWouldNot) {
  const Request r = serving();
  const ServeStepModel model(r);
  const ServerCapacity free = server_capacity(model, r.serve, {});
  EXPECT_TRUE(free.waits_without_limit);
  EXPECT_GT(free.requests_per_s, 0);
  const ServiceLevel level{.ttft_s = 2 * free.ttft_s, .tpot_s = 0.9 * free.tpot_s};
  const ServerCapacity held = server_capacity(model, r.serve, level);
  EXPECT_LT(held.requests_per_s, free.requests_per_s);
  EXPECT_LT(held.concurrency, free.concurrency);
  EXPECT_LE(held.tpot_s, level.tpot_s);
  EXPECT_LE(held.ttft_s + held.wait_s, level.ttft_s * (1 + 1e-9));
  const SteadyState s = steady_state(model, r.serve, {held.concurrency, r.serve.input_len, r.serve.output_len});
  const double highest = s.output_tokens_per_s / r.serve.output_len, service = held.concurrency / highest;
  const auto late = [&](double rate) {
    return waiting_probability(held.concurrency, rate * service) * std::exp(-(highest - rate) * held.wait_s);
  };
  EXPECT_LE(late(held.requests_per_s), 0.01 + 1e-9);
  EXPECT_GT(late(1.02 * held.requests_per_s), 0.01);
  EXPECT_EQ(server_capacity(model, r.serve, {.tpot_s = 1e-9}).requests_per_s, 0) << "nothing is that fast";
}

}  // namespace
}  // namespace mw::plan
