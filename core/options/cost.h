// SPDX-License-Identifier: Apache-2.0
// Prices, limits, measurements and the cost of serving a trained model. Plain values.
#pragma once
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::options {

struct PriceOptions {
  std::string region, price_class;
  double usd_per_chip_hour = 0;
  std::string date;  // of usd_per_chip_hour: "2026-11-27", "2026-11" or "2026"; empty: not dated
};
struct Budget {  // 0: no limit
  double hours = 0, usd = 0, tokens = 0;
  bool is_set() const { return hours > 0 || usd > 0 || tokens > 0; }
};
struct Measured {
  double seconds_per_step = 0, hours = 0;
  std::vector<int> max_lens;
  std::string source;
};
enum class Commitment { one_year, three_years };
struct Cost {  // requests_per_day 0: not asked
  double requests_per_day = 0, growth = 0, peak = 1, preemptions = 0, variation = 0;
  int months = 0;
  Commitment commitment{};
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Commitment>{"1y", "3y"};
