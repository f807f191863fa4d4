// SPDX-License-Identifier: GPL-3.0-or-later
// Exact agreement with the reference libraries; vectors from scripts/fixtures/tokenizer_vectors.py.
#include "core/base/json.h"
#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

void agrees(const Tokenizer& tokenizer, const std::filesystem::path& vectors) {
  const Json golden = read_json(vectors);
  EXPECT_EQ(tokenizer.size(), golden.at("size").get<int>());
  ASSERT_GT(golden.at("encode").size(), 150u);
  for (const Json& v : golden.at("encode")) {
    const auto text = v.at("text").get<std::string>();
    const auto ids = v.at("ids").get<std::vector<int>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << v.at("text");
    EXPECT_EQ(tokenizer.decode(ids), v.at("decoded").get<std::string>()) << v.at("text");
    if (v.contains("decoded_keep_specials")) {
      EXPECT_EQ(tokenizer.decode(ids, Specials::keep), v.at("decoded_keep_specials").get<std::string>())
          << v.at("text");
    }
    if (v.contains("pieces")) {
      std::vector<std::string> pieces;
      for (const int id : ids) pieces.push_back(tokenizer.piece(id));
      const auto expected = v.at("pieces").get<std::vector<std::string>>();
      ASSERT_EQ(pieces.size(), expected.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (tokenizer.find(expected[i]) >= 0) {  // the reference returns the text of an unknown piece
          EXPECT_EQ(pieces[i], expected[i]);
        }
      }
    }
  }
  ASSERT_GT(golden.at("decode").size(), 20u);
  for (const Json& v : golden.at("decode")) {
    const auto ids = v.at("ids").get<std::vector<int>>();
    EXPECT_EQ(tokenizer.decode(ids), v.at("decoded").get<std::string>()) << v.dump();
    if (v.contains("decoded_keep_specials")) {
      EXPECT_EQ(tokenizer.decode(ids, Specials::keep), v.at("decoded_keep_specials").get<std::string>()) << v.dump();
    }
  }
}

TEST(TokenizerGolden, TokenizerJsonAgreesWithTokenizersLibrary) {
  agrees(bpe(), fixture("tokenizer_bpe/vectors.json"));
}

TEST(TokenizerGolden, MergesWrittenAsStringsGiveSameIds) {
  agrees(*load_tokenizer(fixture("tokenizer_bpe/tokenizer_legacy.json")), fixture("tokenizer_bpe/vectors.json"));
}

TEST(TokenizerGolden, SentencePieceModelAgreesWithLibrary) {
  agrees(spm(), fixture("tokenizer_spm/vectors.json"));
}

TEST(TokenizerGolden, BothFilesOfVocabularyHaveSameSpecialTokens) {
  for (const Tokenizer* t : {&bpe(), &spm()}) {
    EXPECT_EQ(t->bos(), 2);
    EXPECT_EQ(t->eos(), 1);
    EXPECT_EQ(t->pad(), 0);
    EXPECT_EQ(t->find("<start_of_turn>"), 5);
    EXPECT_EQ(t->find("no such piece"), -1);
    EXPECT_EQ(t->piece(5), "<start_of_turn>");
    EXPECT_EQ(t->piece(-1), "");
    EXPECT_EQ(t->piece(1 << 30), "");
  }
}

}  // namespace
}  // namespace mw::data::testing
