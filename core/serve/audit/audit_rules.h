// SPDX-License-Identifier: Apache-2.0
// The rules of audit.h by what they need to know. Any thread.
#pragma once
#include <string>
#include <vector>

#include "core/serve/audit/audit.h"

namespace mw::serve::rules {

// Appends what it finds.
using Findings = std::vector<Finding>;
void floors(const formats::BenchSet& set, const AuditReference& against, Findings& out);  // prefill, decode, links
void arithmetic(const formats::BenchSet& set, Findings& out);  // units, totals, order of percentiles, lengths
void load(const formats::BenchSet& set, Findings& out);        // Little's law, counts, failures, loops, saturation
void across(const formats::BenchSet& set, Findings& out);      // monotony over lengths and rates

std::string grouped(double whole);                             // "15,360"
std::string ms_text(double ms);                                // "62.0 ms"
std::string percent_text(double share);                        // "96 %"
std::string rate_text(double request_rate);                    // "4 requests/s", "all at once", "a closed loop"
std::string cell_text(const formats::BenchPoint& point);       // "4,096 tokens at 4 requests/s"
double typical(const formats::LatencyStats& stats);            // the median, else the mean
const char* typical_name(const formats::LatencyStats& stats);  // "median" or "mean"
std::string metric(const formats::LatencyStats& stats, const std::string& name);  // "median_ttft_ms"
// Where the client had its requests in flight: at most so many; 0: not known.
long client_limit(const formats::BenchPoint& point);

}  // namespace mw::serve::rules
