// SPDX-License-Identifier: Apache-2.0
// Imports a training log of another program (formats/logs) as a finished run of the store with source "imported". Use
// on the store's thread.
#pragma once
#include "core/formats/logs/run_log.h"
#include "core/store/store.h"

namespace mw::importing {

// Records the metrics in order of steps, with the times of the log if it has any.
store::RunId import_log(store::Store& store, const formats::RunLog& log);

}  // namespace mw::importing
