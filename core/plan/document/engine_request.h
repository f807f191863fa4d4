// SPDX-License-Identifier: Apache-2.0
// Requests for the engine on this machine: what its memory and its time follow from. Thread-safe.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "core/experiment/bound_experiment.h"
#include "core/plan/prediction/memory.h"
#include "core/plan/request/request.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/train/evaluate.h"
#include "core/train/settings.h"

namespace mw::plan {

// A training as far as engine_memory() reads it, with all rows at their maximum length.
Request engine_request(const train::Settings& settings, const model::Config& config);
// Sets the rows that the data has, and those of its micro-batches; `read`: where they are from.
void set_rows(const train::DataFacts& facts, const std::string& read, Request& request);
// The data of a training, read once for all settings that a search tries. Thread-safe.
class ReadTraining {
 public:
  ReadTraining(const train::Settings& settings, model::Config config, std::stop_token stop);
  // Returns the facts of this data with other steps, rows and mesh, and keeps them for the next call with these.
  train::DataFacts facts(train::Settings settings) const;

 private:
  model::Config config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  data::TokenizedDataset dataset_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::int64_t>, train::DataFacts> known_;
};

// Sets the engine's part of a request for this machine, whose work and mesh are set, and the limits of the machine.
// Throws SERVE if a server holds not even one request.
void set_engine(const experiment::BoundExperiment& config, Request& request);
// Reads the data of a training on this machine for the lengths of its rows, if there are model folder and data, also
// for the settings to which a search changes the request. Throws as reading them does.
void read_rows(const experiment::BoundExperiment& config, Request& request, std::stop_token stop = {});
// Sets the rows of a finished run: those of its data, else of `step_tokens` in a step, every one as long as the mean.
// Returns the latter as text, else nothing.
std::string set_rows_of_run(const experiment::BoundExperiment& config, double step_tokens, Request& request,
                            const std::stop_token& stop = {});
// Sets the rows from the data that read_rows() read for `read`, a request with other settings of the document, if any.
void take_rows(const Request& read, Request& request);

// The settings of a server on this machine. Thread-safe.

// Returns the scheduler settings with the limits of load_served(), without a KV layout.
serve::SchedulerSettings server_settings(const options::Serving& serve, const model::Config& model);
Bytes requested_kv(const options::Serving& serve);  // 0: as much as the requests need, limited by free memory
serve::OutOfWindowKv window_kv(const options::Serving& serve);

// Returns the model of an inference workload without adapters.
InferenceModel inference_model(const train::ModelSettings& settings);
// With the engine's KV layout, for one device. Throws SERVE if not even one request of max_model_len tokens fits.
serve::SchedulerSettings engine_server(const experiment::BoundExperiment& experiment, const model::Config& config);

}  // namespace mw::plan
