// SPDX-License-Identifier: GPL-3.0-or-later
// What the commands of results share: the mapping of a CSV's columns, how a figure is printed.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/formats/results/bench_import.h"

namespace mw::app {

formats::CsvMapping mapping_of(
    const std::vector<std::string>& columns);  // throws Error USAGE for what is no FIELD=COLUMN

inline std::string figure(double value, int digits = 4) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "inf" : number_text(value, digits);
}

}  // namespace mw::app
