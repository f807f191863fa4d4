// SPDX-License-Identifier: GPL-3.0-or-later
// What import, audit and compare share: the mapping of a CSV's columns.
#pragma once
#include <string>
#include <vector>

#include "core/formats/bench_import.h"

namespace mw::app {

formats::CsvMapping mapping_of(
    const std::vector<std::string>& columns);  // throws Error USAGE for what is no FIELD=COLUMN

}  // namespace mw::app
