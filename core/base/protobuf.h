// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a protocol buffer message in order and checks lengths.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mw {

struct ProtoField {
  std::uint64_t number = 0;
  int wire = 0;              // wire type: 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes
  std::uint64_t value = 0;   // wire types 0, 1 and 5
  std::string_view bytes{};  // wire type 2
  std::uint64_t varint() const { return wire == 0 ? value : 0; }
  double as_double() const { return std::bit_cast<double>(value); }
  float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  std::optional<ProtoField> next();  // empty at the end, and if the message is damaged()
  bool damaged() const { return damaged_; }

 private:
  std::optional<std::uint64_t> varint();
  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace mw
