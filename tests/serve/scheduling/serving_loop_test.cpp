// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/serving_loop.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <numeric>

#include "tests/serve/scheduling/scripted_executor.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;

GenerationRequest make_request(int prompt_len, int max_new_tokens) {
  GenerationRequest a;
  a.prompt_ids.resize(static_cast<size_t>(prompt_len));
  std::iota(a.prompt_ids.begin(), a.prompt_ids.end(), 100);
  a.sampling.max_new_tokens = max_new_tokens;
  return a;
}

// Collects the events of many requests from the serving thread.
class EventLog {
 public:
  OnTokenEvent sink() {
    return [this](RequestId id, const TokenEvent& event) {
      const std::lock_guard lock(mutex_);  // held to the end: a waiting thread may destroy this right after
      event.is_last() ? void(ends_.emplace(id, event)) : tokens_[id].push_back(event.token);
      changed_.notify_all();
    };
  }
  TokenEvent end_of(RequestId id) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 5s, [&] { return ends_.contains(id); })) << "no end";
    return ends_[id];
  }
  bool has_token(RequestId id) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, [&] { return !tokens_[id].empty(); });
  }
  std::vector<int> tokens(RequestId id) {
    const std::lock_guard lock(mutex_);
    return tokens_[id];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, std::vector<int>> tokens_;
  std::map<RequestId, TokenEvent> ends_;
};

TEST(ServingLoopTest, StreamsTokensAndRecordsTheirTimes) {
  ScriptedExecutor executor;
  executor.script = {7, 8, 9};
  executor.step_time = 2ms;
  EventLog events;
  ServingLoop loop(small_server(), executor, 8);
  const RequestId id = loop.submit(make_request(20, 4), events.sink());
  const TokenEvent end = events.end_of(id);
  EXPECT_EQ(events.tokens(id), (std::vector{7, 8, 9, 7}));
  EXPECT_EQ(end.finish_reason, FinishReason::length);
  const formats::RequestResult& t = end.timing;
  EXPECT_TRUE(t.completed());
  EXPECT_EQ(t.prompt_tokens, 20);
  EXPECT_EQ(t.output_tokens, 4);
  ASSERT_EQ(t.gaps_ms.size(), 3u);
  EXPECT_GE(t.gaps_ms[0], 2);
  EXPECT_LE(t.sent_s, t.scheduled_s);
  EXPECT_LE(t.scheduled_s + 0.002, t.first_token_s);
  EXPECT_NEAR(t.end_s - t.first_token_s, std::accumulate(t.gaps_ms.begin(), t.gaps_ms.end(), 0.0) / 1e3, 1e-4);
  EXPECT_EQ(loop.state().output_tokens, 4);
  EXPECT_EQ(loop.state().prompt_tokens, 20);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, ListsLiveRequestsWithTheirState) {
  ScriptedExecutor executor;
  executor.step_time = 4ms;
  EventLog events;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 1;
  ServingLoop loop(settings, executor, 8);
  EXPECT_TRUE(loop.live_requests().empty());
  const RequestId first = loop.submit(make_request(20, 400), events.sink());
  const RequestId second = loop.submit(make_request(30, 5), events.sink());
  ASSERT_TRUE(events.has_token(first));
  std::this_thread::sleep_for(30ms);
  const std::vector<LiveRequest> live = loop.live_requests();
  ASSERT_EQ(live.size(), 2u);
  EXPECT_EQ(live[0].id, first);
  EXPECT_EQ(live[0].state, LiveState::decode);
  EXPECT_EQ(live[0].prompt_tokens, 20);
  EXPECT_EQ(live[0].max_new_tokens, 400);
  EXPECT_GT(live[0].output_tokens, 1);
  EXPECT_GT(live[0].age_s, 0.02);
  ASSERT_TRUE(live[0].tokens_per_second);
  EXPECT_LE(*live[0].tokens_per_second, 250);  // a step takes at least 4 ms
  EXPECT_EQ(live[1].id, second);
  EXPECT_EQ(live[1].state, LiveState::waiting);
  EXPECT_EQ(live[1].output_tokens, 0);
  EXPECT_FALSE(live[1].tokens_per_second);
  loop.cancel(first);
  events.end_of(first);
  events.end_of(second);
  loop.drain();
  for (int i = 0; i < 100 && !loop.live_requests().empty(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(loop.live_requests().empty());
}

TEST(ServingLoopTest, ExcludesTheStopTokenFromTheGeneratedText) {
  ScriptedExecutor executor;
  executor.stop_after = 2;
  EventLog events;
  ServingLoop loop(small_server(), executor, 8);
  GenerationRequest a = make_request(3, 100);
  a.sampling.stop_ids = {1};
  const RequestId id = loop.submit(a, events.sink());
  EXPECT_EQ(events.end_of(id).finish_reason, FinishReason::stop);
  EXPECT_EQ(events.tokens(id).size(), 2u);
}

TEST(ServingLoopTest, BatchesRequestsOfSeveralThreads) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  EventLog events;
  ServingLoop loop(small_server(), executor, 64);
  std::mutex mutex;
  std::vector<RequestId> ids;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 12; ++i)
      threads.emplace_back([&] {
        const RequestId id = loop.submit(make_request(10, 50), events.sink());
        const std::lock_guard lock(mutex);
        ids.push_back(id);
      });
  }
  for (const RequestId id : ids) EXPECT_EQ(events.end_of(id).timing.output_tokens, 50);
  EXPECT_GE(executor.largest_step(), 6u);
  EXPECT_LT(loop.state().steps, 12 * 50 / 2);
  EXPECT_EQ(loop.state().finished, 12);
}

TEST(ServingLoopTest, ReleasesBlocksBeforeSignallingCancellation) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  ServingLoop loop(small_server(), executor, 8);
  EventLog events;
  std::atomic<double> used_at_end{-1};
  const OnTokenEvent forward = events.sink();
  const RequestId id = loop.submit(make_request(400, 1500), [&](RequestId r, const TokenEvent& event) {
    if (event.is_last()) used_at_end = loop.state().scheduler.kv_used;
    forward(r, event);
  });
  ASSERT_TRUE(events.has_token(id));
  EXPECT_GT(loop.state().scheduler.kv_used, 0);
  loop.cancel(id);
  const TokenEvent end = events.end_of(id);
  EXPECT_EQ(end.finish_reason, FinishReason::cancelled);
  EXPECT_FALSE(end.timing.completed());
  EXPECT_EQ(used_at_end, 0);
  EXPECT_EQ(loop.state().cancelled, 1);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, RejectsRequestsWhileTheQueueIsFull) {
  ScriptedExecutor executor;
  executor.step_time = 2ms;
  SchedulerSettings settings = small_server();
  settings.max_num_seqs = 2;
  EventLog events;
  ServingLoop loop(settings, executor, 3);
  std::vector<RequestId> ids;
  std::string rejection;
  for (int i = 0; i < 20 && rejection.empty(); ++i) try {
      ids.push_back(loop.submit(make_request(4, 30), events.sink()));
    } catch (const Error& e) {
      rejection = e.problem().id;
      EXPECT_EQ(e.kind(), Error::Kind::failed);
    }
  EXPECT_EQ(rejection, "BUSY");
  EXPECT_EQ(ids.size(), 5u) << "two run and three wait";
  for (const RequestId id : ids) events.end_of(id);
  EXPECT_NO_THROW(events.end_of(loop.submit(make_request(4, 3), events.sink())));
  EXPECT_EQ(loop.state().rejected, 1);
}

TEST(ServingLoopTest, RejectsRequestsLongerThanTheContext) {
  ScriptedExecutor executor;
  ServingLoop loop(small_server(512, 100), executor, 8);
  for (const auto& [prompt_len, max_new_tokens] : {std::pair(90, 11), {0, 5}, {101, 1}, {5, 2147483647}, {5, 0}}) try {
      loop.submit(make_request(prompt_len, max_new_tokens), [](RequestId, const TokenEvent&) {});
      ADD_FAILURE() << prompt_len << " " << max_new_tokens;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().id, "CONTEXT");
    }
  EXPECT_EQ(loop.state().scheduler.waiting, 0);
}

TEST(ServingLoopTest, ReleasesTheQueueSlotOfAnInvalidPrompt) {
  ScriptedExecutor executor;
  executor.bad_token = 101;
  ServingLoop loop(small_server(), executor, 1);
  for (int i = 0; i < 30; ++i)
    EXPECT_THROW(loop.submit(make_request(5, 5), [](RequestId, const TokenEvent&) {}), Error)
        << "and never because the queue is full";
  EXPECT_EQ(loop.state().scheduler.waiting, 0);
  loop.drain();
}

TEST(ServingLoopTest, ContinuesAfterAFailedStep) {
  ScriptedExecutor executor;
  executor.failing = true;
  EventLog events;
  ServingLoop loop(small_server(), executor, 8);
  const TokenEvent end = events.end_of(loop.submit(make_request(5, 5), events.sink()));
  EXPECT_EQ(end.finish_reason, FinishReason::failed);
  EXPECT_NE(end.error.find("on fire"), std::string::npos);
  EXPECT_FALSE(end.timing.completed());
  executor.failing = false;
  EXPECT_EQ(events.end_of(loop.submit(make_request(5, 5), events.sink())).finish_reason, FinishReason::length);
  EXPECT_EQ(loop.state().failed, 1);
  EXPECT_EQ(loop.state().scheduler.kv_used, 0);
}

TEST(ServingLoopTest, DrainFinishesRunningRequestsAndRejectsNewOnes) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  EventLog events;
  ServingLoop loop(small_server(), executor, 64);
  std::vector<RequestId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(loop.submit(make_request(5, 20), events.sink()));
  loop.drain();
  for (const RequestId id : ids) EXPECT_EQ(events.tokens(id).size(), 20u);
  EXPECT_THROW(loop.submit(make_request(5, 5), events.sink()), Error);
}

TEST(ServingLoopTest, CancelsRequestsOnDestruction) {
  ScriptedExecutor executor;
  executor.step_time = 1ms;
  EventLog events;
  RequestId id{};
  {
    ServingLoop loop(small_server(), executor, 8);
    id = loop.submit(make_request(5, 2000), events.sink());
    ASSERT_TRUE(events.has_token(id));
  }
  EXPECT_EQ(events.end_of(id).finish_reason, FinishReason::cancelled);
  EXPECT_EQ(executor.open(), 0u);
}

TEST(ServingLoopTest, SeparatesThePrefixCacheByAdapter) {
  ScriptedExecutor executor;
  EventLog events;
  ServingLoop loop(small_server(), executor, 8);
  const auto cached = [&](const std::string& adapter) {
    GenerationRequest a = make_request(100, 2);
    a.adapter = adapter;
    return events.end_of(loop.submit(a, events.sink())).timing.cached_tokens;
  };
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached(""), 96);
  EXPECT_EQ(cached("tuned"), 0);
  EXPECT_EQ(cached("tuned"), 96);
  loop.clear_prefix_cache();
  EXPECT_EQ(cached(""), 0);
}

TEST(ServingLoopTest, RecordsATimelineOfTheLoad) {
  ScriptedExecutor executor;
  executor.step_time = 2ms;
  EventLog events;
  ServingLoop loop(small_server(), executor, 64);
  std::vector<RequestId> ids;
  for (int i = 0; i < 24; ++i) ids.push_back(loop.submit(make_request(30, 60), events.sink()));
  for (const RequestId id : ids) events.end_of(id);
  const auto timeline = loop.take_timeline();
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
  EXPECT_TRUE(loop.take_timeline().size() <= 1);
}

}  // namespace
}  // namespace mw::serve
