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
  Measured what;
  double factor;  // to bytes
};
inline constexpr std::array kUnits{UnitName{"s/step", Measured::step_seconds, 1},
                                   UnitName{"tokens/s/device", Measured::tokens_per_second, 1},
                                   UnitName{"real tokens/s", Measured::real_tokens_per_second, 1},
                                   UnitName{"samples/s", Measured::samples_per_second, 1},
                                   UnitName{"MFU %", Measured::mfu, 1},
                                   UnitName{"GiB active", Measured::active_bytes, kGiB},
                                   UnitName{"GiB reserved", Measured::reserved_bytes, kGiB},
                                   UnitName{"GB device", Measured::device_bytes, 1e9},
                                   UnitName{"GiB states", Measured::state_bytes, kGiB},
                                   UnitName{"GiB activations", Measured::activation_bytes, kGiB},
                                   UnitName{"bytes weights", Measured::weight_bytes, 1},
                                   UnitName{"KV tokens", Measured::kv_tokens, 1},
                                   UnitName{"ms mean TTFT", Measured::mean_ttft, 1},
                                   UnitName{"ms median TTFT", Measured::median_ttft, 1},
                                   UnitName{"ms mean TPOT", Measured::mean_tpot, 1},
                                   UnitName{"ms median TPOT", Measured::median_tpot, 1},
                                   UnitName{"ms median ITL", Measured::median_itl, 1},
                                   UnitName{"output tokens/s", Measured::output_tokens_per_second, 1}};

}  // namespace mw::plan
