// SPDX-License-Identifier: Apache-2.0
// Why a stack would not start a request, from the checker's rules that refuse. plan, search, size and sweep share the
// answer. Any thread.
#pragma once
#include <optional>
#include <vector>

#include "core/lint/check.h"
#include "core/plan/request/request.h"

namespace mw::plan {

// The request as input of the checker, without the inventory of tensors and what only a document says.
lint::CheckInput check_input(const Request& request);

// Errors of the placement, then those of rules. `longest_request`: tokens that a server's KV cache holds; none: not a
// server, or its weights do not fit. Empty: the request runs if it fits.
std::vector<Problem> refusals(const Request& request, const mesh::Placement& placement,
                              std::optional<std::int64_t> longest_request);

}  // namespace mw::plan
