// SPDX-License-Identifier: Apache-2.0
// Requests for the engine on this machine: what its memory and its time follow from. Thread-safe.
#pragma once
#include <stop_token>

#include "core/experiment/config.h"
#include "core/plan/request/request.h"
#include "core/train/data_facts.h"

namespace mw::plan {

// A training as far as plan::engine_memory() reads it, with all rows at their maximum length.
plan::Request engine_request(const train::Settings& settings, const model::Config& config);
// Sets the rows of the micro-batches that the data has; `read`: where they are from.
void set_rows(const train::DataFacts& facts, const std::string& read, plan::Request& request);

// Sets the engine's part of a request for this machine, whose work and mesh are set, and the limits of the machine.
// Throws SERVE if a server holds not even one request.
void set_engine(const experiment::ExperimentConfig& config, plan::Request& request);
// Reads the data of a training on this machine for the lengths of its rows, if there are model folder and data. Throws
// as reading them does.
void read_rows(const experiment::ExperimentConfig& config, plan::Request& request, std::stop_token stop = {});

}  // namespace mw::plan
