// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokenizer/tokenizer.h"

#include <chrono>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

// A small complete tokenizer.json that tests modify.
Json tiny() {
  Json j = Json::parse(R"({
    "added_tokens": [
      {"id": 0, "content": "<pad>", "special": true, "normalized": false},
      {"id": 1, "content": "<eos>", "special": true, "normalized": false},
      {"id": 2, "content": "<bos>", "special": true, "normalized": false},
      {"id": 9, "content": "<x>", "special": false, "normalized": false},
      {"id": 10, "content": "<xy>", "special": false, "normalized": false}],
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    "pre_tokenizer": null,
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false,
      "vocab": {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "a": 4, "b": 5, "\u2581": 6, "ab": 7, "ba": 8},
      "merges": [["a", "b"], ["b", "a"]]}})");
  return j;
}
std::unique_ptr<Tokenizer> load(const Json& j) {
  const Scratch scratch;
  return load_tokenizer(scratch.put("tokenizer.json", j.dump()));
}
using Ids = std::vector<int>;

TEST(Tokenizer, MergesByRankLeftmostFirstAndFusesUnknowns) {
  const auto t = load(tiny());
  EXPECT_EQ(t->encode("aab"), (Ids{4, 7}));
  EXPECT_EQ(t->encode("bab"), (Ids{5, 7}));
  EXPECT_EQ(t->encode("bba"), (Ids{5, 8}));
  EXPECT_EQ(t->encode("a\u00e9\u00e9\u00e9b"), (Ids{4, 3, 5}));
  EXPECT_EQ(t->encode("a b"), (Ids{4, 6, 5}));
  Json j = tiny();
  j["model"]["fuse_unk"] = false;
  EXPECT_EQ(load(j)->encode("a\u00e9\u00e9b"), (Ids{4, 3, 3, 5}));
}

TEST(Tokenizer, MatchesAddedTokensLeftmostLongest) {
  const auto t = load(tiny());
  EXPECT_EQ(t->encode("a<xy>b<x>a<"), (Ids{4, 10, 5, 9, 4, 3}));
  EXPECT_EQ(t->size(), 11);
  EXPECT_EQ(t->find("<xy>"), 10);
  EXPECT_EQ(t->decode(Ids{2, 4, 10, 1}), "a<xy>");
  EXPECT_EQ(t->decode(Ids{2, 4, 10, 1}, Specials::keep), "<bos>a<xy><eos>");
  EXPECT_EQ(t->decode(Ids{4, -5, 99, 5}), "ab");
}

TEST(Tokenizer, MatchesNormalizedAddedTokensInNormalizedText) {
  Json j = tiny();
  j["added_tokens"][3]["content"] = "b b";
  j["added_tokens"][3]["normalized"] = true;
  EXPECT_EQ(load(j)->encode("ab b"), (Ids{4, 9}));
  EXPECT_EQ(load(j)->encode("ab\u2581"
                            "b"),
            (Ids{4, 9}));
}

TEST(Tokenizer, IgnoreMergesLooksUpWholeSegments) {
  Json j = tiny();
  j["model"]["vocab"]["aba"] = 9;  // no merge produces it
  j["added_tokens"].erase(3);
  EXPECT_EQ(load(j)->encode("aba"), (Ids{7, 4}));
  j["model"]["ignore_merges"] = true;
  EXPECT_EQ(load(j)->encode("aba"), (Ids{9}));
}

TEST(Tokenizer, TokenizerConfigNamesSpecialTokens) {
  const Scratch scratch;
  scratch.put("tokenizer.json", tiny().dump());
  scratch.put("tokenizer_config.json", R"({"bos_token": {"content": "<x>"}, "eos_token": "<xy>", "pad_token": null})");
  const auto t = load_tokenizer(scratch.path());
  EXPECT_EQ(t->bos(), 9);
  EXPECT_EQ(t->eos(), 10);
  EXPECT_EQ(t->pad(), 0);
  scratch.put("tokenizer_config.json", R"({"bos_token": "<nowhere>"})");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.path()); }).place, "<nowhere>");
}

TEST(Tokenizer, RejectsUnsupportedTokenizers) {
  const auto place = [](const char* pointer, const Json& value) {
    Json j = tiny();
    j[Json::json_pointer(pointer)] = value;
    return problem_of([&] { load(j); });
  };
  EXPECT_EQ(place("/model/type", "WordPiece").found, "WordPiece");
  EXPECT_EQ(place("/model/type", "Unigram").place, "model.type");
  EXPECT_EQ(place("/normalizer", {{"type", "NFKC"}}).found, "NFKC");
  EXPECT_EQ(place("/pre_tokenizer", {{"type", "ByteLevel"}}).found, "ByteLevel");
  EXPECT_EQ(place("/decoder", {{"type", "Metaspace"}}).place, "decoder");
  EXPECT_EQ(place("/model/dropout", 0.1).place, "model.dropout");
  EXPECT_EQ(place("/model/end_of_word_suffix", "</w>").place, "model.end_of_word_suffix");
  EXPECT_EQ(place("/added_tokens/3/lstrip", true).place, "added_tokens[3].lstrip");
  Json j = tiny();
  j["normalizer"] = nullptr;
  j["pre_tokenizer"] =
      Json::parse(R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"})");
  EXPECT_EQ(problem_of([&] { load(j); }).place, "pre_tokenizer");  // the pre-tokenizer would split here
}

TEST(Tokenizer, ReportsPlaceInBrokenFiles) {
  const auto change = [](const char* pointer, const Json& value) {
    Json j = tiny();
    j[Json::json_pointer(pointer)] = value;
    return problem_of([&] { load(j); });
  };
  EXPECT_EQ(change("/model/merges/1", "ba").place, "model.merges[1]");
  EXPECT_EQ(change("/model/merges/1", Json::array({"b", "b"})).found, "bb");
  EXPECT_EQ(change("/model/merges/1", Json::array({"b"})).place, "model.merges[1]");
  EXPECT_EQ(change("/model/merges/1", 7).place, "model.merges[1]");
  EXPECT_EQ(change("/model/vocab/ab", 4).place, "model.vocab");
  EXPECT_EQ(change("/model/vocab/ab", -1).place, "model.vocab");
  EXPECT_EQ(change("/model/vocab/ab", 1e9).place, "model.vocab.ab");
  EXPECT_EQ(change("/model/vocab/ab", 4000000000u).place, "model.vocab");
  EXPECT_EQ(change("/model/vocab/ab", 1500000).place, "model.vocab");
  EXPECT_EQ(change("/added_tokens/3/id", 1500000).place, "added_tokens");
  EXPECT_EQ(change("/added_tokens/3/id", 5).place, "added_tokens[3]");
  EXPECT_EQ(change("/added_tokens/3/id", -5).place, "added_tokens[3].id");
  EXPECT_EQ(change("/added_tokens/3/content", 5).place, "added_tokens[3].content");
  EXPECT_EQ(change("/model/unk_token", "nowhere").place, "model.unk_token");
  const Scratch scratch;
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.put("tokenizer.json", "{\n \"model\": {,")); }).place,
            "line 2, column 12");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.put("tokenizer.json", "{\"a\":1,\"a\":2}")); }).place, "a");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.put("tokenizer.json", std::string(5000, '['))); }).message,
            "nesting exceeds the limit of 100 levels");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.path() / "missing"); }).id, "SYSTEM");
  std::filesystem::remove(scratch.path() / "tokenizer.json");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.path()); }).message, "the folder contains no tokenizer");
}

// Appends messages in the wire format: field << 3 | 2, length, content.
TEST(Tokenizer, RejectsSentencePieceModelsWithOtherSettings) {
  const Scratch scratch;
  const std::string model = read_file(fixture("tokenizer_spm/tokenizer.model"));
  const auto with = [&](const std::string& extra) {  // a later message of the same field is merged into the earlier one
    return problem_of([&] { load_tokenizer(scratch.put("tokenizer.model", model + extra)); }).place;
  };
  const auto bytes = [](std::initializer_list<int> list) { return std::string(list.begin(), list.end()); };
  EXPECT_EQ(with(bytes({0x1a, 2, 0x18, 1})), "normalizer_spec.add_dummy_prefix");
  EXPECT_EQ(with(bytes({0x1a, 4, 0x18, 0, 0x20, 1})), "normalizer_spec.remove_extra_whitespaces");
  EXPECT_EQ(with(bytes({0x1a, 4, 0x12, 2, 'x', 'y'})), "normalizer_spec.precompiled_charsmap");
  EXPECT_EQ(with(bytes({0x12, 2, 0x18, 3})), "trainer_spec.model_type");
  EXPECT_EQ(with(bytes({0x1a, 50, 0x18})), "model");
  EXPECT_EQ(problem_of([&] { load_tokenizer(scratch.put("tokenizer.model", "")); }).place, "pieces");
}

TEST(Tokenizer, DecodeInvertsEncode) {
  Rng rng{1};
  for (int i = 0; i < 500; ++i) {
    const std::string text = random_text(rng, rng.below(80));
    std::string expected;  // the vocabulary writes a space as U+2581, so U+2581 decodes to a space
    for (size_t at = 0; at < text.size();) {
      const size_t n = character_length(std::string_view(text).substr(at));
      const std::string c = text.substr(at, n);
      expected += c == "\u2581" ? " " : c;
      at += n;
    }
    for (const Tokenizer* t : {&bpe(), &spm()}) EXPECT_EQ(t->decode(t->encode(text), Specials::keep), expected);
  }
}

TEST(Tokenizer, EncodesAnyBytesAndDecodesAnyIds) {
  Rng rng{2};
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (size_t n = rng.below(60); bytes.size() < n;) bytes += static_cast<char>(rng.below(256));
    std::vector<int> ids;
    for (size_t n = rng.below(40); ids.size() < n;) ids.push_back(static_cast<int>(rng.below(1600)) - 50);
    for (const Tokenizer* t : {&bpe(), &spm()}) {
      for (const int id : t->encode(bytes)) EXPECT_TRUE(id >= 0 && id < t->size());
      EXPECT_EQ(first_invalid_utf8(t->decode(t->encode(bytes))), std::string::npos);
      EXPECT_EQ(first_invalid_utf8(t->decode(ids)), std::string::npos);
    }
  }
  const std::vector<int> ids = bpe().encode("a\xff");
  EXPECT_EQ(bpe().piece(ids.back()), "<0xFF>");
}

TEST(Tokenizer, EncodesLongSegmentInReasonableTime) {
  std::string text;
  Rng rng{3};
  while (text.size() < (1u << 20)) text += static_cast<char>("eeeethaionsr"[rng.below(12)]);
  const std::vector<int> ids = bpe().encode(text);  // quadratic merging would exceed the time limit of ctest
  EXPECT_EQ(bpe().decode(ids), text);
}

// Either throws an Error, or the tokenizer works.
bool survives(const std::filesystem::path& file) {
  try {
    const auto t = load_tokenizer(file);
    t->decode(t->encode("the <start_of_turn> r\u00e9 \xff  x"));
    return true;
  } catch (const Error& e) {
    EXPECT_FALSE(e.problem().message.empty());
    return false;
  }
}

TEST(TokenizerFuzz, DamagedTokenizerJsonIsReadOrRejected) {
  const Scratch scratch;
  const std::string small = tiny().dump(), large = read_file(fixture("tokenizer_bpe/tokenizer_legacy.json"));
  Rng rng{4};
  int read = 0;
  for (int i = 0; i < 2500; ++i) read += survives(scratch.put("tokenizer.json", mutate(small, rng)));
  for (int i = 0; i < 200; ++i) read += survives(scratch.put("tokenizer.json", mutate(large, rng)));
  EXPECT_GT(read, 50);
  EXPECT_LT(read, 2000);
}

TEST(TokenizerFuzz, DamagedSentencePieceModelIsReadOrRejected) {
  const Scratch scratch;
  const std::string model = read_file(fixture("tokenizer_spm/tokenizer.model"));
  Rng rng{5};
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = mutate(model, rng);
    // Half of the damage is in the settings at the end of the file.
    if (i % 2 && damaged.size() > 300) damaged[damaged.size() - 1 - rng.below(300)] = static_cast<char>(rng.below(256));
    read += survives(scratch.put("tokenizer.model", damaged));
  }
  EXPECT_GT(read, 20);
  EXPECT_LT(read, 390);
}

}  // namespace
}  // namespace mw::data::testing
