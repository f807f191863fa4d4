// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the tests of core/data: fixture tokenizers, scratch files, random text.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/data/dataset/dataset.h"
#include "core/data/tokenizer/tokenizer.h"
#include "tests/base/scratch.h"

namespace mw::data::testing {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(MW_FIXTURES) / name;
}

inline const Tokenizer& bpe() {
  static const std::unique_ptr<Tokenizer> t = load_tokenizer(fixture("tokenizer_bpe"));
  return *t;
}
inline const Tokenizer& spm() {
  static const std::unique_ptr<Tokenizer> t = load_tokenizer(fixture("tokenizer_spm"));
  return *t;
}

using test::Scratch;

inline std::string utf8(char32_t c) {
  const auto b = [](char32_t v) { return static_cast<char>(v); };
  if (c < 0x80) return {b(c)};
  if (c < 0x800) return {b(0xc0 | c >> 6), b(0x80 | (c & 63))};
  if (c < 0x10000) return {b(0xe0 | c >> 12), b(0x80 | (c >> 6 & 63)), b(0x80 | (c & 63))};
  return {b(0xf0 | c >> 18), b(0x80 | (c >> 12 & 63)), b(0x80 | (c >> 6 & 63)), b(0x80 | (c & 63))};
}

// Letters, runs of spaces and newlines, marker fragments, and any Unicode character.
inline std::string random_text(Rng& rng, size_t characters) {
  static const std::vector<std::string> parts = {"  ",     "\n\n",   "\t",        "the",   "ing",
                                                 "<code>", "<start", "_of_turn>", "<0x41>"};
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    const auto kind = rng.below(8);
    if (kind < 4)
      text += static_cast<char>('a' + rng.below(26));
    else if (kind < 5)
      text += ' ';
    else if (kind < 6)
      text += parts[rng.below(parts.size())];
    else {
      auto c = static_cast<char32_t>(rng.below(kind < 7 ? 0x3000 : 0x110000));
      if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
      text += utf8(c);
    }
  }
  return text;
}

// Damages the content in one of several ways.
inline std::string mutate(std::string text, Rng& rng) {
  const auto any = [&] { return static_cast<size_t>(rng.below(text.size() + 1)); };
  for (std::uint64_t n = 1 + rng.below(4); n > 0 && !text.empty(); --n) {
    const size_t at = std::min(any(), text.size() - 1);
    switch (rng.below(6)) {
      case 0:
        text[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.erase(at, rng.below(30));
        break;
      case 3:
        text.insert(at, text.substr(any(), rng.below(60)));
        break;
      case 4: {
        static const char* const kTokens[] = {
            "{", "}", "[", "]", ",", ":", "\"", "null", "-1", "1e999", "99999999999999999999"};
        text.insert(at, kTokens[rng.below(11)]);
        break;
      }
      default:
        if (text[at] >= '0' && text[at] <= '9') text[at] = static_cast<char>('0' + rng.below(10));
    }
  }
  return text;
}

template <class F>
Problem problem_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace mw::data::testing
