// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace mw::serve {
namespace {

// Completes every request in a second and records the loads.
class RecordingBackend : public LoadBackend {
 public:
  void restart() override { restarts.push_back(loads.size()); }
  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token) override {
    loads.push_back(load.settings);
    if (loads.size() == fails_at)
      throw Error({.id = "SERVE", .message = "the server has stopped"}, Error::Kind::failed);
    LoadResult result{.requests = {}, .duration_s = 1};
    for (const TimedRequest& t : load.requests)
      result.requests.push_back({.intended_s = t.at_s,
                                 .sent_s = t.at_s,
                                 .first_token_s = t.at_s + 0.5,
                                 .end_s = t.at_s + 1,
                                 .output_tokens = 2,
                                 .gaps_ms = {500}});
    if (progress) progress(5, 10);
    if (loads.size() == stops_at) source.request_stop();
    return result;
  }
  std::vector<options::LoadSettings> loads;
  std::vector<size_t> restarts;  // loads before each
  std::stop_source source;
  size_t fails_at = 0, stops_at = 0;
};

class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    settings.request_rates = {1, 4};
    settings.input_lens = {128, 512};
    settings.load.num_prompts = 10;
    callbacks.point = [this](const formats::BenchPoint& p) { points.push_back(p); };
    callbacks.progress = [this](const std::string& phase, long requests, long total) {
      phases.push_back(phase);
      shares.push_back(static_cast<double>(requests) / static_cast<double>(total));
    };
  }
  bool run() { return run_sweep(settings, backend, done, callbacks, backend.source.get_token()); }
  SweepSettings settings;
  RecordingBackend backend;
  SweepCallbacks callbacks;
  std::vector<formats::BenchPoint> points, done;
  std::vector<std::string> phases;
  std::vector<double> shares;
};

TEST_F(SweepTest, RunsPointsInOrderWithDifferentPrompts) {
  EXPECT_TRUE(run());
  ASSERT_EQ(points.size(), 4u);
  const std::vector<std::pair<int, double>> order{{128, 1}, {128, 4}, {512, 1}, {512, 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(points[i].input_len, order[i].first);
    EXPECT_EQ(points[i].request_rate, order[i].second);
    EXPECT_EQ(backend.loads[i].seed, settings.load.seed);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(backend.loads[i].salt, backend.loads[j].salt);
  }
  EXPECT_EQ(phases.front(), "1 requests/s, 128 tokens");
  EXPECT_EQ(shares, (std::vector<double>{0.125, 0.375, 0.625, 0.875}));
}

TEST_F(SweepTest, ResumesWithTheSameLoads) {
  ASSERT_TRUE(run());
  const std::vector<options::LoadSettings> whole = backend.loads;
  done = {points[0], points[2]};
  points.clear(), backend.loads.clear();
  ASSERT_TRUE(run());
  ASSERT_EQ(backend.loads.size(), 2u);
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(backend.loads[i].salt, whole[2 * i + 1].salt);
    EXPECT_EQ(backend.loads[i].request_rate, 4);
  }
}

TEST_F(SweepTest, RepeatsHaveDifferentSeedsAndResume) {
  settings.repeats = 3, settings.request_rates = {2}, settings.input_lens = {64};
  ASSERT_TRUE(run());
  ASSERT_EQ(backend.loads.size(), 3u);
  EXPECT_EQ(backend.loads[1].seed, backend.loads[0].seed + 1);
  const std::uint64_t last = backend.loads[2].seed;
  done = {points[0], points[1]};
  backend.loads.clear();
  ASSERT_TRUE(run());
  ASSERT_EQ(backend.loads.size(), 1u);
  EXPECT_EQ(backend.loads[0].seed, last);
}

TEST_F(SweepTest, EachRepeatOfALengthIsAServerThatTakesTheRatesInTheirOrder) {
  settings.repeats = 2, settings.request_rates = {4, 1, 2}, settings.input_lens = {64, 16};
  for (const options::PromptMode prompts : {options::PromptMode::salted, options::PromptMode::replayed}) {
    settings.load.prompts = prompts;
    points.clear(), backend.loads.clear(), backend.restarts.clear();
    ASSERT_TRUE(run());
    EXPECT_EQ(backend.restarts, (std::vector<size_t>{0, 3, 6, 9}));
    ASSERT_EQ(points.size(), 12u);
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].request_rate, settings.request_rates[i % 3]);
      EXPECT_EQ(points[i].input_len, i / 3 % 2 == 0 ? 64 : 16);
      EXPECT_EQ(points[i].is_cold, prompts == options::PromptMode::replayed && i % 3 == 0);
      for (size_t j = 0; j < i; ++j) {  // prompts of the loads
        const bool is_same_server = prompts == options::PromptMode::replayed && i / 3 == j / 3;
        EXPECT_EQ(std::pair(backend.loads[i].salt, backend.loads[i].seed) ==
                      std::pair(backend.loads[j].salt, backend.loads[j].seed),
                  is_same_server);
      }
    }
  }
}

TEST_F(SweepTest, AResumedServerThatKeepsItsCacheTakesTheFinishedRatesAgain) {
  settings.repeats = 2, settings.load.prompts = options::PromptMode::replayed, settings.input_lens = {64};
  ASSERT_TRUE(run());
  ASSERT_EQ(points.size(), 4u);
  done = {points[0], points[1], points[2]};  // the first repeat is complete: its cache is of no use
  points.clear(), backend.loads.clear(), phases.clear();
  ASSERT_TRUE(run());
  ASSERT_EQ(backend.loads.size(), 2u);
  EXPECT_EQ(backend.loads[0].seed, settings.load.seed + 1);
  EXPECT_EQ(backend.loads[0].request_rate, 1);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].request_rate, 4);
  EXPECT_EQ(phases,
            (std::vector<std::string>{"filling the cache again: 1 requests/s, 64 tokens", "4 requests/s, 64 tokens"}));
}

TEST_F(SweepTest, CountsPointsAndRequests) {
  settings.repeats = 3, settings.num_prompts_at = {{512, 7}};
  EXPECT_EQ(settings.points(), 12);
  EXPECT_EQ(settings.requests(), 3 * 2 * (10 + 7));
  settings.load.arrival = options::Arrival::recorded;
  EXPECT_EQ(settings.points(), 12);
  settings.load.arrival = options::Arrival::burst;
  EXPECT_EQ(settings.points(), 6);
}

TEST_F(SweepTest, StopKeepsCompletePointsOnly) {
  backend.stops_at = 3;
  EXPECT_FALSE(run());
  EXPECT_EQ(points.size(), 2u);
  EXPECT_EQ(backend.loads.size(), 3u);
}

TEST_F(SweepTest, ErrorKeepsCompletePoints) {
  backend.fails_at = 2;
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(points.size(), 1u);
}

TEST_F(SweepTest, ClosedLoopsAndBurstsHaveOnePointPerLength) {
  for (const options::Arrival arrival : {options::Arrival::closed, options::Arrival::burst}) {
    settings.load.arrival = arrival, settings.load.concurrency = 4;
    points.clear(), backend.loads.clear(), done.clear();
    ASSERT_TRUE(run());
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(std::isnan(points[0].request_rate), arrival == options::Arrival::closed);
    EXPECT_EQ(points[0].request_rate == std::numeric_limits<double>::infinity(), arrival == options::Arrival::burst);
    done = points;
    backend.loads.clear();
    ASSERT_TRUE(run());
    EXPECT_TRUE(backend.loads.empty());
  }
}

TEST_F(SweepTest, RejectsAnInvalidPointBeforeRunning) {
  settings.request_rates = {1, 2, -1};
  EXPECT_THROW(run(), Error);
  EXPECT_TRUE(backend.loads.empty());
  settings.request_rates = {};
  EXPECT_THROW(run(), Error);
}

}  // namespace
}  // namespace mw::serve
