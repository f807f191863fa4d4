// SPDX-License-Identifier: Apache-2.0
// Counts the rows of one epoch of an experiment, and converts train.epochs to steps. Thread-safe.
#pragma once
#include <optional>
#include <stop_token>

#include "core/experiment/config.h"

namespace mw::plan {

// Returns the rows of one epoch after drops, held-out rows and packing. Counts the rows of data.path as the engine does
// if file and tokenizer are available (cached until the file or its keys change), else uses data.lengths, else
// data.rows. Empty if none of them is known.
std::optional<double> epoch_rows(const experiment::ExperimentConfig& config, std::stop_token stop = {});

// Returns train.steps, or the steps of train.epochs. Empty if epoch_rows() is not known.
std::optional<long long> training_steps(const experiment::ExperimentConfig& config, std::stop_token stop = {});

}  // namespace mw::plan
