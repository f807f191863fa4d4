// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/plan/request/request.h"

namespace mw::plan {

// Throws Error for a request that has no answer whatever the mesh: no model, a chip nobody knows, sizes beyond all
// reason. Any thread.
void check(const Request& request);

}  // namespace mw::plan
