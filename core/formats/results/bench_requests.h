// SPDX-License-Identifier: Apache-2.0
// The detailed fields of a vLLM result: parallel lists with an entry per request, in seconds. Any thread.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/formats/results/bench_result.h"

namespace mw::formats::bench {

inline constexpr size_t kMostRequests = 10'000'000;

const std::vector<std::string>& request_fields();
void put_requests(Json& out, const std::vector<RequestResult>& requests);  // times to the nanosecond
// Empty where the lists are not there. Throws Error BENCH where they differ in length.
std::vector<RequestResult> requests_of(const Json& point);

}  // namespace mw::formats::bench
