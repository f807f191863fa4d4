// SPDX-License-Identifier: Apache-2.0
// Reads the rows of the catalogue's JSON files. Errors are HARDWARE-ROW and name file, row and key. Thread-safe.
#pragma once
#include "core/base/json.h"
#include "core/hardware/slices.h"
#include "core/hardware/target.h"

namespace mw::hardware {

Chip read_chip(const Json& row, RowLocation at);
SliceFamily read_slices(const Json& row, RowLocation at);
Price read_price(const Json& row, RowLocation at);

}  // namespace mw::hardware
