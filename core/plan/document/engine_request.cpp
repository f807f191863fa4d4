// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/engine_request.h"

#include <map>

#include "core/model/catalogue.h"
#include "core/plan/document/engine_server.h"
#include "core/plan/request/lengths.h"
#include "core/serve/scheduling/engine_kv_layout.h"
#include "core/train/model.h"
#include "core/train/run_settings.h"

namespace mw::plan {
namespace {

std::vector<plan::EngineRows> rows_of(const std::vector<data::BatchSize>& shares) {
  std::vector<plan::EngineRows> rows;
  for (const data::BatchSize& s : shares) rows.push_back({s.step_tokens, s.loss_tokens, s.longest, s.tokens});
  return rows;
}

void set_training(const options::Training& train, const options::DataRows& data, int new_tokens, plan::Request& r) {
  if (!data.holds_rows_out()) return;
  plan::EngineWork& e = *r.engine;
  e.eval_rows = train.eval_rows;
  if (train.answers == 0 && (train.sample_every == 0 || train.sample_prompts == 0)) return;
  e.prompt_tokens = data.max_len;
  e.generate_tokens = data.max_len + new_tokens;
}

void set_machine(const train::ModelSettings& model, plan::Request& r) {
  r.engine.emplace().threads = train::thread_count(model.threads);
  r.target.chip.memory.value = static_cast<double>(train::device_capacity(model).value);
}

}  // namespace

plan::Request engine_request(const train::Settings& s, const model::Config& config) {
  plan::Request r;
  r.model = config;
  r.mesh = s.model.mesh;
  r.rules = s.model.rules;
  r.method = s.method;
  r.weights = plan::dtype_of(s.model.weights);
  r.lengths.max_len = s.data.max_len;
  r.train.batch = s.batch;
  r.train.remat = s.remat;
  r.train.loss_chunk = s.loss_chunk;
  r.train.dropout = s.lora.dropout > 0;
  set_machine(s.model, r);
  if (s.method == model::TrainMethod::lora) r.engine->lora = train::adapter_shapes(config, s.lora);
  set_training(s, s.data, s.sample.max_new_tokens, r);
  return r;
}

void set_rows(const train::DataFacts& facts, const std::string& read, plan::Request& r) {
  plan::EngineWork& e = *r.engine;
  e.rows = rows_of(facts.shares);
  e.evaluation = rows_of(facts.evaluation);
  e.prompt_tokens = facts.asked.prompt;
  e.generate_tokens = facts.asked.with_answer;
  e.read = read + ": largest micro-batch " + std::to_string(facts.largest.tokens) + " tokens";
}

void set_engine(const experiment::ExperimentConfig& config, plan::Request& r) {
  train::ModelSettings machine;
  machine.capacity = Bytes(static_cast<std::int64_t>(config.target.memory_gib * 1073741824.0));
  machine.threads = config.target.threads;
  machine.mesh = config.mesh;
  set_machine(machine, r);
  if (r.work == plan::Work::serve) {
    const serve::SchedulerSettings server = engine_server(config, r.model);
    r.engine->server = serve::planned_serving(r.model, server);
    r.kv = model::DType::f32;  // the engine's, regardless of the document
    r.serve.kv_cache = server.kv.capacity;
    return;
  }
  if (!r.targets.empty()) r.engine->lora = train::adapter_shapes(r.model, config.lora);
  if (r.work == plan::Work::train) set_training(config.train, config.data, config.sample.max_new_tokens, r);
}

void read_rows(const experiment::ExperimentConfig& config, plan::Request& r, std::stop_token stop) {
  if (config.model.path.empty() || config.data.path.empty() || model::is_planning_only(r.model)) return;
  train::Settings settings = train::plan_settings(config, r.model.family);
  const auto tokenizer = train::load_tokenizer_of(settings.model);
  const data::TokenizedDataset dataset = data::open_dataset(settings.data, *tokenizer, std::move(stop));
  train::set_steps_from_epochs(settings, dataset.train);
  set_rows(train::data_facts(settings, r.model, dataset, *tokenizer),
           "row lengths measured in " + settings.data.path.filename().string(), r);
  std::map<int, std::int64_t> lengths;
  double tokens = 0, loss_tokens = 0;
  for (size_t i = 0; i < dataset.train.size(); ++i) {
    const data::ExampleSize size = dataset.train.size_of(i);
    ++lengths[size.tokens];
    tokens += size.tokens, loss_tokens += size.loss_tokens;
  }
  if (tokens <= 0) return;
  r.lengths.histogram.assign(lengths.begin(), lengths.end());
  r.lengths.packed_rows = plan::pack_count(r.lengths.histogram, r.lengths.max_len);
  r.train.loss_share = loss_tokens / tokens;
}

}  // namespace mw::plan
