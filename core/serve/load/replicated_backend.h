// SPDX-License-Identifier: Apache-2.0
// Several equal servers behind a round-robin balancer, as one backend.
#pragma once
#include <memory>
#include <vector>

#include "core/serve/load/load_backend.h"

namespace mw::serve {

// Request i of a load goes to server i modulo their number; a limit of requests in flight is split between them.
// Servers run after one another, so they must keep virtual time. `servers` has at least one. Not thread-safe.
std::unique_ptr<LoadBackend> make_replicated_backend(std::vector<std::unique_ptr<LoadBackend>> servers);

}  // namespace mw::serve
