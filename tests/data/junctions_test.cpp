// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokenizer/bpe.h"

#include <deque>

#include "core/base/json.h"
#include "core/base/text.h"
#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

TEST(Junctions, CutsOnlyWhereNoMergeJoins) {
  Junctions j;
  j.add("\u2581t", "he");
  j.add("\u2581", "t");
  j.add("n", "'t");
  j.add("n", "\u2019");
  EXPECT_TRUE(j.can_cut("n\u2581the", 1));  // U+2019 starts with the same byte as U+2581
  EXPECT_FALSE(j.can_cut("n\u2019", 1));
  EXPECT_FALSE(j.can_cut("n'", 1));
  EXPECT_FALSE(j.can_cut("\u2581t", 3));
  EXPECT_TRUE(j.can_cut("\u2581n", 3));
  EXPECT_FALSE(j.can_cut("\u2581t", 1));  // within a character
  EXPECT_FALSE(j.can_cut("\u2581t", 2));
}

// A vocabulary over a few characters, with a random merge of two pieces for each new piece, and all bytes. Merges may
// join words at the space, or not.
struct RandomBpe {
  std::deque<std::string> pieces;
  Bpe bpe;

  RandomBpe(Rng& rng, bool joins_words) {
    for (int b = 0; b < 256; ++b) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
      bpe.byte_ids[static_cast<size_t>(b)] = add(name);
    }
    std::vector<int> known;
    for (const char* c : {"a", "b", "c", "\u2581", "\u00e9", "\n"}) known.push_back(add(c));
    for (int rank = 0; rank < 60; ++rank) {
      const int left = known[rng.below(known.size())], right = known[rng.below(known.size())];
      const std::string joined = pieces[static_cast<size_t>(left)] + pieces[static_cast<size_t>(right)];
      const size_t space = joined.rfind("\u2581");
      if ((!joins_words && space != 0 && space != std::string::npos) || bpe.merges.contains(pair_key(left, right)))
        continue;
      int id = bpe.ids.find(joined);
      if (id < 0) known.push_back(id = add(joined));
      bpe.merges.set(pair_key(left, right), {rank, id});
    }
  }
  int add(const std::string& piece) {
    pieces.push_back(piece);
    bpe.ids.insert(pieces.back(), static_cast<int>(pieces.size() - 1));
    return static_cast<int>(pieces.size() - 1);
  }
  void cut() {
    bpe.merges.each([&](std::uint64_t pair, const Bpe::Merge&) {
      bpe.junctions.add(pieces[pair >> 32], pieces[pair & 0xffffffffu]);
    });
    bpe.allow_cuts();
  }
};

TEST(Bpe, CutSegmentsHaveTheIdsOfWholeOnes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng{0x637574, seed};
    RandomBpe random(rng, seed % 2 == 0);
    std::vector<std::string> texts;
    for (int i = 0; i < 80; ++i) {
      std::string text;
      for (auto n = rng.below(i % 8 == 0 ? 400 : 40); n > 0; --n) {
        static const char* const kParts[] = {"a",  "b", "c",    "\u2581", "\u2581",    "\u00e9",
                                             "\n", "z", "\xe2", "\x81",   "\U0001F600"};
        text += kParts[rng.below(std::size(kParts))];
      }
      texts.push_back(text);
    }
    std::vector<std::vector<int>> whole(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) random.bpe.encode(texts[i], whole[i]);
    random.cut();
    for (int pass = 0; pass < 2; ++pass)  // words of the second pass come from the cache
      for (size_t i = 0; i < texts.size(); ++i) {
        std::vector<int> cut;
        random.bpe.encode(texts[i], cut);
        EXPECT_EQ(cut, whole[i]) << excerpt(texts[i], 400);
      }
  }
}

// The cache of words belongs to the thread and is shared by its tokenizers.
TEST(Bpe, TokenizersDoNotShareWords) {
  Rng first{1}, second{2};
  RandomBpe a(first, false), b(second, false);
  std::vector<int> ids_a, ids_b, again_a, again_b;
  const std::string text = "abc\u2581abcab\u2581ccab\u2581ba";
  a.bpe.encode(text, ids_a);
  b.bpe.encode(text, ids_b);
  ASSERT_NE(ids_a, ids_b);
  a.cut();
  b.cut();
  for (int i = 0; i < 3; ++i) {
    again_a.clear(), again_b.clear();
    a.bpe.encode(text, again_a);
    b.bpe.encode(text, again_b);
    EXPECT_EQ(again_a, ids_a);
    EXPECT_EQ(again_b, ids_b);
  }
}

}  // namespace
}  // namespace mw::data::testing
