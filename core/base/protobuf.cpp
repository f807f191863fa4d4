// SPDX-License-Identifier: Apache-2.0
#include "core/base/protobuf.h"

#include <cstring>

namespace mw {

std::optional<std::uint64_t> ProtoReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  damaged_ = true;
  return std::nullopt;
}

std::optional<ProtoField> ProtoReader::next() {
  if (rest_.empty() || damaged_) return std::nullopt;
  const auto tag = varint();
  if (!tag) return std::nullopt;
  ProtoField field;
  field.number = *tag >> 3;
  field.wire = static_cast<int>(*tag & 7);
  size_t size = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
  if (field.wire == 0 || field.wire == 2) {
    const auto value = varint();
    if (!value) return std::nullopt;
    field.value = *value;
    if (field.wire == 2) size = *value > rest_.size() ? rest_.size() + 1 : static_cast<size_t>(*value);
  } else if (size == 0) {
    damaged_ = true;
  }
  if (damaged_ || size > rest_.size()) {
    damaged_ = true;
    return std::nullopt;
  }
  field.bytes = rest_.substr(0, size);
  if (field.wire == 1 || field.wire == 5) std::memcpy(&field.value, field.bytes.data(), size);
  rest_.remove_prefix(size);
  return field;
}

}  // namespace mw
