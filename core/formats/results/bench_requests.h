// SPDX-License-Identifier: Apache-2.0
// The per-request fields of a vLLM result: parallel lists with one entry per request, in seconds. Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/formats/results/bench_result.h"

namespace mw::formats::bench {

inline constexpr size_t kMostRequests = 10'000'000;

const std::vector<std::string>& request_fields();
void add_requests(Json& out, const std::vector<RequestResult>& requests);  // times are rounded to nanoseconds
// Empty if the lists are missing. Throws BENCH if their lengths differ.
std::vector<RequestResult> read_requests(const Json& point);

}  // namespace mw::formats::bench
