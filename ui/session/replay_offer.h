// SPDX-License-Identifier: GPL-3.0-or-later
// The run, or a point of its sweep, that a page offers to replay on another server.
#pragma once
#include <optional>

#include "core/compare/comparison.h"

namespace mw::ui {

struct ReplayOffer {
  compare::ComparedRun run;
  std::optional<size_t> point{};  // of its sweep; empty: all
};

}  // namespace mw::ui
