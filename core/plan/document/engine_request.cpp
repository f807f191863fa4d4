// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/engine_request.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/catalogue.h"
#include "core/plan/request/lengths.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::plan {
namespace {

std::vector<EngineRows> rows_of(const std::vector<data::BatchSize>& shares) {
  std::vector<EngineRows> rows;
  for (const data::BatchSize& s : shares) rows.push_back({s.step_tokens, s.loss_tokens, s.longest, s.tokens});
  return rows;
}

void set_training(const options::Training& train, const options::DataRows& data, int new_tokens, Request& r) {
  if (!data.holds_rows_out()) return;
  EngineWork& e = *r.engine;
  e.eval_rows = train.eval_rows;
  if (train.answers == 0 && (train.sample_every == 0 || train.sample_prompts == 0)) return;
  e.prompt_tokens = data.max_len;
  e.generate_tokens = data.max_len + new_tokens;
}

void set_machine(const train::ModelSettings& model, Request& r) {
  r.engine.emplace().threads = train::thread_count(model.threads);
  r.target.chip.memory.value = static_cast<double>(train::device_capacity(model).value);
}

}  // namespace

Request engine_request(const train::Settings& s, const model::Config& config) {
  Request r;
  r.model = config;
  r.mesh = s.model.mesh;
  r.rules = s.model.rules;
  r.method = s.method;
  r.weights = dtype_of(s.model.weights);
  r.lengths.max_len = s.data.max_len;
  r.train.batch = s.batch;
  r.train.remat = s.remat;
  r.train.loss_chunk = s.loss_chunk;
  r.lora.dropout = s.lora.dropout;
  set_machine(s.model, r);
  if (s.method == model::TrainMethod::lora) r.engine->lora = train::adapter_shapes(config, s.lora);
  set_training(s, s.data, s.sample.max_new_tokens, r);
  return r;
}

void set_rows(const train::DataFacts& facts, const std::string& read, Request& r) {
  EngineWork& e = *r.engine;
  e.rows = rows_of(facts.shares);
  e.evaluation = rows_of(facts.evaluation);
  e.prompt_tokens = facts.asked.prompt;
  e.generate_tokens = facts.asked.with_answer;
  e.read = read + ": largest micro-batch " + counted(facts.largest.tokens, "token");
  if (facts.loss_share <= 0) return;
  r.lengths.histogram.assign(facts.lengths.begin(), facts.lengths.end());
  r.lengths.packed_rows = pack_count(r.lengths.histogram, r.lengths.max_len);
  r.train.loss_share = facts.loss_share;
}

ReadTraining::ReadTraining(const train::Settings& settings, model::Config config, std::stop_token stop)
    : config_(std::move(config)),
      tokenizer_(train::load_tokenizer_of(settings.model)),
      dataset_(data::open_dataset(settings.data, *tokenizer_, std::move(stop))) {}

train::DataFacts ReadTraining::facts(train::Settings s) const {
  train::set_steps_from_epochs(s, dataset_.train);
  const std::vector<std::int64_t> key{s.batch,        s.accumulation,
                                      s.rate.steps,   s.packing == data::Packing::pack,
                                      s.data.max_len, mesh::batch_devices(s.model.mesh)};
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, train::data_facts(s, config_, dataset_, *tokenizer_)).first->second;
}

void set_engine(const experiment::BoundExperiment& config, Request& r) {
  train::ModelSettings machine;
  machine.capacity = Bytes(static_cast<std::int64_t>(config.target.memory_gib * 1073741824.0));
  machine.threads = config.target.threads;
  if (r.work == Work::train)
    machine.mesh = config.mesh;
  else
    machine.capacity = machine.capacity * config.mesh.devices();
  set_machine(machine, r);
  if (r.work == Work::serve) {
    r.kv = model::DType::f32;  // the engine's, regardless of the document
    r.engine->update = [config](Request& changed) {
      experiment::BoundExperiment own = config;
      own.serve.max_num_seqs = changed.serve.max_num_seqs;
      const serve::SchedulerSettings server = engine_server(own, changed.model);
      changed.engine->server = serve::planned_serving(changed.model, server);
      changed.serve.kv_cache = server.kv.capacity;
    };
    return r.engine->update(r);
  }
  if (r.work == Work::train ? r.method == model::TrainMethod::lora : !r.targets.empty())
    r.engine->lora = train::adapter_shapes(r.model, config.lora);
  if (r.work == Work::train) set_training(config.train, config.data, config.sample.max_new_tokens, r);
}

void read_rows(const experiment::BoundExperiment& config, Request& r, std::stop_token stop) {
  if (config.model.path.empty() || config.data.path.empty() || model::is_planning_only(r.model)) return;
  const train::Settings settings = train::plan_settings(config, r.model.family);
  const auto data = std::make_shared<const ReadTraining>(settings, r.model, std::move(stop));
  r.engine->update = [data, settings](Request& changed) {
    train::Settings own = settings;
    own.batch = static_cast<int>(changed.train.batch);
    own.accumulation = changed.train.accumulation;
    if (changed.train.steps > 0) own.rate.steps = changed.train.steps;
    own.packing = changed.lengths.rows == RowLayout::packed ? data::Packing::pack : data::Packing::none;
    own.data.max_len = changed.lengths.max_len;
    own.model.mesh = changed.mesh;
    set_rows(data->facts(own), "row lengths measured in " + own.data.path.filename().string(), changed);
  };
  r.engine->update(r);
}

std::string set_rows_of_run(const experiment::BoundExperiment& config, double step_tokens, Request& r,
                            const std::stop_token& stop) {
  try {
    if (r.engine) read_rows(config, r, stop);
  } catch (const Error& error) {  // the data is not here any more
    if (error.kind() == Error::Kind::cancelled) throw;
  }
  const bool has_rows = !r.lengths.histogram.empty() || (r.engine && !r.engine->read.empty());
  if (has_rows || !std::isfinite(step_tokens)) return {};
  const double mean = step_tokens / static_cast<double>(r.train.batch * r.train.accumulation);
  r.lengths.max_len = std::clamp(static_cast<int>(std::lround(mean)), 1, r.lengths.max_len);
  r.lengths.mean = 0;
  return "every row as long as the mean of the run, " + std::to_string(r.lengths.max_len) + " tokens";
}

void take_rows(const Request& read, Request& r) {
  if (!read.engine || !read.engine->update || !r.engine || r.work != Work::train) return;
  r.engine->update = read.engine->update;
  r.engine->update(r);
}

serve::SchedulerSettings server_settings(const options::Serving& serve, const model::Config& model) {
  serve::SchedulerSettings settings = serve::scheduler_settings(serve);
  if (!serve.sets_max_model_len) settings.max_model_len = std::min(settings.max_model_len, model.max_positions);
  if (model.max_positions > 0 && settings.max_model_len > model.max_positions)
    throw Error("CONTEXT", "the longest request exceeds the context of the model",
                {.place = "serve.max_model_len",
                 .found = counted(settings.max_model_len, "token"),
                 .expected = "at most " + std::to_string(model.max_positions),
                 .fix = "lower serve.max_model_len"});
  return settings;
}

Bytes requested_kv(const options::Serving& serve) {
  return Bytes(static_cast<std::int64_t>(serve.kv_gib * 1073741824.0));
}

serve::OutOfWindowKv window_kv(const options::Serving& serve) {
  return serve.sliding_window_kv ? serve::OutOfWindowKv::freed : serve::OutOfWindowKv::kept;
}

InferenceModel inference_model(const train::ModelSettings& settings) {
  return {.weights = settings.weights, .threads = train::thread_count(settings.threads)};
}

serve::SchedulerSettings engine_server(const experiment::BoundExperiment& experiment, const model::Config& config) {
  train::ModelSettings settings = train::model_values(experiment);
  settings.capacity = settings.capacity * settings.mesh.devices();  // one device serves, as load_served() says
  settings.mesh = {};
  const InferenceModel model = inference_model(settings);
  const Bytes weights = predict_memory(config, model, engine::ServingWork{}).at_peak[MemoryCategory::weights];
  return serve::lay_out_engine_kv(config, server_settings(experiment.serve, config), requested_kv(experiment.serve),
                                  window_kv(experiment.serve), {model, train::device_capacity(settings) - weights});
}

}  // namespace mw::plan
