// SPDX-License-Identifier: GPL-3.0-or-later
// Short, unique names of runs for chips and legends. Pure; any thread.
#pragma once
#include <QStringList>
#include <vector>

#include "core/compare/comparison.h"

namespace mw::ui {

// Names of at most 26 characters. Longer ones are elided in the middle; if two become equal, at the end or the
// beginning.
QStringList short_names(const QStringList& names);
QStringList short_names(const std::vector<compare::ComparedRun>& runs);

}  // namespace mw::ui
