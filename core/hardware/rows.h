// SPDX-License-Identifier: Apache-2.0
// The rows of the catalogue's files. Each throws one Error HARDWARE-ROW naming file, row and key. Any thread.
#pragma once
#include "core/base/json_row.h"
#include "core/hardware/slices.h"
#include "core/hardware/target.h"

namespace mw::hardware {

Chip read_chip(const Json& row, RowLocation at);
SliceFamily read_slices(const Json& row, RowLocation at);
Price read_price(const Json& row, RowLocation at);

}  // namespace mw::hardware
