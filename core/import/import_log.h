// SPDX-License-Identifier: Apache-2.0
// A training log of another program (formats/logs) as a finished run of the store, source "imported". The store's
// thread.
#pragma once
#include "core/formats/logs/run_log.h"
#include "core/store/store.h"

namespace mw::importing {

// One run; its metrics in order of steps, time from the log's clock where it has one.
store::RunId import_log(store::Store& store, const formats::RunLog& log);

}  // namespace mw::importing
