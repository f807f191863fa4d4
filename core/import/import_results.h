// SPDX-License-Identifier: Apache-2.0
// Imports results of other tools as finished runs of the store, with the events of a sweep (core/jobs/sweep_run.h) and
// source "imported". Use on the store's thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/store/store.h"

namespace mw::importing {

// Returns a document with what is known of the set: kind serve, model, target, rates and lengths.
experiment::Experiment experiment_of(const formats::BenchSet& set);
// Records a set as a finished run of the store with `document` as its experiment. `summary`: of the Finished event.
store::RunId record_set(store::Store& store, const experiment::Experiment& document, formats::BenchSet set,
                        std::string_view source, Json summary = {});
// Calls Store::finish() for an imported run; throws STORE-GONE if the store was rescued.
void finish_recorded(store::Store& store, const store::RunId& run, double time_s, event::Finished finished);
// Imports one run per set, in order. Measured sets get source "imported", predicted sets keep "predicted".
std::vector<store::RunId> import_sets(store::Store& store, std::vector<formats::BenchSet> sets);

}  // namespace mw::importing
