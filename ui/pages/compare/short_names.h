// SPDX-License-Identifier: GPL-3.0-or-later
// Names of runs for chips and legends: short, and still told apart. Any thread.
#pragma once
#include <QStringList>
#include <vector>

#include "core/compare/comparison.h"

namespace mw::ui {

// Each of 26 characters at most. The middle of a longer one goes; where that makes two of them the same, its end, else
// its beginning.
QStringList short_names(const QStringList& names);
QStringList short_names(const std::vector<compare::ComparedRun>& runs);

}  // namespace mw::ui
