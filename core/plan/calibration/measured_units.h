// SPDX-License-Identifier: Apache-2.0
// The units of measured rows as files write them. Inside this room.
#pragma once
#include <array>
#include <string_view>

#include "core/plan/calibration/measurements.h"

namespace mw::plan {

inline constexpr double kGiB = 1073741824.0;

struct UnitName {
  std::string_view name;
  MeasuredQuantity what;
  double factor;  // to bytes
};
inline constexpr std::array kUnits{UnitName{"s/step", MeasuredQuantity::step_seconds, 1},
                                   UnitName{"tokens/s/device", MeasuredQuantity::tokens_per_second, 1},
                                   UnitName{"real tokens/s", MeasuredQuantity::real_tokens_per_second, 1},
                                   UnitName{"samples/s", MeasuredQuantity::samples_per_second, 1},
                                   UnitName{"MFU %", MeasuredQuantity::mfu, 1},
                                   UnitName{"GiB active", MeasuredQuantity::active_bytes, kGiB},
                                   UnitName{"GiB reserved", MeasuredQuantity::reserved_bytes, kGiB},
                                   UnitName{"GB device", MeasuredQuantity::device_bytes, 1e9},
                                   UnitName{"GiB states", MeasuredQuantity::state_bytes, kGiB},
                                   UnitName{"GiB activations", MeasuredQuantity::activation_bytes, kGiB},
                                   UnitName{"bytes weights", MeasuredQuantity::weight_bytes, 1},
                                   UnitName{"KV tokens", MeasuredQuantity::kv_tokens, 1},
                                   UnitName{"ms mean TTFT", MeasuredQuantity::mean_ttft, 1},
                                   UnitName{"ms median TTFT", MeasuredQuantity::median_ttft, 1},
                                   UnitName{"ms mean TPOT", MeasuredQuantity::mean_tpot, 1},
                                   UnitName{"ms median TPOT", MeasuredQuantity::median_tpot, 1},
                                   UnitName{"ms median ITL", MeasuredQuantity::median_itl, 1},
                                   UnitName{"output tokens/s", MeasuredQuantity::output_tokens_per_second, 1}};

}  // namespace mw::plan
