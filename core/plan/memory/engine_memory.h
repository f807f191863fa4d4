// SPDX-License-Identifier: Apache-2.0
// Predicted memory of the engine on this machine, to the byte: the layout of its buffers followed through the work of a
// request. Any thread.
#pragma once
#include "core/plan/request/plan_result.h"

namespace mw::plan {

// Of every device of the mesh, in its order; inference has one. `request.engine` is set. Throws Error PLAN-SIZE if a
// size is out of range, and the first error of the placement on a mesh.
DeviceMemory engine_memory(const Request& request);

}  // namespace mw::plan
