// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/base/error.h"
#include "core/base/event.h"

namespace mw::store {

// How a run ended. `error` is set for a failed run: whether the input, the environment or the program was at fault.
struct RunOutcome {
  event::Finished finished;
  std::optional<Error::Kind> error;
};

}  // namespace mw::store
