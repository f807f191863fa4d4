// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/load/load.h"

namespace mw::serve {
namespace {

RequestId id_of(int i) {
  return RequestId{i};
}

SchedulerSettings settings(int blocks, int block_size = 4) {
  return {.max_num_seqs = 8,
          .max_num_batched_tokens = 16,
          .max_model_len = 200,
          .kv = {.block_size = block_size, .groups = {{.block_bytes = Bytes(1)}}, .capacity = Bytes(blocks)}};
}

ScheduledRequest request(int i, int prompt, int max_new_tokens, int priority = 0) {
  return {.id = id_of(i),
          .prompt_len = prompt,
          .max_new_tokens = max_new_tokens,
          .priority = priority,
          .arrival_s = 1.0 * i};
}

// The tokens of every step until the server is idle, as "request:tokens", e.g. "0:12 1:4".
std::vector<std::string> steps_of(const SchedulerSettings& s, const std::vector<ScheduledRequest>& requests) {
  Scheduler scheduler(s);
  std::map<RequestId, int> left;
  for (const ScheduledRequest& r : requests) scheduler.add(r), left[r.id] = r.max_new_tokens;
  std::vector<std::string> steps;
  while (!scheduler.is_idle() && steps.size() < 100) {
    const Step step = scheduler.next();
    EXPECT_TRUE(step.preempted.empty() || s.kv_reservation == KvReservation::computed);
    std::string text;
    std::vector<RequestId> ended;
    scheduler.advance(step);
    for (const StepItem& item : step.items) {
      text += (text.empty() ? "" : " ") + std::to_string(static_cast<long>(item.id)) + ":" + std::to_string(item.count);
      if (item.samples && --left[item.id] == 0) ended.push_back(item.id);
    }
    scheduler.finish(ended);
    steps.push_back(text);
  }
  return steps;
}

TEST(SchedulerPolicies, SeparateStepsComputePromptsFirst) {
  SchedulerSettings s = settings(100);
  const std::vector<ScheduledRequest> requests{request(0, 12, 2), request(1, 8, 2)};
  EXPECT_EQ(steps_of(s, requests), (std::vector<std::string>{"0:12 1:4", "0:1 1:4", "1:1"}));
  s.prefill_steps = PrefillSteps::separate;
  EXPECT_EQ(steps_of(s, requests), (std::vector<std::string>{"0:12 1:4", "1:4", "0:1 1:1"}));
  s.max_prefills = 1;
  EXPECT_EQ(steps_of(s, requests), (std::vector<std::string>{"0:12", "1:8", "0:1 1:1"}));
  s.prefill_steps = PrefillSteps::mixed;
  EXPECT_EQ(steps_of(s, requests), (std::vector<std::string>{"0:12", "0:1 1:8", "1:1"}));
}

// The token budget limits prompts only: four answers are decoded at once under a budget of three tokens.
TEST(SchedulerPolicies, SeparateDecodeStepsHoldAllSequences) {
  SchedulerSettings s = settings(100);
  s.max_num_batched_tokens = 3;
  s.prefill_steps = PrefillSteps::separate;
  const std::vector<ScheduledRequest> requests{request(0, 3, 2), request(1, 3, 2), request(2, 3, 2), request(3, 3, 2)};
  EXPECT_EQ(steps_of(s, requests), (std::vector<std::string>{"0:3", "1:3", "2:3", "3:3", "0:1 1:1 2:1 3:1"}));
}

// Six blocks of four tokens: two requests of 4 + 12 tokens start at once and one is preempted, or wait for each other.
TEST(SchedulerPolicies, WholeReservationNeverPreempts) {
  SchedulerSettings s = settings(6);
  const std::vector<ScheduledRequest> requests{request(0, 4, 12), request(1, 4, 12)};
  EXPECT_EQ(steps_of(s, requests).front(), "0:4 1:4");
  s.kv_reservation = KvReservation::whole;
  const std::vector<std::string> steps = steps_of(s, requests);
  EXPECT_EQ(steps.front(), "0:4");
  EXPECT_EQ(steps.at(12), "1:4");
  EXPECT_EQ(steps.size(), 24u);
}

// Runs a scheduler and checks every step against records of its own.
class SchedulerChecker {
 public:
  explicit SchedulerChecker(const SchedulerSettings& s) : settings(s), scheduler(s) {}

  struct RequestRecord {
    ScheduledRequest request;
    int computed = 0, generated = 0, preemptions = 0, admissions = 0;
    std::int64_t items = 0, tokens = 0, hits = 0;  // over all admissions
    bool running = false;
    int total() const { return request.prompt_len + generated; }
  };

  void add(const ScheduledRequest& r) {
    open.emplace(r.id, RequestRecord{.request = r});
    added.push_back(r.id);
    scheduler.add(r);
  }
  void abort(RequestId id) {
    scheduler.abort(id);
    open.erase(id);
  }

  Step step() {
    const Step s = scheduler.next();
    EXPECT_LE(s.tokens(), settings.max_num_batched_tokens);
    for (const RequestId id : s.preempted) {
      RequestRecord& a = open.at(id);
      EXPECT_TRUE(a.running);
      a.running = false, a.computed = 0, ++a.preemptions;
    }
    for (const RequestId id : s.rejected) {
      rejected.insert(id);
      open.erase(id);
    }
    std::set<RequestId> seen;
    for (const StepItem& item : s.items) {
      EXPECT_TRUE(seen.insert(item.id).second) << "an item occurs twice in one step";
      enter(item);
    }
    check_blocks();
    scheduler.advance(s);
    std::vector<RequestId> ended;
    for (const StepItem& item : s.items)
      if (item.samples && ++open.at(item.id).generated == open.at(item.id).request.max_new_tokens)
        ended.push_back(item.id);
    scheduler.finish(ended);
    for (const RequestId id : ended) {
      finished.emplace(id, open.at(id));
      open.erase(id);
    }
    int running = 0;
    for (const auto& [id, a] : open) running += a.running ? 1 : 0;
    EXPECT_EQ(scheduler.state().running, running);
    EXPECT_EQ(scheduler.state().waiting, static_cast<int>(open.size()) - running);
    EXPECT_LE(running, settings.max_num_seqs);
    EXPECT_EQ(scheduler.is_idle(), open.empty());
    if (running == 0) {
      EXPECT_EQ(scheduler.state().kv_used, 0);
    }
    return s;
  }

  // Runs until the scheduler is idle. Returns false if it makes no progress.
  bool run() {
    for (int idle_steps = 0; !scheduler.is_idle();) {
      const Step s = step();
      idle_steps = s.items.empty() && s.preempted.empty() && s.rejected.empty() ? idle_steps + 1 : 0;
      if (idle_steps > 0) return false;
    }
    return true;
  }

  SchedulerSettings settings;
  Scheduler scheduler;
  std::map<RequestId, RequestRecord> open, finished;
  std::set<RequestId> rejected;
  std::vector<RequestId> added, admitted;

 private:
  void enter(const StepItem& item) {
    RequestRecord& a = open.at(item.id);
    if (!a.running) {
      a.running = true;
      if (a.admissions++ == 0) admitted.push_back(item.id);
      a.computed = item.first;  // taken from the prefix cache
      a.hits += item.first;
      EXPECT_EQ(item.first % settings.kv.block_size, 0);
      if (settings.prefix_cache == PrefixCache::off) {
        EXPECT_EQ(item.first, 0);
      }
      if (a.admissions == 1) {
        EXPECT_EQ(scheduler.cached_tokens(item.id), item.first);
      }
    }
    EXPECT_GE(item.count, 1);
    EXPECT_EQ(item.first, a.computed) << "every token is computed once, in order";
    a.computed += item.count;
    a.tokens += item.count;
    ++a.items;
    EXPECT_LE(a.computed, a.total());
    EXPECT_EQ(item.samples, a.computed == a.total());
    if (settings.chunked_prefill == ChunkedPrefill::off && a.total() <= settings.max_num_batched_tokens) {
      EXPECT_TRUE(item.samples) << "a prompt is computed in one step";
    }
  }

  void check_blocks() {  // only equal prefixes share blocks, and every token in a window has one
    for (size_t g = 0; g < settings.kv.groups.size(); ++g) {
      std::map<int, std::pair<RequestId, int>> owner;
      for (const auto& [id, a] : open) {
        if (!a.running) continue;
        const auto blocks = scheduler.blocks(id, g);
        const int size = settings.kv.block_size, window = settings.kv.groups[g].window;
        ASSERT_GE(static_cast<int>(blocks.size()) * size, a.computed);
        for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
          const int block = blocks[static_cast<size_t>(i)];
          if (block < 0) {
            EXPECT_GT(window, 0);
            EXPECT_LE((i + 1) * size, std::max(0, a.computed - window)) << "evicted inside the window";
            continue;
          }
          if (settings.kv.groups[g].max_blocks > 0) {
            EXPECT_LT(block, settings.kv.groups[g].max_blocks);
          }
          const auto [at, is_new] = owner.emplace(block, std::pair{id, i});
          if (is_new) continue;
          const auto& mine = a.request.prompt_blocks;
          const auto& other = open.at(at->second.first).request.prompt_blocks;
          ASSERT_EQ(at->second.second, i);
          ASSERT_LT(static_cast<size_t>(i), std::min(mine.size(), other.size()));
          EXPECT_EQ(mine[static_cast<size_t>(i)], other[static_cast<size_t>(i)]);
        }
      }
    }
  }
};

// Runs up to the first step that preempts.
Step first_preemption(SchedulerChecker& checker) {
  for (int i = 0; i < 200; ++i)
    if (Step step = checker.step(); !step.preempted.empty()) return step;
  ADD_FAILURE() << "no request was preempted";
  return {};
}

TEST(Scheduler, ComputesEveryTokenOnceWithinLimitsUnderRandomTraffic) {
  std::int64_t preemptions = 0, hits = 0, rejections = 0, done = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng{seed, 77};
    SchedulerSettings s = settings(static_cast<int>(20 + rng.below(40)), static_cast<int>(2 + rng.below(6)));
    s.max_num_seqs = static_cast<int>(1 + rng.below(9));
    s.max_num_batched_tokens = static_cast<int>(8 + rng.below(40));
    s.max_model_len = 90;
    s.chunked_prefill = rng.below(3) ? ChunkedPrefill::on : ChunkedPrefill::off;
    s.prefix_cache = rng.below(3) ? PrefixCache::on : PrefixCache::off;
    s.policy = rng.below(2) ? options::SchedulingPolicy::fcfs : options::SchedulingPolicy::priority;
    if (rng.below(2)) s.kv.groups.push_back({.window = static_cast<int>(1 + rng.below(30)), .block_bytes = Bytes(1)});
    if (rng.below(3) == 0) s.kv.groups[0].max_blocks = static_cast<int>(20 + rng.below(20));
    SchedulerChecker checker(s);
    for (int i = 0; i < 60;) {
      if (rng.below(3) == 0) {
        ScheduledRequest r = request(i, static_cast<int>(1 + rng.below(70)), static_cast<int>(1 + rng.below(25)),
                                     static_cast<int>(rng.below(3)));
        if (rng.below(4))
          r.prompt_blocks = hash_synthetic_blocks(rng.below(2), static_cast<int>(rng.below(60)), 100 + rng.below(10),
                                                  r.prompt_len, s.kv.block_size);
        checker.add(r);
        ++i;
      } else if (rng.below(12) == 0 && !checker.open.empty()) {
        checker.abort(
            std::next(checker.open.begin(), static_cast<std::ptrdiff_t>(rng.below(checker.open.size())))->first);
      } else if (rng.below(60) == 0) {
        checker.scheduler.clear_prefix_cache();
      } else {
        checker.step();
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    ASSERT_TRUE(checker.run()) << "no progress, seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_EQ(checker.scheduler.state().kv_used, 0);
    for (const auto& [id, a] : checker.finished) {
      EXPECT_EQ(a.generated, a.request.max_new_tokens);
      if (a.preemptions == 0) {
        EXPECT_EQ(a.tokens + a.hits, a.request.prompt_len + a.request.max_new_tokens - 1);
      }
      preemptions += a.preemptions, hits += a.hits, ++done;
    }
    for (const RequestId id : checker.rejected) {
      EXPECT_FALSE(checker.finished.contains(id));
      ++rejections;
    }
    if (s.policy == options::SchedulingPolicy::fcfs) {
      std::vector<RequestId> order = checker.admitted;
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "admitted in order of arrival";
    }
  }
  EXPECT_GT(done, 3000);
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(hits, 1000);
  EXPECT_GT(rejections, 100);
}

TEST(Scheduler, DecodesWhileALongPromptIsPrefilledInChunks) {
  SchedulerChecker checker(settings(50));
  checker.add(request(1, 4, 30));
  checker.step();
  checker.add(request(2, 40, 2));
  for (const int chunk : {15, 15, 10}) {
    const Step s = checker.step();
    ASSERT_EQ(s.items.size(), 2u);
    EXPECT_EQ(s.items[0].id, id_of(1));
    EXPECT_EQ(s.items[0].count, 1);
    EXPECT_EQ(s.items[1].count, chunk);
    EXPECT_EQ(s.items[1].samples, chunk == 10);
  }
}

TEST(Scheduler, WithoutChunkedPrefillAPromptWaitsForItsWholeBudget) {
  SchedulerSettings s = settings(50);
  s.chunked_prefill = ChunkedPrefill::off;
  SchedulerChecker checker(s);
  checker.add(request(1, 10, 5));
  checker.add(request(2, 10, 5));
  Step step = checker.step();
  ASSERT_EQ(step.items.size(), 1u) << "only 6 of 16 tokens of the budget are left";
  step = checker.step();
  ASSERT_EQ(step.items.size(), 2u);
  EXPECT_EQ(step.items[1].count, 10);
  checker.add(request(3, 17, 5));
  EXPECT_TRUE(checker.run());
  EXPECT_TRUE(checker.rejected.contains(id_of(3))) << "longer than the budget of a step";
  EXPECT_EQ(checker.finished.size(), 2u);
}

TEST(Scheduler, PreemptsTheLastAdmittedRequestAndReadmitsItFirst) {
  SchedulerSettings s = settings(7);  // 28 tokens
  s.prefix_cache = PrefixCache::off;
  SchedulerChecker checker(s);
  checker.add(request(1, 8, 12));
  checker.add(request(2, 7, 12));
  const Step step = first_preemption(checker);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(2)});
  EXPECT_EQ(step.items.size(), 1u);
  checker.add(request(3, 4, 1));
  const int generated = checker.open.at(id_of(2)).generated;
  EXPECT_GT(generated, 0);
  EXPECT_TRUE(checker.run());
  EXPECT_EQ(checker.finished.at(id_of(2)).generated, 12) << "generated tokens are kept";
  EXPECT_EQ(checker.finished.at(id_of(2)).tokens, (7 + generated - 1) + (7 + 12 - 1));
  EXPECT_EQ(checker.finished.at(id_of(1)).preemptions, 0);
  EXPECT_EQ(checker.scheduler.state().preemptions, 1);
}

TEST(Scheduler, PreemptedRequestReusesItsCachedBlocks) {
  SchedulerSettings s = settings(9);
  SchedulerChecker checker(s);
  ScheduledRequest a = request(1, 8, 13), b = request(2, 8, 20);
  a.prompt_blocks = hash_synthetic_blocks(0, 0, 5, 8, 4), b.prompt_blocks = hash_synthetic_blocks(0, 0, 6, 8, 4);
  checker.add(a), checker.add(b);
  const Step step = first_preemption(checker);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(2)});
  EXPECT_TRUE(checker.run());
  const auto& record = checker.finished.at(id_of(2));
  EXPECT_EQ(record.hits, 16) << "prompt and generated tokens";
  EXPECT_EQ(checker.scheduler.state().cached_tokens, 0) << "hits after a preemption are not counted";
}

TEST(Scheduler, OrdersAndPreemptsByPriority) {
  SchedulerSettings s = settings(12);
  s.policy = options::SchedulingPolicy::priority, s.prefix_cache = PrefixCache::off, s.max_num_seqs = 2;
  SchedulerChecker checker(s);
  checker.add(request(1, 4, 30, 5));
  checker.add(request(2, 4, 3, 9));
  checker.add(request(3, 4, 30, 1));
  const Step first = checker.step();
  ASSERT_EQ(first.items.size(), 2u);
  EXPECT_EQ(first.items[0].id, id_of(3));
  EXPECT_EQ(first.items[1].id, id_of(1));
  const Step step = first_preemption(checker);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(1)});
  EXPECT_TRUE(checker.run());
  EXPECT_EQ(checker.finished.size(), 3u);
}

TEST(Scheduler, PreemptsAnItemThatIsAlreadyInTheStep) {
  SchedulerSettings s = settings(5);
  s.policy = options::SchedulingPolicy::priority, s.prefix_cache = PrefixCache::off;
  SchedulerChecker checker(s);
  checker.add(request(1, 7, 8, 9));  // admitted first, lowest priority
  checker.step();
  checker.add(request(2, 8, 8, 1));
  checker.step();  // 2 + 2 blocks
  const Step step = checker.step();
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(1)});
  ASSERT_EQ(step.items.size(), 1u);
  EXPECT_EQ(step.items[0].id, id_of(2));
  EXPECT_TRUE(checker.run());
}

TEST(Scheduler, RejectsRequestsThatNeverFitWithoutBlockingOthers) {
  SchedulerSettings s = settings(10);  // 40 tokens
  s.max_model_len = 60;
  SchedulerChecker checker(s);
  checker.add(request(1, 70, 1));
  checker.add(request(2, 41, 1));
  checker.add(request(3, 39, 2));
  checker.add(request(4, 0, 2));
  checker.add(request(5, 4, 2));
  EXPECT_TRUE(checker.run());
  EXPECT_EQ(checker.rejected, (std::set<RequestId>{id_of(1), id_of(2), id_of(4)}));
  EXPECT_NE(explain_rejection(s, 70, 1).find("max_model_len"), std::string::npos);
  EXPECT_NE(explain_rejection(s, 41, 1).find("KV cache"), std::string::npos);
  EXPECT_EQ(explain_rejection(s, 39, 2), "");
}

TEST(Scheduler, AbortReleasesBlocksAtOnce) {
  SchedulerSettings s = settings(10);
  SchedulerChecker checker(s);
  checker.add(request(1, 30, 5));
  checker.add(request(2, 30, 5));
  checker.step(), checker.step();
  EXPECT_GT(checker.scheduler.state().kv_used, 0.7);
  checker.add(request(3, 30, 5));
  checker.abort(id_of(1));
  EXPECT_EQ(checker.scheduler.state().kv_used, 0.1) << "the first block of the second request";
  checker.abort(id_of(3));  // still waiting
  checker.abort(id_of(2));
  EXPECT_EQ(checker.scheduler.state().kv_used, 0);
  EXPECT_TRUE(checker.scheduler.is_idle());
  checker.scheduler.abort(id_of(99));
}

TEST(Scheduler, PrefixCacheHitSavesExactlyItsTokens) {
  std::map<PrefixCache, std::map<RequestId, SchedulerChecker::RequestRecord>> records;
  for (const PrefixCache cache : {PrefixCache::off, PrefixCache::on}) {
    SchedulerSettings s = settings(500);
    s.prefix_cache = cache;
    SchedulerChecker checker(s);
    for (int i = 0; i < 20; ++i) {
      ScheduledRequest r = request(i, 30, 1 + i % 7);
      r.prompt_blocks = hash_synthetic_blocks(1, 18, static_cast<std::uint64_t>(10 + i % 5), 30, 4);
      checker.add(r);
    }
    EXPECT_TRUE(checker.run());
    records[cache] = checker.finished;
    const auto& state = checker.scheduler.state();
    EXPECT_EQ(state.prompt_tokens, 600);
    // The first computes everything, the next four share 16 tokens each, the others 28 of 30.
    EXPECT_EQ(state.cached_tokens, cache == PrefixCache::on ? 4 * 16 + 15 * 28 : 0);
  }
  for (const auto& [id, off] : records[PrefixCache::off]) {
    const auto& on = records[PrefixCache::on].at(id);
    EXPECT_EQ(on.generated, off.generated);
    EXPECT_EQ(on.tokens + on.hits, off.tokens);
  }
}

class ListedQueue : public OutsideQueue {
 public:
  explicit ListedQueue(options::SchedulingPolicy policy) : policy_(policy) {}
  size_t size() const override { return requests.size(); }
  Rank first() const override { return rank(*at_first()); }
  ScheduledRequest take() override {
    const auto at = at_first();
    ScheduledRequest first = *at;
    requests.erase(at);
    return first;
  }
  std::vector<ScheduledRequest> requests;

 private:
  static Rank rank(const ScheduledRequest& r) { return {r.priority, r.arrival_s}; }
  std::vector<ScheduledRequest>::const_iterator at_first() const {
    if (policy_ == options::SchedulingPolicy::fcfs) return requests.begin();
    return std::min_element(requests.begin(), requests.end(),
                            [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }
  options::SchedulingPolicy policy_;
};

enum class Queueing { in_scheduler, outside };

// Everything that a server does with requests of random lengths, two of which arrive before every step.
std::vector<std::string> history_of(const SchedulerSettings& s, Queueing queueing) {
  Scheduler scheduler(s);
  ListedQueue queue(s.policy);
  if (queueing == Queueing::outside) scheduler.set_outside_queue(&queue);
  std::map<RequestId, int> left;
  std::vector<std::string> history;
  const Rng rng{7};
  for (int arrived = 0; history.size() < 2000 && (arrived < 120 || !scheduler.is_idle());) {
    for (int i = 0; i < 2 && arrived < 120; ++i, ++arrived) {
      const auto draw = static_cast<std::uint64_t>(3 * arrived);
      const ScheduledRequest r =
          request(arrived, 1 + static_cast<int>(rng.at(draw) % 40), 1 + static_cast<int>(rng.at(draw + 1) % 30),
                  static_cast<int>(rng.at(draw + 2) % 3));
      left[r.id] = r.max_new_tokens;
      queueing == Queueing::outside ? queue.requests.push_back(r) : scheduler.add(r);
    }
    const Step step = scheduler.next();
    const SchedulerState& state = scheduler.state();
    std::string text = std::to_string(state.running) + " run, " + std::to_string(state.waiting) + " wait, " +
                       std::to_string(state.kv_used);
    for (const RequestId id : step.preempted) text += " preempted " + std::to_string(static_cast<long>(id));
    for (const RequestId id : step.rejected) text += " rejected " + std::to_string(static_cast<long>(id));
    std::vector<RequestId> ended;
    scheduler.advance(step);
    for (const StepItem& item : step.items) {
      text += " " + std::to_string(static_cast<long>(item.id)) + ":" + std::to_string(item.first) + "+" +
              std::to_string(item.count);
      if (item.samples && --left[item.id] == 0) ended.push_back(item.id);
    }
    scheduler.finish(ended);
    history.push_back(text);
  }
  EXPECT_TRUE(scheduler.is_idle());
  return history;
}

TEST(Scheduler, QueuesOutsideAndInsideGiveTheSameSteps) {
  for (const options::SchedulingPolicy policy : {options::SchedulingPolicy::fcfs, options::SchedulingPolicy::priority})
    for (const KvReservation reservation : {KvReservation::computed, KvReservation::whole}) {
      SchedulerSettings s = settings(16);  // 64 tokens: some requests are preempted, some never fit
      s.policy = policy;
      s.kv_reservation = reservation;
      const auto inside = history_of(s, Queueing::in_scheduler);
      EXPECT_EQ(inside, history_of(s, Queueing::outside));
      const auto some = [&](const char* event) {
        return std::any_of(inside.begin(), inside.end(),
                           [&](const std::string& step) { return step.find(event) != std::string::npos; });
      };
      EXPECT_TRUE(some("rejected"));
      EXPECT_EQ(some("preempted"), reservation == KvReservation::computed);
    }
}

TEST(Scheduler, ComputesAtLeastOnePromptToken) {
  SchedulerChecker checker(settings(50));
  for (int i = 1; i <= 2; ++i) {
    ScheduledRequest r = request(i, 16, 1);
    r.prompt_blocks = hash_synthetic_blocks(0, 0, 3, 16, 4);
    checker.add(r);
    EXPECT_TRUE(checker.run());
  }
  EXPECT_EQ(checker.finished.at(id_of(2)).hits, 12);
  EXPECT_EQ(checker.finished.at(id_of(2)).tokens, 4);
}

TEST(Scheduler, RejectsSettingsThatServeNothing) {
  for (int SchedulerSettings::*key : {&SchedulerSettings::max_num_seqs, &SchedulerSettings::max_num_batched_tokens,
                                      &SchedulerSettings::max_model_len}) {
    SchedulerSettings s = settings(10);
    s.*key = 0;
    EXPECT_THROW(Scheduler{s}, Error);
  }
  EXPECT_THROW(Scheduler{settings(0)}, Error);
}

TEST(BlockHashes, SyntheticHashesMatchTheHashesOfTheTokens) {
  Rng rng{11};
  int equal = 0;
  for (int i = 0; i < 400; ++i) {
    TimedRequest a{
        .prompt_len = static_cast<int>(1 + rng.below(60)), .prompt_seed = rng.below(3), .shared_seed = rng.below(2)};
    TimedRequest b{
        .prompt_len = static_cast<int>(1 + rng.below(60)), .prompt_seed = rng.below(3), .shared_seed = rng.below(2)};
    a.shared = static_cast<int>(rng.below(40)), b.shared = static_cast<int>(rng.below(40));
    const auto of_ids = [](const TimedRequest& r) { return hash_blocks(prompt_ids(r, 10, 100000), 4); };
    const auto of_seeds = [](const TimedRequest& r) {
      return hash_synthetic_blocks(r.shared_seed, r.shared, r.prompt_seed, r.prompt_len, 4);
    };
    const auto common = [](const auto& x, const auto& y) {
      return std::mismatch(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(std::min(x.size(), y.size())), y.begin())
                 .first -
             x.begin();
    };
    EXPECT_EQ(of_ids(a).size(), of_seeds(a).size());
    // A boundary inside a block can only shorten the common prefix.
    EXPECT_LE(common(of_seeds(a), of_seeds(b)), common(of_ids(a), of_ids(b)));
    if (a.shared == b.shared) {
      EXPECT_EQ(common(of_seeds(a), of_seeds(b)), common(of_ids(a), of_ids(b)));
      equal += common(of_ids(a), of_ids(b)) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(equal, 0);
  const std::vector<int> ids{1, 2, 3, 4};
  EXPECT_NE(hash_blocks(ids, 4, 1), hash_blocks(ids, 4, 2)) << "different salts share no block";
}

}  // namespace
}  // namespace mw::serve
