// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/base/error.h"
#include "core/base/event.h"

namespace mw::store {

// How a run ended. `error` is set only for a failed run: it tells a usage error from a failure of the environment or
// the program.
struct RunOutcome {
  event::Finished finished;
  std::optional<Error::Kind> error;
};

}  // namespace mw::store
