// SPDX-License-Identifier: Apache-2.0
// The places where text can be cut without a change of its token ids. A merge joins two pieces at the last byte of the
// left and the first character of the right one; where no merge joins these two, no token spans the place, and the
// parts are merged independently. In Gemma's vocabularies that is before almost every word. Thread-safe once built.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

namespace mw::data {

class Junctions {
 public:
  void add(std::string_view left, std::string_view right) {  // pieces of a merge; not empty
    joins_[byte(left, left.size() - 1)].set(first_character(right, 0));
  }
  // Whether no merge joins the characters before and after the offset `at`, 0 < at < text.size().
  bool can_cut(std::string_view text, size_t at) const {
    const unsigned char next = byte(text, at);
    return (next & 0xc0) != 0x80 && !joins_[byte(text, at - 1)].test(first_character(text, at));
  }

 private:
  static constexpr unsigned char kSpace = 0xff;  // U+2581, apart from other characters that start with the same byte
  static unsigned char byte(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }
  static unsigned char first_character(std::string_view text, size_t at) {
    const unsigned char first = byte(text, at);
    return first == 0xe2 && text.substr(at).starts_with("\u2581") ? kSpace : first;
  }

  std::array<std::bitset<256>, 256> joins_;  // by the byte before
};

}  // namespace mw::data
