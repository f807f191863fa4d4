// SPDX-License-Identifier: Apache-2.0
// How many rows one pass over an experiment's training data has, and how many steps train.epochs are. Any thread.
#pragma once
#include <optional>
#include <stop_token>

#include "core/experiment/experiment.h"

namespace mw::planning {

// Rows of one pass, after drops, held-out rows and packing. Counted as the engine counts them where data.path and a
// tokenizer are at hand (the answer is kept while the file and the keys it depends on stay as they are); else from
// data.lengths, else from data.rows. None: none of them is known.
std::optional<double> epoch_rows(const experiment::Experiment& experiment, std::stop_token stop = {});

// train.steps, or what train.epochs makes of epoch_rows(). None: the rows are not known.
std::optional<long long> training_steps(const experiment::Experiment& experiment, std::stop_token stop = {});

}  // namespace mw::planning
