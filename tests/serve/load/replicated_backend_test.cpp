// SPDX-License-Identifier: GPL-3.0-or-later
// Replicas against the servers that they consist of.
#include "core/serve/load/replicated_backend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/serve/load/load.h"
#include "tests/serve/load/linear_cost_backend.h"

namespace mw::serve {
namespace {

std::unique_ptr<LoadBackend> server() {
  return linear_server({.base = 0.01, .per_sequence = 0.001, .per_prompt_token = 1e-4}, roomy(4, 128));
}

std::unique_ptr<LoadBackend> replicas(int count) {
  std::vector<std::unique_ptr<LoadBackend>> servers;
  for (int i = 0; i < count; ++i) servers.push_back(server());
  return make_replicated_backend(std::move(servers));
}

Load constant_load(double rate, int requests) {
  return make_load(
      {.arrival = Arrival::constant, .request_rate = rate, .input_len = 64, .output_len = 16, .num_prompts = requests});
}

TEST(ReplicatedBackend, OneServerIsThatServer) {
  const Load load = constant_load(20, 60);
  const LoadResult one = replicas(1)->run(load, {}, {}), same = server()->run(load, {}, {});
  ASSERT_EQ(one.requests.size(), same.requests.size());
  for (size_t i = 0; i < one.requests.size(); ++i) EXPECT_EQ(one.requests[i].end_s, same.requests[i].end_s);
  EXPECT_DOUBLE_EQ(one.duration_s, same.duration_s);
  EXPECT_EQ(one.timeline.size(), same.timeline.size());
}

TEST(ReplicatedBackend, EachServerGetsEveryNthRequest) {
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

TEST(ReplicatedBackend, FewerRequestsThanServers) {
  EXPECT_EQ(replicas(4)->run(constant_load(1, 2), {}, {}).requests.size(), 2u);
}

}  // namespace
}  // namespace mw::serve
