// SPDX-License-Identifier: Apache-2.0
// Reads recorded workloads. The files are untrusted. Any thread.
#pragma once
#include <filesystem>
#include <vector>

namespace mw::serve {

struct RecordedRequest {
  double at_s = 0;  // seconds since the first request
  int prompt_len = 0, output_len = 0;
};

// Reads CSV or JSONL with arrivals (s) and the numbers of prompt and output tokens, or a result of Meshwright or vLLM
// that was saved with its requests. Returns at least one request, in order of arrival. Throws Error WORKLOAD.
std::vector<RecordedRequest> read_workload(const std::filesystem::path& file);

}  // namespace mw::serve
