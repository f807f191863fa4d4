// SPDX-License-Identifier: Apache-2.0
// A number with its source. Plain values.
#pragma once
#include <string>

namespace mw::hardware {

enum class Provenance { measured, published, derived, unverified };

struct Figure {
  double value = 0;
  double low = 0, high = 0;  // equal to `value` if no range is known
  Provenance kind = Provenance::published;
  std::string source{};  // "Google Cloud TPU v6e page", with date where known
  explicit operator bool() const { return value > 0; }
};

std::string to_string(Provenance kind);

}  // namespace mw::hardware
