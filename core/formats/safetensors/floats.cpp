// SPDX-License-Identifier: Apache-2.0
#include "core/formats/safetensors/floats.h"

#include <cmath>
#include <cstring>

namespace mw::formats {
namespace {

template <class Stored, class Convert>
void convert_all(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;  // copied, because the bytes may be unaligned
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    out[i] = convert(stored);
  }
}

}  // namespace

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));  // infinity, NaN
  if (exponent == 0) {  // zero and subnormals: fraction x 2^-24, exact in float
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

void widen(DType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  if (out.empty()) return;  // `bytes` may have a null pointer
  if (dtype == DType::f32)
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  else if (dtype == DType::bf16)
    convert_all<std::uint16_t>(bytes, out, from_bf16);
  else if (dtype == DType::f16)
    convert_all<std::uint16_t>(bytes, out, from_f16);
  else if (dtype == DType::f64)
    convert_all<double>(bytes, out, [](double v) { return static_cast<float>(v); });
}

}  // namespace mw::formats
