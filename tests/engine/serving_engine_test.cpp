// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/generate/serving_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

constexpr int kServedVocab = 61, kContext = 48;

// Full layers in one group, sliding ones in another, as a server keeps them.
ServingCapacity room_of(const model::Config& config, int block_size, int blocks) {
  ServingCapacity room{
      .block_size = block_size, .groups = {{{}, blocks}, {{}, blocks}}, .tokens = 64, .rows = 8, .context = kContext};
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i].has_k)
      room.groups[config.layers[i].attention == model::Attention::sliding ? 1 : 0].layers.push_back(
          static_cast<int>(i));
  return room;
}

// Blocks of several requests, handed out in an order that is not theirs; those behind a sliding group's window go to
// whoever asks next.
class Blocks {
 public:
  Blocks(int rows, int block_size, int blocks, int window, int apart = 7)
      : block_size_(block_size), window_(window), free_(2), of_(static_cast<size_t>(rows)) {
    for (auto& free : free_)
      for (int i = 0; i < blocks; ++i) free.push_back((apart * i + 3) % blocks);  // blocks: no multiple of it
    for (auto& row : of_) row.resize(2);
  }
  // Room for tokens [first, end) of a row, and nothing that they do not need.
  void extend(int row, int first, int end) {
    auto& groups = of_[static_cast<size_t>(row)];
    for (size_t g = 0; g < 2; ++g) {
      for (int i = 0; g == 1 && i < (first - window_ + 1) / block_size_ && i < static_cast<int>(groups[g].size()); ++i)
        if (int& block = groups[g][static_cast<size_t>(i)]; block >= 0) free_[g].push_back(std::exchange(block, -1));
      while (static_cast<int>(groups[g].size()) * block_size_ < end) {
        if (free_[g].empty()) throw std::logic_error("the test has too few blocks");
        groups[g].push_back(free_[g].front());
        free_[g].erase(free_[g].begin());
      }
    }
  }
  void share(int from, int to, int tokens) {
    for (size_t g = 0; g < 2; ++g) {
      const auto& source = of_[static_cast<size_t>(from)][g];
      of_[static_cast<size_t>(to)][g].assign(source.begin(), source.begin() + tokens / block_size_);
    }
  }
  std::span<const std::span<const int>> of(int row) {
    spans_.push_back(std::make_unique<std::array<std::span<const int>, 2>>());
    for (size_t g = 0; g < 2; ++g) (*spans_.back())[g] = of_[static_cast<size_t>(row)][g];
    return *spans_.back();
  }

 private:
  int block_size_, window_;
  std::vector<std::vector<int>> free_;
  std::vector<std::vector<std::vector<int>>> of_;
  std::vector<std::unique_ptr<std::array<std::span<const int>, 2>>> spans_;
};

std::vector<int> text(int row, int len) {
  std::vector<int> ids(static_cast<size_t>(len));
  for (int i = 0; i < len; ++i) ids[static_cast<size_t>(i)] = (11 * i + 5 * row * (i % 3 + 1) + 3) % kServedVocab;
  return ids;
}

std::vector<float> full_logits(Network& network, const std::vector<int>& ids) {
  const int n = static_cast<int>(ids.size());
  OwnedBatch b{
      1, n, ids, std::vector<int>(ids.size(), -1), std::vector<int>(ids.size()), std::vector<int>(ids.size(), 0)};
  std::iota(b.positions.begin(), b.positions.end(), 0);
  std::vector<float> out(ids.size() * kServedVocab);
  network.logits(b, out);
  return out;
}

std::vector<AdapterValues> values_of(const Network& tuned) {
  std::vector<AdapterValues> values;
  for (const LoraTensors& m : tuned.lora())
    values.push_back({m.target, m.rank, m.alpha / static_cast<float>(m.rank), m.a, m.b});
  return values;
}

class Serving : public ::testing::TestWithParam<std::string> {
 protected:
  model::Config config_ = as_family(tiny_config(), GetParam());
};
INSTANTIATE_TEST_SUITE_P(Families, Serving, ::testing::ValuesIn(families()), family_name);

// What continuous batching does: requests come and go at their own pace, prompts whole and in pieces beside rows that
// decode, in blocks that others had before.
TEST_P(Serving, ChunksAndDecodingRowsTogetherEqualFullForwards) {
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    Device device(Bytes(0), 2);
    if (type != model::WeightType::f32)
      config_.experts_per_token = config_.experts;  // a rounded score may choose another
    Network network(config_, device, type, NetworkUse::inference);
    fill(network, 8, 0.25f);
    for (const int block_size : {1, 4, 16}) {
      ServingEngine server(network, room_of(config_, block_size, 160 / block_size + 3));
      constexpr int kRows = 4, kLen = 40;
      std::vector<std::vector<int>> ids;
      std::vector<std::vector<float>> expected;
      for (int row = 0; row < kRows; ++row) {
        ids.push_back(text(row, kLen));
        expected.push_back(full_logits(network, ids.back()));
      }
      Blocks blocks(kRows, block_size, 160 / block_size + 3, config_.sliding_window);
      const int pieces[][kRows]{{4, 0, 1, 0},  {1, 13, 1, 0}, {6, 1, 1, 2}, {1, 1, 1, 19}, {9, 0, 17, 1},
                                {3, 12, 1, 1}, {3, 9, 1, 1},  {1, 4, 1, 9}, {12, 0, 16, 7}};
      int done[kRows]{};
      for (const auto& piece : pieces) {
        std::vector<TokenChunk> chunks;
        std::vector<int> rows;
        for (int row = kRows - 1; row >= 0; --row) {
          if (piece[row] == 0) continue;
          blocks.extend(row, done[row], done[row] + piece[row]);
          chunks.push_back({std::span<const int>(ids[static_cast<size_t>(row)])
                                .subspan(static_cast<size_t>(done[row]), static_cast<size_t>(piece[row])),
                            done[row], blocks.of(row)});
          done[row] += piece[row];
          rows.push_back(row);
        }
        const std::span<const float> logits = server.step(chunks);
        ASSERT_EQ(logits.size(), rows.size() * kServedVocab);
        for (size_t i = 0; i < rows.size(); ++i) {
          const auto row = static_cast<size_t>(rows[i]);
          for (size_t j = 0; j < kServedVocab; ++j)
            ASSERT_NEAR(logits[i * kServedVocab + j],
                        expected[row][static_cast<size_t>(done[row] - 1) * kServedVocab + j],
                        tolerance(type, 3e-5f, 8e-2f))
                << "row " << row << " token " << done[row] << " blocks of " << block_size;
        }
      }
      EXPECT_EQ(std::accumulate(done, done + kRows, 0), 40 + 40 + 40 + 40);
    }
  }
}

TEST_P(Serving, BitsDoNotDependOnWhichBlocksAreNeighbours) {
  Device device(Bytes(0), 2);
  Network network(config_, device, model::WeightType::f32);
  fill(network, 8, 0.25f);
  const std::vector<int> ids = text(2, kContext);
  const auto decoded = [&](int apart) {
    ServingEngine server(network, room_of(config_, 16, 9));
    Blocks blocks(1, 16, 9, config_.sliding_window, apart);
    std::vector<float> all;
    for (int done = 0, count = 20; done < kContext; done += count, count = done < 30 ? 5 : 1) {
      count = std::min(count, kContext - done);
      blocks.extend(0, done, done + count);
      const TokenChunk chunk{std::span<const int>(ids).subspan(static_cast<size_t>(done), static_cast<size_t>(count)),
                             done, blocks.of(0)};
      const std::span<const float> logits = server.step({&chunk, 1});
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  };
  EXPECT_EQ(decoded(1), decoded(7)) << "read as one span, and one by one";
}

TEST_P(Serving, SharedBlocksGiveTheSameBitsAsBlocksOfOnesOwn) {
  Device device(Bytes(0), 2);
  Network network(config_, device, model::WeightType::f32);
  fill(network, 8, 0.25f);
  const std::vector<int> ids = text(1, 30);
  constexpr int kShared = 16, kBlock = 4;
  const auto part = [&](int first, int count) {
    return std::span<const int>(ids).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  };
  const auto second_half = [&](auto prepare) {
    ServingEngine server(network, room_of(config_, kBlock, 40));
    Blocks blocks(2, kBlock, 40, 1000);
    prepare(server, blocks);
    blocks.extend(1, kShared, 30);
    const TokenChunk rest{part(kShared, 14), kShared, blocks.of(1)};
    const std::span<const float> logits = server.step({&rest, 1});
    return std::vector<float>(logits.begin(), logits.end());
  };
  const auto first_half = [&](ServingEngine& server, Blocks& blocks, int row) {
    blocks.extend(row, 0, kShared);
    const TokenChunk first{part(0, kShared), 0, blocks.of(row), -1, TokenChunk::Logits::no};
    EXPECT_TRUE(server.step({&first, 1}).empty());
  };
  const std::vector<float> alone =
      second_half([&](ServingEngine& server, Blocks& blocks) { first_half(server, blocks, 1); });
  const std::vector<float> shared = second_half([&](ServingEngine& server, Blocks& blocks) {
    first_half(server, blocks, 0);
    blocks.share(0, 1, kShared);
  });
  EXPECT_EQ(alone, shared);
  // One fills the blocks, the other reads them, in the same step.
  ServingEngine server(network, room_of(config_, kBlock, 40));
  Blocks blocks(2, kBlock, 40, 1000);
  blocks.extend(0, 0, 20);
  blocks.share(0, 1, kShared);
  blocks.extend(1, kShared, 30);
  const TokenChunk both[]{{part(kShared, 14), kShared, blocks.of(1)}, {part(0, 20), 0, blocks.of(0)}};
  const std::vector<float> expected = full_logits(network, ids);
  const std::span<const float> logits = server.step(both);
  for (size_t j = 0; j < kServedVocab; ++j) {
    EXPECT_NEAR(logits[j], expected[29 * kServedVocab + j], 3e-5f);
    EXPECT_NEAR(logits[kServedVocab + j], expected[19 * kServedVocab + j], 3e-5f);
  }
}

TEST_P(Serving, EveryRowHasItsOwnAdapter) {
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    Device device(Bytes(0), 2);
    if (type != model::WeightType::f32) config_.experts_per_token = config_.experts;
    Network base(config_, device, type), first(config_, device, type), second(config_, device, type);
    for (Network* n : {&base, &first, &second}) fill(*n, 8, 0.25f);
    first.add_lora(all_projections(), 5);
    randomise_adapters(first, 6);
    options::Lora some = all_projections(2);
    some.targets = {"q_proj", "down_proj"};
    second.add_lora(some, 7);
    randomise_adapters(second, 8);
    ServingEngine server(base, room_of(config_, 4, 41));
    ASSERT_EQ(server.add_adapter(values_of(first)), 0);
    ASSERT_EQ(server.add_adapter(values_of(second)), 1);
    Network* const of[]{&base, &second, &first, &first, &base};
    const int adapter[]{-1, 1, 0, 0, -1}, prompt[]{7, 20, 3, 18, 1};  // few and many rows of an adapter
    std::vector<std::vector<int>> ids;
    for (int row = 0; row < 5; ++row) ids.push_back(text(row, 24));
    Blocks blocks(5, 4, 41, config_.sliding_window);
    for (int t = -1; t < 3; ++t) {  // prompts, then token by token
      std::vector<TokenChunk> chunks;
      for (int row = 0; row < 5; ++row) {
        const int begin = t < 0 ? 0 : prompt[row] + t, end = prompt[row] + t + 1;
        blocks.extend(row, begin, end);
        chunks.push_back({std::span<const int>(ids[static_cast<size_t>(row)])
                              .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                          begin, blocks.of(row), adapter[row]});
      }
      const std::span<const float> step = server.step(chunks);
      const std::vector<float> logits(step.begin(), step.end());
      for (size_t row = 0; row < 5; ++row) {
        const std::vector<float> all =
            full_logits(*of[row], std::vector<int>(ids[row].begin(), ids[row].begin() + prompt[row] + t + 1));
        for (size_t j = 0; j < kServedVocab; ++j)
          ASSERT_NEAR(logits[row * kServedVocab + j], all[all.size() - kServedVocab + j], tolerance(type, 3e-5f, 8e-2f))
              << "row " << row << " step " << t;
      }
    }
  }
}

// Rows of few kernels' width: more of them are multiplied in another order.
TEST_P(Serving, ARowsBitsDoNotDependOnItsCompany) {
  Device device(Bytes(0), 2);
  Network network(config_, device, model::WeightType::f32);
  fill(network, 8, 0.25f);
  const auto run = [&](int rows) {
    ServingEngine server(network, room_of(config_, 4, 121));
    Blocks blocks(rows, 4, 121, config_.sliding_window);
    std::vector<std::vector<int>> ids;
    for (int row = 0; row < rows; ++row) ids.push_back(text(row, 20));
    std::vector<float> seen;
    for (int row = 0; row < rows; ++row) {
      blocks.extend(row, 0, 11 + row);
      const TokenChunk c{std::span<const int>(ids[static_cast<size_t>(row)]).first(static_cast<size_t>(11 + row)), 0,
                         blocks.of(row)};
      server.step({&c, 1});
    }
    for (int t = 0; t < 3; ++t) {
      std::vector<TokenChunk> chunks;
      for (int row = 0; row < rows; ++row) {
        blocks.extend(row, 11 + row + t, 12 + row + t);
        chunks.push_back(
            {std::span<const int>(ids[static_cast<size_t>(row)]).subspan(static_cast<size_t>(11 + row + t), 1),
             11 + row + t, blocks.of(row)});
      }
      const std::span<const float> logits = server.step(chunks);
      seen.insert(seen.end(), logits.begin(), logits.begin() + kServedVocab);
    }
    return seen;
  };
  const std::vector<float> together = run(6);
  for (const int rows : {5, 7}) EXPECT_EQ(run(rows), together) << rows;
}

TEST(Server, RefusesWhatDoesNotFitAndComputesNothing) {
  Device device(Bytes(0), 2);
  Network network(tiny_config(), device, model::WeightType::f32);
  fill(network, 8);
  ServingCapacity missing = room_of(tiny_config(), 4, 10);
  missing.groups[0].layers.clear();
  EXPECT_THROW(ServingEngine(network, missing), Error);
  ServingEngine server(network, room_of(tiny_config(), 4, 10));
  const std::vector<int> ids = text(0, 9), foreign{3, kServedVocab}, blocks{0, 1, 2}, few{0, 1}, far{0, 1, 10},
                         gone{0, -1, 2};
  const auto refused = [&](std::span<const int> tokens, int first, const std::vector<int>& of, int adapter) {
    const std::span<const int> both[]{of, of};
    const TokenChunk c{tokens, first, both, adapter};
    try {
      server.step({&c, 1});
    } catch (const Error& e) {
      return e.problem().id == "STEP";
    }
    return false;
  };
  EXPECT_FALSE(refused(ids, 0, blocks, -1));
  EXPECT_TRUE(refused(ids, 0, few, -1));
  EXPECT_TRUE(refused(ids, 0, far, -1));
  EXPECT_TRUE(refused(std::span(ids).last(1), 8, gone, -1));
  EXPECT_TRUE(refused(ids, 0, blocks, 0));
  EXPECT_TRUE(refused(foreign, 0, blocks, -1));
  EXPECT_TRUE(refused({}, 0, blocks, -1));
  EXPECT_TRUE(refused(ids, kContext - 3, blocks, -1));
  EXPECT_THROW(server.step({}), Error);
  Network tuned(tiny_config(), device, model::WeightType::f32);
  tuned.add_lora(all_projections(), 1);
  EXPECT_THROW(ServingEngine(tuned, room_of(tiny_config(), 4, 10)), Error);
  std::vector<AdapterValues> cut = values_of(tuned);
  cut.back().b = cut.back().b.first(5);
  EXPECT_THROW(server.add_adapter(cut), Error);
}

TEST(Server, GivesItsMemoryBack) {
  Device device(Bytes(0), 2);
  Network network(tiny_config(), device, model::WeightType::f32);
  const Ledger before = device.arena.use().now;
  {
    ServingEngine server(network, room_of(tiny_config(), 4, 10));
    EXPECT_GT(device.arena.use().now[MemoryCategory::kv_cache].value, 0);
  }
  network.release_step_memory();
  EXPECT_EQ(device.arena.use().now.total(), before.total());
}

}  // namespace
}  // namespace mw::engine::test
