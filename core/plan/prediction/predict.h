// SPDX-License-Identifier: Apache-2.0
// Predicts memory, time and cost of a request.
#pragma once
#include "core/plan/request/plan_result.h"

namespace mw::plan {

// A pure function without files, fast enough to call for every candidate of a search: it computes each kind of layer
// once. Throws Error if the request has no answer: no device, a mesh that does not match the target, a size beyond its
// limit (check_request). Any thread.
Plan predict(const Request& request);

}  // namespace mw::plan
