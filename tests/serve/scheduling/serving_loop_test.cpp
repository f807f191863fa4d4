// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/serving_loop.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <numeric>

#include "tests/serve/scheduling/scripted_executor.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;

GenerationRequest ask(int prompt, int answer) {
  GenerationRequest a;
  a.prompt.ids.resize(static_cast<size_t>(prompt));
  std::iota(a.prompt.ids.begin(), a.prompt.ids.end(), 100);
  a.max_new_tokens = answer;
  return a;
}

// Answers of many requests, from the serving thread.
class Inbox {
 public:
  OnTokenEvent sink() {
    return [this](RequestId id, const TokenEvent& a) {
      const std::lock_guard lock(mutex_);  // to the end: who waits for this may be gone right after
      a.token >= 0 ? tokens_[id].push_back(a.token) : void(ends_.emplace(id, a));
      came_.notify_all();
    };
  }
  TokenEvent end_of(RequestId id) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, 5s, [&] { return ends_.contains(id); })) << "no end";
    return ends_[id];
  }
  bool has_token(RequestId id) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, 5s, [&] { return !tokens_[id].empty(); });
  }
  std::vector<int> tokens(RequestId id) {
    const std::lock_guard lock(mutex_);
    return tokens_[id];
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<RequestId, std::vector<int>> tokens_;
  std::map<RequestId, TokenEvent> ends_;
};

TEST(ServingLoopTest, AnswersTokenByTokenWithTheTimesOfEach) {
  ScriptedExecutor executor;
  executor.script = {7, 8, 9};
  executor.step_time = 2ms;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 8);
  const RequestId id = live.submit(ask(20, 4), inbox.sink());
  const TokenEvent end = inbox.end_of(id);
  EXPECT_EQ(inbox.tokens(id), (std::vector{7, 8, 9, 7}));
  EXPECT_EQ(end.end, FinishReason::length);
  const formats::RequestResult& t = end.timing;
  EXPECT_TRUE(t.completed());
  EXPECT_EQ(t.prompt_tokens, 20);
  EXPECT_EQ(t.output_tokens, 4);
  ASSERT_EQ(t.gaps_ms.size(), 3u);
  EXPECT_GE(t.gaps_ms[0], 2);
  EXPECT_LE(t.sent_s, t.scheduled_s);
  EXPECT_LE(t.scheduled_s + 0.002, t.first_token_s);
  EXPECT_NEAR(t.end_s - t.first_token_s, std::accumulate(t.gaps_ms.begin(), t.gaps_ms.end(), 0.0) / 1e3, 1e-4);
  EXPECT_EQ(live.state().output_tokens, 4);
  EXPECT_EQ(live.state().prompt_tokens, 20);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, AStopTokenEndsTheAnswerWithoutBeingPartOfIt) {
  ScriptedExecutor executor;
  executor.stop_after = 2;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 8);
  GenerationRequest a = ask(3, 100);
  a.prompt.stop_ids = {1};
  const RequestId id = live.submit(a, inbox.sink());
  EXPECT_EQ(inbox.end_of(id).end, FinishReason::stop);
  EXPECT_EQ(inbox.tokens(id).size(), 2u);
}

TEST(ServingLoopTest, RequestsOfManyThreadsShareSteps) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 64);
  std::mutex mutex;
  std::vector<RequestId> ids;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 12; ++i)
      threads.emplace_back([&] {
        const RequestId id = live.submit(ask(10, 50), inbox.sink());
        const std::lock_guard lock(mutex);
        ids.push_back(id);
      });
  }
  for (const RequestId id : ids) EXPECT_EQ(inbox.end_of(id).timing.output_tokens, 50);
  EXPECT_GE(executor.most_at_once(), 6u);
  EXPECT_LT(live.state().steps, 12 * 50 / 2);
  EXPECT_EQ(live.state().finished, 12);
}

TEST(ServingLoopTest, ACancelledRequestFreesItsBlocksBeforeItsEndIsTold) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  ServingLoop live(small_server(), executor, 8);
  Inbox inbox;
  std::atomic<double> used_at_end{-1};
  const OnTokenEvent forward = inbox.sink();
  const RequestId id = live.submit(ask(400, 1500), [&](RequestId r, const TokenEvent& a) {
    if (a.token < 0) used_at_end = live.state().scheduler.kv_used;
    forward(r, a);
  });
  ASSERT_TRUE(inbox.has_token(id));
  EXPECT_GT(live.state().scheduler.kv_used, 0);
  live.cancel(id);
  const TokenEvent end = inbox.end_of(id);
  EXPECT_EQ(end.end, FinishReason::cancelled);
  EXPECT_FALSE(end.timing.completed());
  EXPECT_EQ(used_at_end, 0);
  EXPECT_EQ(live.state().cancelled, 1);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, AFullQueueRefusesAndTakesAgainLater) {
  ScriptedExecutor executor;
  executor.step_time = 2ms;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 2;
  Inbox inbox;
  ServingLoop live(settings, executor, 3);
  std::vector<RequestId> ids;
  std::string refusal;
  for (int i = 0; i < 20 && refusal.empty(); ++i) try {
      ids.push_back(live.submit(ask(4, 30), inbox.sink()));
    } catch (const Error& e) {
      refusal = e.problem().id;
      EXPECT_EQ(e.kind(), Error::Kind::failed);
    }
  EXPECT_EQ(refusal, "BUSY");
  EXPECT_EQ(ids.size(), 5u) << "two in the batch, three wait";
  for (const RequestId id : ids) inbox.end_of(id);
  EXPECT_NO_THROW(inbox.end_of(live.submit(ask(4, 3), inbox.sink())));
  EXPECT_EQ(live.state().refused, 1);
}

TEST(ServingLoopTest, WhatIsLongerThanTheContextIsRefused) {
  ScriptedExecutor executor;
  ServingLoop live(small_server(512, 100), executor, 8);
  for (const auto& [prompt, answer] : {std::pair(90, 11), {0, 5}, {101, 1}, {5, 2147483647}, {5, 0}}) try {
      live.submit(ask(prompt, answer), [](RequestId, const TokenEvent&) {});
      ADD_FAILURE() << prompt << " " << answer;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().id, "CONTEXT");
    }
  EXPECT_EQ(live.state().scheduler.waiting, 0);
}

TEST(ServingLoopTest, ABadPromptLeavesNothingBehind) {
  ScriptedExecutor executor;
  executor.bad_token = 101;
  ServingLoop live(small_server(), executor, 1);
  for (int i = 0; i < 30; ++i)
    EXPECT_THROW(live.submit(ask(5, 5), [](RequestId, const TokenEvent&) {}), Error) << "not: the queue is full";
  EXPECT_EQ(live.state().scheduler.waiting, 0);
  live.drain();
}

TEST(ServingLoopTest, AFailingStepFailsItsRequestsAndTheServerGoesOn) {
  ScriptedExecutor executor;
  executor.failing = true;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 8);
  const TokenEvent end = inbox.end_of(live.submit(ask(5, 5), inbox.sink()));
  EXPECT_EQ(end.end, FinishReason::failed);
  EXPECT_NE(end.error.find("on fire"), std::string::npos);
  EXPECT_FALSE(end.timing.completed());
  executor.failing = false;
  EXPECT_EQ(inbox.end_of(live.submit(ask(5, 5), inbox.sink())).end, FinishReason::length);
  EXPECT_EQ(live.state().failed, 1);
  EXPECT_EQ(live.state().scheduler.kv_used, 0);
}

TEST(ServingLoopTest, DrainingAnswersWhatIsThereAndRefusesTheRest) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 64);
  std::vector<RequestId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(live.submit(ask(5, 20), inbox.sink()));
  live.drain();
  for (const RequestId id : ids) EXPECT_EQ(inbox.tokens(id).size(), 20u);
  EXPECT_THROW(live.submit(ask(5, 5), inbox.sink()), Error);
}

TEST(ServingLoopTest, TheEndOfTheServerIsTheEndOfItsRequests) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  Inbox inbox;
  RequestId id{};
  {
    ServingLoop live(small_server(), executor, 8);
    id = live.submit(ask(5, 2000), inbox.sink());
    ASSERT_TRUE(inbox.has_token(id));
  }
  EXPECT_EQ(inbox.end_of(id).end, FinishReason::cancelled);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, TheSamePromptAgainComesFromThePrefixCacheButNotUnderAnAdapter) {
  ScriptedExecutor executor;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 8);
  const auto cached = [&](const std::string& adapter) {
    GenerationRequest a = ask(100, 2);
    a.prompt.adapter = adapter;
    return inbox.end_of(live.submit(a, inbox.sink())).timing.cached_tokens;
  };
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached(""), 96);
  EXPECT_EQ(cached("tuned"), 0);
  EXPECT_EQ(cached("tuned"), 96);
  live.clear_prefix_cache();
  EXPECT_EQ(cached(""), 0);
}

TEST(ServingLoopTest, TheTimelineShowsTheLoad) {
  ScriptedExecutor executor;
  executor.step_time = 2ms;
  Inbox inbox;
  ServingLoop live(small_server(), executor, 64);
  std::vector<RequestId> ids;
  for (int i = 0; i < 24; ++i) ids.push_back(live.submit(ask(30, 60), inbox.sink()));
  for (const RequestId id : ids) inbox.end_of(id);
  const auto timeline = live.take_timeline();
  ASSERT_GE(timeline.size(), 3u);
  int most_running = 0, most_waiting = 0;
  for (size_t i = 0; i < timeline.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(timeline[i].time_s - timeline[i - 1].time_s, 0.019);
    }
    most_running = std::max(most_running, timeline[i].running);
    most_waiting = std::max(most_waiting, timeline[i].waiting);
  }
  EXPECT_EQ(most_running, 16);
  EXPECT_GE(most_waiting, 4);
  EXPECT_TRUE(live.take_timeline().size() <= 1);
}

}  // namespace
}  // namespace mw::serve
