// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/scheduling/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

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

// Steps a scheduler and holds everything it says against the books of a careful clerk.
class Clerk {
 public:
  explicit Clerk(const SchedulerSettings& s) : settings(s), scheduler(s) {}

  struct Account {
    ScheduledRequest request;
    int computed = 0, generated = 0, preemptions = 0, admissions = 0;
    std::int64_t items = 0, tokens = 0, hits = 0;  // over all its lives
    bool running = false;
    int total() const { return request.prompt_len + generated; }
  };

  void add(const ScheduledRequest& r) {
    open.emplace(r.id, Account{.request = r});
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
      Account& a = open.at(id);
      EXPECT_TRUE(a.running);
      a.running = false, a.computed = 0, ++a.preemptions;
    }
    for (const RequestId id : s.refused) {
      refused.insert(id);
      open.erase(id);
    }
    std::set<RequestId> seen;
    for (const StepItem& item : s.items) {
      EXPECT_TRUE(seen.insert(item.id).second) << "twice in one step";
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
    EXPECT_EQ(scheduler.idle(), open.empty());
    if (running == 0) {
      EXPECT_EQ(scheduler.state().kv_used, 0);
    }
    return s;
  }

  // Until nothing is left; false where it stands still.
  bool run() {
    for (int still = 0; !scheduler.idle();) {
      const Step s = step();
      still = s.items.empty() && s.preempted.empty() && s.refused.empty() ? still + 1 : 0;
      if (still > 0) return false;
    }
    return true;
  }

  SchedulerSettings settings;
  Scheduler scheduler;
  std::map<RequestId, Account> open, finished;
  std::set<RequestId> refused;
  std::vector<RequestId> added, admitted;

 private:
  void enter(const StepItem& item) {
    Account& a = open.at(item.id);
    if (!a.running) {
      a.running = true;
      if (a.admissions++ == 0) admitted.push_back(item.id);
      a.computed = item.first;  // what the prefix cache had
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
    EXPECT_EQ(item.first, a.computed) << "every token once, in order";
    a.computed += item.count;
    a.tokens += item.count;
    ++a.items;
    EXPECT_LE(a.computed, a.total());
    EXPECT_EQ(item.samples, a.computed == a.total());
    if (settings.chunked_prefill == ChunkedPrefill::off && a.total() <= settings.max_num_batched_tokens) {
      EXPECT_TRUE(item.samples) << "a prompt in one step";
    }
  }

  void check_blocks() {  // who shares a block has the same prompt up to there; all tokens in sight have one
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
            EXPECT_LE((i + 1) * size, std::max(0, a.computed - window)) << "freed, but in sight";
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

// The step that preempts, which has to come.
Step first_preemption(Clerk& clerk) {
  for (int i = 0; i < 200; ++i)
    if (Step step = clerk.step(); !step.preempted.empty()) return step;
  ADD_FAILURE() << "nobody was preempted";
  return {};
}

TEST(Scheduler, RandomTrafficLeaksNothingBreaksNoLimitAndComputesEveryTokenOnce) {
  std::int64_t preemptions = 0, hits = 0, refusals = 0, done = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng{seed, 77};
    SchedulerSettings s = settings(static_cast<int>(20 + rng.below(40)), static_cast<int>(2 + rng.below(6)));
    s.max_num_seqs = static_cast<int>(1 + rng.below(9));
    s.max_num_batched_tokens = static_cast<int>(8 + rng.below(40));
    s.max_model_len = 90;
    s.chunked_prefill = rng.below(3) ? ChunkedPrefill::on : ChunkedPrefill::off;
    s.prefix_cache = rng.below(3) ? PrefixCache::on : PrefixCache::off;
    s.policy = rng.below(2) ? SchedulingPolicy::fcfs : SchedulingPolicy::priority;
    if (rng.below(2)) s.kv.groups.push_back({.window = static_cast<int>(1 + rng.below(30)), .block_bytes = Bytes(1)});
    if (rng.below(3) == 0) s.kv.groups[0].max_blocks = static_cast<int>(20 + rng.below(20));
    Clerk clerk(s);
    for (int i = 0; i < 60;) {
      if (rng.below(3) == 0) {
        ScheduledRequest r = request(i, static_cast<int>(1 + rng.below(70)), static_cast<int>(1 + rng.below(25)),
                                     static_cast<int>(rng.below(3)));
        if (rng.below(4))
          r.prompt_blocks = hash_blocks(rng.below(2), static_cast<int>(rng.below(60)), 100 + rng.below(10),
                                        r.prompt_len, s.kv.block_size);
        clerk.add(r);
        ++i;
      } else if (rng.below(12) == 0 && !clerk.open.empty()) {
        clerk.abort(std::next(clerk.open.begin(), static_cast<std::ptrdiff_t>(rng.below(clerk.open.size())))->first);
      } else if (rng.below(60) == 0) {
        clerk.scheduler.clear_prefix_cache();
      } else {
        clerk.step();
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    ASSERT_TRUE(clerk.run()) << "stands still, seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_EQ(clerk.scheduler.state().kv_used, 0);
    for (const auto& [id, a] : clerk.finished) {
      EXPECT_EQ(a.generated, a.request.max_new_tokens);
      if (a.preemptions == 0) {
        EXPECT_EQ(a.tokens + a.hits, a.request.prompt_len + a.request.max_new_tokens - 1);
      }
      preemptions += a.preemptions, hits += a.hits, ++done;
    }
    for (const RequestId id : clerk.refused) {
      EXPECT_FALSE(clerk.finished.contains(id));
      ++refusals;
    }
    if (s.policy == SchedulingPolicy::fcfs) {
      std::vector<RequestId> order = clerk.admitted;
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "nobody overtakes";
    }
  }
  EXPECT_GT(done, 3000);
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(hits, 1000);
  EXPECT_GT(refusals, 100);
}

TEST(Scheduler, DecodingGoesOnWhileALongPromptIsPrefilledInChunks) {
  Clerk clerk(settings(50));
  clerk.add(request(1, 4, 30));
  clerk.step();
  clerk.add(request(2, 40, 2));
  for (const int chunk : {15, 15, 10}) {
    const Step s = clerk.step();
    ASSERT_EQ(s.items.size(), 2u);
    EXPECT_EQ(s.items[0].id, id_of(1));
    EXPECT_EQ(s.items[0].count, 1);
    EXPECT_EQ(s.items[1].count, chunk);
    EXPECT_EQ(s.items[1].samples, chunk == 10);
  }
}

TEST(Scheduler, WithoutChunksAPromptWaitsUntilAStepHasRoomForAllOfIt) {
  SchedulerSettings s = settings(50);
  s.chunked_prefill = ChunkedPrefill::off;
  Clerk clerk(s);
  clerk.add(request(1, 10, 5));
  clerk.add(request(2, 10, 5));
  Step step = clerk.step();
  ASSERT_EQ(step.items.size(), 1u) << "6 of 16 tokens are left";
  step = clerk.step();
  ASSERT_EQ(step.items.size(), 2u);
  EXPECT_EQ(step.items[1].count, 10);
  clerk.add(request(3, 17, 5));
  EXPECT_TRUE(clerk.run());
  EXPECT_TRUE(clerk.refused.contains(id_of(3))) << "longer than any step";
  EXPECT_EQ(clerk.finished.size(), 2u);
}

TEST(Scheduler, WhenBlocksRunOutTheLastAdmittedStartsAnewAndComesBackFirst) {
  SchedulerSettings s = settings(7);  // 28 tokens
  s.prefix_cache = PrefixCache::off;
  Clerk clerk(s);
  clerk.add(request(1, 8, 12));
  clerk.add(request(2, 7, 12));
  const Step step = first_preemption(clerk);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(2)});
  EXPECT_EQ(step.items.size(), 1u);
  clerk.add(request(3, 4, 1));
  const int generated = clerk.open.at(id_of(2)).generated;
  EXPECT_GT(generated, 0);
  EXPECT_TRUE(clerk.run());
  EXPECT_EQ(clerk.finished.at(id_of(2)).generated, 12) << "what it had said stays said";
  EXPECT_EQ(clerk.finished.at(id_of(2)).tokens, (7 + generated - 1) + (7 + 12 - 1));
  EXPECT_EQ(clerk.finished.at(id_of(1)).preemptions, 0);
  EXPECT_EQ(clerk.scheduler.state().preemptions, 1);
}

TEST(Scheduler, APreemptedRequestFindsItsBlocksAgainWhereNobodyNeededThem) {
  SchedulerSettings s = settings(9);
  Clerk clerk(s);
  ScheduledRequest a = request(1, 8, 13), b = request(2, 8, 20);
  a.prompt_blocks = hash_blocks(0, 0, 5, 8, 4), b.prompt_blocks = hash_blocks(0, 0, 6, 8, 4);
  clerk.add(a), clerk.add(b);
  const Step step = first_preemption(clerk);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(2)});
  EXPECT_TRUE(clerk.run());
  const auto& account = clerk.finished.at(id_of(2));
  EXPECT_EQ(account.hits, 16) << "prompt and answer";
  EXPECT_EQ(clerk.scheduler.state().cached_tokens, 0) << "hits of a second life are not the workload's";
}

TEST(Scheduler, UrgentOnesPassAndTheLeastUrgentPays) {
  SchedulerSettings s = settings(12);
  s.policy = SchedulingPolicy::priority, s.prefix_cache = PrefixCache::off, s.max_num_seqs = 2;
  Clerk clerk(s);
  clerk.add(request(1, 4, 30, 5));
  clerk.add(request(2, 4, 3, 9));
  clerk.add(request(3, 4, 30, 1));
  const Step first = clerk.step();
  ASSERT_EQ(first.items.size(), 2u);
  EXPECT_EQ(first.items[0].id, id_of(3));
  EXPECT_EQ(first.items[1].id, id_of(1));
  const Step step = first_preemption(clerk);
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(1)});
  EXPECT_TRUE(clerk.run());
  EXPECT_EQ(clerk.finished.size(), 3u);
}

TEST(Scheduler, TheUrgentTakesFromOneThatIsAlreadyInTheStep) {
  SchedulerSettings s = settings(5);
  s.policy = SchedulingPolicy::priority, s.prefix_cache = PrefixCache::off;
  Clerk clerk(s);
  clerk.add(request(1, 7, 8, 9));  // admitted first, least urgent
  clerk.step();
  clerk.add(request(2, 8, 8, 1));
  clerk.step();  // 2 + 2 blocks
  const Step step = clerk.step();
  EXPECT_EQ(step.preempted, std::vector<RequestId>{id_of(1)});
  ASSERT_EQ(step.items.size(), 1u);
  EXPECT_EQ(step.items[0].id, id_of(2));
  EXPECT_TRUE(clerk.run());
}

TEST(Scheduler, WhatCanNeverFitIsRefusedAndHoldsNobodyUp) {
  SchedulerSettings s = settings(10);  // 40 tokens
  s.max_model_len = 60;
  Clerk clerk(s);
  clerk.add(request(1, 70, 1));
  clerk.add(request(2, 41, 1));
  clerk.add(request(3, 39, 2));
  clerk.add(request(4, 0, 2));
  clerk.add(request(5, 4, 2));
  EXPECT_TRUE(clerk.run());
  EXPECT_EQ(clerk.refused, (std::set<RequestId>{id_of(1), id_of(2), id_of(4)}));
  EXPECT_NE(explain_rejection(s, 70, 1).find("max_model_len"), std::string::npos);
  EXPECT_NE(explain_rejection(s, 41, 1).find("KV cache"), std::string::npos);
  EXPECT_EQ(explain_rejection(s, 39, 2), "");
}

TEST(Scheduler, AnAbortFreesAtOnceWhetherItRunsOrWaits) {
  SchedulerSettings s = settings(10);
  Clerk clerk(s);
  clerk.add(request(1, 30, 5));
  clerk.add(request(2, 30, 5));
  clerk.step(), clerk.step();
  EXPECT_GT(clerk.scheduler.state().kv_used, 0.7);
  clerk.add(request(3, 30, 5));
  clerk.abort(id_of(1));
  EXPECT_EQ(clerk.scheduler.state().kv_used, 0.1) << "the second one's first block";
  clerk.abort(id_of(3));  // waits
  clerk.abort(id_of(2));
  EXPECT_EQ(clerk.scheduler.state().kv_used, 0);
  EXPECT_TRUE(clerk.scheduler.idle());
  clerk.scheduler.abort(id_of(99));
}

TEST(Scheduler, APrefixHitSavesExactlyItsTokensAndChangesNoAnswer) {
  std::map<PrefixCache, std::map<RequestId, Clerk::Account>> books;
  for (const PrefixCache cache : {PrefixCache::off, PrefixCache::on}) {
    SchedulerSettings s = settings(500);
    s.prefix_cache = cache;
    Clerk clerk(s);
    for (int i = 0; i < 20; ++i) {
      ScheduledRequest r = request(i, 30, 1 + i % 7);
      r.prompt_blocks = hash_blocks(1, 18, static_cast<std::uint64_t>(10 + i % 5), 30, 4);
      clerk.add(r);
    }
    EXPECT_TRUE(clerk.run());
    books[cache] = clerk.finished;
    const auto& state = clerk.scheduler.state();
    EXPECT_EQ(state.prompt_tokens, 600);
    // The first computes all; of the next four each 16 tokens are shared, and of the rest 28 of 30.
    EXPECT_EQ(state.cached_tokens, cache == PrefixCache::on ? 4 * 16 + 15 * 28 : 0);
  }
  for (const auto& [id, off] : books[PrefixCache::off]) {
    const auto& on = books[PrefixCache::on].at(id);
    EXPECT_EQ(on.generated, off.generated);
    EXPECT_EQ(on.tokens + on.hits, off.tokens);
  }
}

TEST(Scheduler, AtLeastOneTokenOfAPromptIsComputed) {
  Clerk clerk(settings(50));
  for (int i = 1; i <= 2; ++i) {
    ScheduledRequest r = request(i, 16, 1);
    r.prompt_blocks = hash_blocks(0, 0, 3, 16, 4);
    clerk.add(r);
    EXPECT_TRUE(clerk.run());
  }
  EXPECT_EQ(clerk.finished.at(id_of(2)).hits, 12);
  EXPECT_EQ(clerk.finished.at(id_of(2)).tokens, 4);
}

TEST(Scheduler, SettingsThatServeNothingAreRefused) {
  for (int SchedulerSettings::*key : {&SchedulerSettings::max_num_seqs, &SchedulerSettings::max_num_batched_tokens,
                                      &SchedulerSettings::max_model_len}) {
    SchedulerSettings s = settings(10);
    s.*key = 0;
    EXPECT_THROW(Scheduler{s}, Error);
  }
  EXPECT_THROW(Scheduler{settings(0)}, Error);
}

TEST(BlockHashes, OfSeedsAgreeWhereTheTokensDo) {
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
      return hash_blocks(r.shared_seed, r.shared, r.prompt_seed, r.prompt_len, 4);
    };
    const auto common = [](const auto& x, const auto& y) {
      return std::mismatch(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(std::min(x.size(), y.size())), y.begin())
                 .first -
             x.begin();
    };
    EXPECT_EQ(of_ids(a).size(), of_seeds(a).size());
    // Boundaries inside a block may hide what a longer common part would show, never the other way.
    EXPECT_LE(common(of_seeds(a), of_seeds(b)), common(of_ids(a), of_ids(b)));
    if (a.shared == b.shared) {
      EXPECT_EQ(common(of_seeds(a), of_seeds(b)), common(of_ids(a), of_ids(b)));
      equal += common(of_ids(a), of_ids(b)) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(equal, 0);
  const std::vector<int> ids{1, 2, 3, 4};
  EXPECT_NE(hash_blocks(ids, 4, 1), hash_blocks(ids, 4, 2)) << "tenants share nothing";
}

}  // namespace
}  // namespace mw::serve
