// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/batches.h"

#include <algorithm>
#include <map>

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

constexpr int kPad = 0;

// Example e is bos, then e * 1000 + 1, e * 1000 + 2, ...: every token identifies its example.
std::vector<Example> examples(int n, int longest) {
  Rng rng{3, static_cast<std::uint64_t>(n)};
  std::vector<Example> out;
  for (int e = 0; e < n; ++e) {
    Example x;
    x.row = e;
    const int length = 2 + static_cast<int>(rng.below(static_cast<std::uint64_t>(longest - 1)));
    for (int i = 0; i < length; ++i) {
      x.ids.push_back(i == 0 ? 2 : 1000 * (e + 1) + i);
      x.loss.push_back(i > length / 2);
    }
    x.loss.back() = 1;
    out.push_back(std::move(x));
  }
  return out;
}

void same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.len, b.len);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.segments, b.segments);
  EXPECT_EQ(a.real_tokens, b.real_tokens);
  EXPECT_EQ(a.loss_tokens, b.loss_tokens);
}

// Checks every token of the batch against its example and returns the examples in it.
std::vector<int> take_apart(const Batch& b, const std::vector<Example>& all) {
  std::vector<int> found;
  std::int64_t real = 0, loss = 0;
  for (int r = 0; r < b.rows; ++r) {
    const auto at = [&](int i) { return static_cast<size_t>(r * b.len + i); };
    int i = 0, segment = 0;
    while (i < b.len && b.segments[at(i)] >= 0) {
      EXPECT_EQ(b.segments[at(i)], segment++);
      EXPECT_EQ(b.ids[at(i)], 2);
      const int e = b.ids[at(i + 1)] / 1000 - 1;
      found.push_back(e);
      const Example& x = all[static_cast<size_t>(e)];
      for (size_t k = 0; k < x.ids.size(); ++k, ++i) {
        EXPECT_EQ(b.ids[at(i)], x.ids[k]);
        EXPECT_EQ(b.segments[at(i)], segment - 1);
        EXPECT_EQ(b.positions[at(i)], static_cast<int>(k));
        const int target = k + 1 < x.ids.size() && x.loss[k + 1] ? x.ids[k + 1] : -1;
        EXPECT_EQ(b.targets[at(i)], target);
        loss += target >= 0;
        ++real;
      }
    }
    for (; i < b.len; ++i) {
      EXPECT_EQ(b.ids[at(i)], kPad);
      EXPECT_EQ(b.targets[at(i)], -1);
      EXPECT_EQ(b.segments[at(i)], -1);
    }
  }
  EXPECT_EQ(b.real_tokens, real);
  EXPECT_EQ(b.loss_tokens, loss);
  return found;
}

TEST(Batches, EveryEpochContainsEveryExampleOnceInOwnOrder) {
  const auto all = examples(103, 30);
  for (const Packing packing : {Packing::none, Packing::pack}) {
    BatchStream stream(all, {.rows = 1, .max_len = 64, .packing = packing, .seed = 7}, kPad);
    std::vector<std::vector<int>> epochs;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int> seen;
      while (seen.size() < all.size()) {
        const Batch b = stream.next();
        EXPECT_LE(b.len, 64);
        const auto in = take_apart(b, all);
        seen.insert(seen.end(), in.begin(), in.end());
      }
      epochs.push_back(seen);
      std::sort(seen.begin(), seen.end());
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(seen[i], static_cast<int>(i));
    }
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_NE(epochs[1], epochs[2]);
  }
}

TEST(Batches, FillsLastBatchOfEpochFromNextEpoch) {
  const auto all = examples(10, 8);
  BatchStream stream(all, {.rows = 4, .max_len = 8, .seed = 1}, kPad);
  EXPECT_EQ(stream.batches_per_epoch(), 3);
  std::map<int, int> seen;
  for (int n = 0; n < 5; ++n) {
    const Batch b = stream.next();
    EXPECT_EQ(b.rows, 4);
    for (const int e : take_apart(b, all)) ++seen[e];
  }
  ASSERT_EQ(seen.size(), 10u);  // 5 batches of 4 rows: two epochs
  for (const auto& [e, times] : seen) EXPECT_EQ(times, 2);
}

TEST(Batches, ResumedStreamEqualsUninterruptedOne) {
  const auto all = examples(57, 20);
  for (const Packing packing : {Packing::none, Packing::pack}) {
    const BatchOptions options{.rows = 3, .max_len = 32, .packing = packing, .seed = 9};
    std::vector<Batch> whole;
    BatchStream stream(all, options, kPad);
    for (int n = 0; n < 70; ++n) {
      EXPECT_EQ(stream.position(), n);
      whole.push_back(stream.next());
    }
    for (const int n : {0, 1, 2, 7, 18, 19, 20, 41, 67}) {
      BatchStream resumed(all, options, kPad, n);
      EXPECT_EQ(resumed.position(), n);
      for (int k = n; k < n + 3; ++k) same(resumed.next(), whole[static_cast<size_t>(k)]);
    }
  }
}

TEST(Batches, PackingFillsRowsAndDependsOnSeed) {
  const auto all = examples(3000, 100);
  std::int64_t real = 0, slots = 0;
  BatchStream packed(all, {.rows = 4, .max_len = 128, .packing = Packing::pack, .seed = 1}, kPad);
  const Batch first = packed.next();
  for (std::int64_t n = 1; n < packed.batches_per_epoch(); ++n) {
    const Batch b = packed.next();
    real += b.real_tokens;
    slots += b.rows * 128;
  }
  EXPECT_GT(static_cast<double>(real) / static_cast<double>(slots), 0.97);
  BatchStream other(all, {.rows = 4, .max_len = 128, .packing = Packing::pack, .seed = 2}, kPad);
  EXPECT_NE(other.next().ids, first.ids);
}

TEST(Batches, EpochSizeEqualsSumOverBatches) {
  for (const int n : {1, 7, 103, 2500}) {
    const auto all = examples(n, 60);
    for (const Packing packing : {Packing::none, Packing::pack})
      for (const int rows : {1, 4}) {
        const BatchOptions options{.rows = rows, .max_len = 64, .packing = packing, .seed = 13};
        EpochSize expected;
        BatchStream stream(all, options, kPad);
        for (; expected.batches < stream.batches_per_epoch(); ++expected.batches) {
          const Batch b = stream.next();
          expected.rows += b.rows;
          expected.tokens += b.real_tokens;
          expected.loss_tokens += b.loss_tokens;
          expected.padded += std::int64_t{b.rows} * b.len;
          EXPECT_EQ(std::count(b.ids.begin(), b.ids.end(), kPad), std::int64_t{b.rows} * b.len - b.real_tokens);
        }
        const EpochSize epoch = first_epoch_size(ExampleList(all).sizes(), options);
        EXPECT_EQ(epoch.batches, expected.batches);
        EXPECT_EQ(epoch.rows, expected.rows);
        EXPECT_EQ(epoch.tokens, expected.tokens);
        EXPECT_EQ(epoch.loss_tokens, expected.loss_tokens);
        EXPECT_EQ(epoch.padded, expected.padded);
        EXPECT_EQ(epoch.fixed, expected.rows * 64);
      }
  }
  EXPECT_EQ(problem_of([] { first_epoch_size({}, {}); }).id, "DATA-EMPTY");
  EXPECT_EQ(problem_of([] { first_epoch_size(std::vector<ExampleSize>{{65, 1}}, {.max_len = 64}); }).id, "DATA-LEN");
}

TEST(Batches, EvaluationUsesEveryExampleOnceInOrder) {
  const auto all = examples(11, 9);
  std::vector<int> seen;
  const auto batches = eval_batches(all, {.rows = 4, .max_len = 9}, kPad);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[2].rows, 3);
  for (const Batch& b : batches)
    for (const int e : take_apart(b, all)) seen.push_back(e);
  ASSERT_EQ(seen.size(), all.size());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_TRUE(eval_batches({}, {}, kPad).empty());
  seen.clear();
  for (const Batch& b : eval_batches(all, {.rows = 2, .max_len = 20, .packing = Packing::pack}, kPad))
    for (const int e : take_apart(b, all)) seen.push_back(e);
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), all.size());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST(Batches, RejectsInvalidOptionsAndExamples) {
  const auto all = examples(3, 9);
  EXPECT_EQ(problem_of([&] { BatchStream({}, {}, kPad); }).id, "DATA-EMPTY");
  EXPECT_EQ(problem_of([&] { BatchStream(all, {.rows = 0}, kPad); }).id, "DATA-BATCH");
  EXPECT_EQ(problem_of([&] { BatchStream(all, {.rows = 1, .max_len = 1}, kPad); }).id, "DATA-LEN");
  EXPECT_EQ(problem_of([&] { BatchStream(all, {}, kPad, -1); }).id, "DATA-BATCH");
}

TEST(Batches, DestructorStopsPrefetchThread) {
  const auto all = examples(20, 9);
  for (int i = 0; i < 50; ++i) {
    BatchStream stream(all, {.rows = 2, .max_len = 16}, kPad);
    if (i % 2) stream.next();
  }
}

TEST(Batches, LargestBatchPerDeviceIsMaximumOverItsRows) {
  const std::vector<Example> all = examples(50, 30);
  for (const Packing packing : {Packing::none, Packing::pack}) {
    const BatchOptions options{.rows = 5, .max_len = 64, .packing = packing, .seed = 7};
    constexpr int kWays = 4, kEach = 2;  // rows 0-1, 2-3, 4, none
    const std::vector<BatchSize> shares = largest_batch_per_device(all, options, 0, 12, kWays);
    std::vector<BatchSize> want(kWays);
    BatchStream stream(all, options, kPad);
    for (int n = 0; n < 12; ++n) {
      const Batch b = stream.next();
      std::vector<BatchSize> have(kWays);
      for (int r = 0; r < b.rows; ++r) {
        BatchSize& mine = have[static_cast<size_t>(r / kEach)];
        mine.padded += b.len;
        std::map<int, int> lengths;
        for (int i = 0; i < b.len; ++i) {
          const auto at = static_cast<size_t>(r * b.len + i);
          if (b.segments[at] < 0) continue;
          ++mine.tokens;
          mine.longest = std::max(mine.longest, ++lengths[b.segments[at]]);
          mine.loss_tokens += b.targets[at] >= 0;
        }
      }
      for (size_t w = 0; w < kWays; ++w) {
        want[w].tokens = std::max(want[w].tokens, have[w].tokens);
        want[w].loss_tokens = std::max(want[w].loss_tokens, have[w].loss_tokens);
        want[w].padded = std::max(want[w].padded, have[w].padded);
        want[w].longest = std::max(want[w].longest, have[w].longest);
        const std::int64_t room = std::min(have[w].padded, (have[w].tokens + 255) / 256 * 256);
        want[w].step_tokens = std::max(want[w].step_tokens, room);
      }
    }
    for (size_t w = 0; w < kWays; ++w) {
      EXPECT_EQ(shares[w].tokens, want[w].tokens) << w;
      EXPECT_EQ(shares[w].loss_tokens, want[w].loss_tokens) << w;
      EXPECT_EQ(shares[w].padded, want[w].padded) << w;
      EXPECT_EQ(shares[w].longest, want[w].longest) << w;
      EXPECT_EQ(shares[w].step_tokens, want[w].step_tokens) << w;
    }
    EXPECT_EQ(shares.back().padded, 0);
  }
}

}  // namespace
}  // namespace mw::data::testing
