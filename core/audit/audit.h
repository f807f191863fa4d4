// SPDX-License-Identifier: Apache-2.0
// Checks serving results for plausibility: physical lower bounds of prefill, decode and links on the claimed target,
// monotony, Little's law, units, signs of a prefix cache. Pure functions; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/formats/results/bench_result.h"
#include "core/hardware/target.h"
#include "core/model/config.h"

namespace mw::audit {

using mw::to_string;

enum class Verdict { fine, suspicious, impossible };

struct AuditFinding {
  size_t point = 0;    // index in the set
  std::string rule;    // "FLOOR-PREFILL", "FLOOR-DECODE", "MONOTONY", "LITTLE", "UNITS", "PREFIX-CACHE", "TOO-FEW" ...
  std::string metric;  // "median_ttft_ms": of value and floor
  double value = 0, floor = 0;  // in unit_of(metric); floor: the limit that the value violates
  Verdict verdict = Verdict::fine;
  std::string text;     // one sentence with the numbers in it
  std::string formula;  // of the floor, e.g. "2 x 30.7e9 x 15,360 FLOP / (8 x 918 TFLOP/s)"; may be empty
};

// The unit of a metric of a finding: "ms", "tokens/s", "requests" ...; empty: it has none, like a loss or a share.
std::string_view unit_of(std::string_view metric);

struct AuditReference {
  model::Config model;
  hardware::Target target;
  double weight_bytes = 2, kv_bytes = 2;  // per element
};
// All checks. Findings are sorted by point, the worst first.
std::vector<AuditFinding> audit(const formats::BenchSet& set, const AuditReference& reference);
// Checks that need neither model nor target: units, monotony, Little's law, counts.
std::vector<AuditFinding> audit(const formats::BenchSet& set);

}  // namespace mw::audit

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::audit::Verdict>{"fine", "suspicious", "impossible"};
