// SPDX-License-Identifier: Apache-2.0
// Conversion between bf16 or f16 bits and float. Thread-safe.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. NaN becomes a quiet NaN.
inline std::uint16_t to_bf16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float from_f16(std::uint16_t bits);

// Converts out.size() little-endian values of type f32, bf16, f16 or f64; f64 is rounded to nearest.
void widen(DType dtype, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace mw::formats
