// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/base/json.h"

namespace mw::experiment {

// JSON Schema (draft 2020-12) of an experiment file, made from the parameter table: types, ranges, choices, defaults
// and help of every key. Keys that are not in the table are allowed, as they are in a file.
Json experiment_schema();

}  // namespace mw::experiment
