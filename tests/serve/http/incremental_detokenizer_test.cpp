// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/http/completion_stream.h"

#include <gtest/gtest.h>

#include "core/base/rng.h"
#include "core/base/text.h"

namespace mw::serve {
namespace {

class DetokenizerTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<data::Tokenizer> tokenizer = data::load_tokenizer(GetParam());
  std::string streamed(const std::vector<int>& ids, const std::vector<std::string>& stops = {}) {
    IncrementalDetokenizer stream(*tokenizer, stops);
    std::string all;
    const auto check = [&](const std::string& piece) {
      EXPECT_EQ(first_invalid_utf8(piece), std::string::npos) << "invalid piece";
      all += piece;
    };
    for (const int id : ids) {
      check(stream.add(id));
      if (stream.stopped()) return all;
    }
    check(stream.finish());
    return all;
  }
};

TEST_P(DetokenizerTest, PiecesConcatenateToTheWholeText) {
  for (const char* text :
       {"The quick brown fox jumps.", "Grüße 🦊🦊 日本語, naïve", "  two  spaces\nand\tlines\n\n", "a"}) {
    const std::vector<int> ids = tokenizer->encode(text);
    EXPECT_EQ(streamed(ids), tokenizer->decode(ids));
  }
}

TEST_P(DetokenizerTest, AnyTokensGiveValidUtf8) {
  Rng rng{1, 2};
  for (int round = 0; round < 50; ++round) {
    std::vector<int> ids;
    for (int i = 0; i < 40; ++i)
      ids.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(tokenizer->size()))));
    streamed(ids);
  }
}

TEST_P(DetokenizerTest, IncompleteCharacterAtTheEndBecomesReplacement) {
  const int first = tokenizer->find("<0xF0>"), second = tokenizer->find("<0x9F>");
  if (first < 0 || second < 0) GTEST_SKIP() << "no byte pieces";
  std::vector<int> ids = tokenizer->encode("ab");
  ids.insert(ids.end(), {first, second});
  const std::string text = streamed(ids);
  EXPECT_TRUE(text.starts_with("ab\uFFFD")) << text;
}

TEST_P(DetokenizerTest, StopStringEndsTheTextAcrossTokens) {
  const std::vector<int> ids = tokenizer->encode("One two three four five");
  for (const char* stop : {"three", "o three f", "hre", "e"}) {
    const std::string whole = tokenizer->decode(ids);
    EXPECT_EQ(streamed(ids, {stop}), whole.substr(0, whole.find(stop))) << stop;
  }
  EXPECT_EQ(streamed(ids, {"four", "two"}), "One ");
  EXPECT_EQ(streamed(ids, {"sixteen", "fivefold", "five!"}), "One two three four five");
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, DetokenizerTest,
                         testing::Values(MW_RESOURCES "/base-model", MW_FIXTURES "/tokenizer_bpe",
                                         MW_FIXTURES "/tokenizer_spm"),
                         [](const auto& row) { return "t" + std::to_string(row.index); });

}  // namespace
}  // namespace mw::serve
