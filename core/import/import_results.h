// SPDX-License-Identifier: Apache-2.0
// Results of other tools as finished runs of the store: the same events as a sweep's (core/jobs/sweep_run.h), source
// "imported". The store's thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/store/store.h"

namespace mw::importing {

// A document that says of the set what it can: kind serve, model, target, rates and lengths.
experiment::Experiment experiment_of(const formats::BenchSet& set);
// A set as a finished run of the store; `document` says what was run.
store::RunId record_set(store::Store& store, const experiment::Experiment& document, formats::BenchSet set,
                        std::string_view source);
// Store::finish() for a run that is recorded at once: throws STORE-GONE where the store was rescued.
void finish_recorded(store::Store& store, const store::RunId& run, double time_s, event::Finished finished);
// One run per set, in order. What was measured elsewhere is imported; predictions stay predictions.
std::vector<store::RunId> import_sets(store::Store& store, std::vector<formats::BenchSet> sets);

}  // namespace mw::importing
