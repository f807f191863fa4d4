// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of runs that the window shows.
#pragma once
#include <cstddef>
#include <memory>

namespace mw::ui {

enum class RunKind { train, size, sweep };
inline constexpr size_t kRunKinds = 3;

struct RunData;
using RunPtr = std::shared_ptr<RunData>;

}  // namespace mw::ui
