// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/sweep_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/jobs/model_server.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/document/simulated_server.h"
#include "core/plan/prediction/serve_step.h"
#include "core/serve/load/engine_backend.h"
#include "core/serve/load/http_backend.h"
#include "core/serve/load/saturation.h"
#include "core/serve/load/sweep.h"
#include "core/store/store_rows.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace {

using Clock = std::chrono::steady_clock;

Json slo_json(const options::Slo& slo) {
  return {{"ttft_ms", slo.ttft_ms}, {"tpot_ms", slo.tpot_ms}, {"e2e_ms", slo.e2e_ms}};
}

}  // namespace

event::Finished run_sweep(const SweepRequest& request, const EventSink& sink, std::stop_token stop,
                          train::PauseGate& gate) {
  const auto start_time = Clock::now();
  const auto emit = [&](auto body) { sink({seconds_since(start_time), std::move(body)}); };
  emit(event::StateChanged{RunState::running});
  const experiment::Experiment& e = request.experiment;
  const experiment::BoundExperiment config = e.config();
  const serve::SweepSettings settings = serve::sweep_settings(config);
  const plan::PlanContextPtr loaded = request.context();
  const plan::PlanContext& context = *loaded;
  formats::BenchSet facts = serve::sweep_facts(config, context.catalogue);
  BackendParts parts = make_backend(e, context, [&](auto body) { std::visit(emit, std::move(body)); });
  for (const auto& [key, value] : parts.conditions) facts.conditions[key] = value;
  parts.notes.push_back(serve::percentile_text(99, settings.fewest_prompts()));
  Json info = request.info;
  info.update({{"kind", "sweep"},
               {"backend", to_string(serve::sweep_backend(config))},
               {"source", facts.provenance == formats::ResultProvenance::predicted ? "predicted" : "measured"},
               {"steps", settings.points()},
               {"slo", slo_json(settings.slo)},
               {"set", formats::to_json(facts, formats::Detail::summary)}});
  if (!request.done.empty()) info["resumed_from"] = request.done.size();
  emit(event::Started{std::move(info)});
  for (const std::string& note : parts.notes) emit(event::Log{"info", note});

  event::Finished finished;
  finished.steps = static_cast<long>(request.done.size());
  for (const formats::BenchPoint& p : request.done) finished.tokens += p.total_output_tokens;
  const serve::SweepCallbacks callbacks{
      .point =
          [&](const formats::BenchPoint& p) {
            finished.tokens += p.total_output_tokens;
            if (!p.note.empty()) emit(event::Log{"warning", p.note});
            emit(event::ResultPoint{
                ++finished.steps, "sweep",
                formats::to_json(plan::with_limits(store::as_recorded(p),
                                                   parts.intervals ? parts.intervals(p) : plan::IntervalFactors{}),
                                 formats::Detail::requests)});
          },
      .progress =
          [&](const std::string& phase, long done, long total) {
            emit(event::Progress{phase, done, total});
          },
      .before_point = [&] { gate.wait(stop, [&](RunState state) { emit(event::StateChanged{state}); }); }};
  const bool complete = serve::run_sweep(settings, *parts.backend, request.done, callbacks, stop);
  finished.state = complete ? RunState::done : RunState::cancelled;
  finished.seconds = seconds_since(start_time);
  return finished;
}

namespace {

std::string replicas_text(const options::Sweep& sweep) {
  if (sweep.replicas == 1) return {};
  return "; " + counted(sweep.replicas, "replica") + ", routing " + std::string(to_string(sweep.routing));
}

BackendParts model_parts(const experiment::Experiment& e, const plan::PlanContext& context) {
  plan::ExperimentServer server = plan::simulated_server(e, context);
  const plan::Request& request = server.request;
  BackendParts parts;
  parts.backend = std::move(server.backend);
  parts.conditions["stack"] = model::to_string(request.stack);
  if (plan::runs_here(request)) {
    parts.conditions["kv_dtype"] = model::to_string(request.kv);  // the engine's, regardless of the document
    parts.conditions["max_model_len"] = std::to_string(request.serve.max_model_len);
    parts.conditions["calibration"] = request.efficiencies.matmul.source;
  }
  parts.intervals = std::move(server.intervals);
  parts.notes.push_back("every number is predicted: " + std::string(model::to_string(request.stack)) + " on " +
                        request.target.id + ", KV cache " + to_text(plan::ServeStepModel(request).kv().capacity) +
                        replicas_text(e.config().sweep));
  if (!e.config().serve.adapters.empty()) parts.notes.push_back("the time that LoRA adapters take is not predicted");
  if (!server.interval_source.empty()) parts.notes.push_back(server.interval_source);
  return parts;
}

// Returns the first id after the special tokens; prompts contain only ordinary tokens.
int first_plain_id(const data::Tokenizer& tokenizer) {
  int last = 3;
  for (const char* name : {"<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<|turn>",
                           "<turn|>", "<start_of_image>", "<end_of_image>"})
    if (const int id = tokenizer.find(name); id < tokenizer.size() / 2) last = std::max(last, id);
  return std::min(last + 1, tokenizer.size() - 1);
}

BackendParts engine_parts(const experiment::Experiment& e, const EmitBody& emit) {
  auto served = std::make_shared<ServedModel>(load_served(e, [&](long done, long total) {
    emit(event::Progress{"loading weights", done, total});
  }));
  engine::Network& network = served->model.cluster->network(0);
  const Ledger held = network.device().arena.use().at_peak;
  emit(event::Memory{0, 0, "load", held, held.total()});
  const serve::EngineBackendOptions load{
      .first_id = first_plain_id(*served->model.tokenizer),
      .vocab = std::min(served->model.tokenizer->size(), network.config().vocab),
      .adapter = served->adapters.empty() ? nullptr : &served->adapters.front().values};
  BackendParts parts;
  parts.backend = serve::make_engine_backend(network, served->settings, load);
  parts.conditions["kv_dtype"] = "f32";  // the engine's type, regardless of the document
  parts.conditions["max_model_len"] = std::to_string(served->settings.max_model_len);
  if (load.adapter) parts.conditions["adapter"] = served->adapters.front().name;
  parts.notes.push_back("measured on this machine: " + counted(train::thread_count(0), "thread") + ", KV cache " +
                        to_text(served->settings.kv.capacity) + " in f32");
  parts.owned = std::move(served);
  return parts;
}

// Returns the tokenizer of model.path; null if the folder has none.
std::unique_ptr<data::Tokenizer> tokenizer_of(const std::filesystem::path& folder) {
  try {
    return folder.empty() ? nullptr : data::load_tokenizer(folder);
  } catch (const Error&) {
    return nullptr;
  }
}

BackendParts http_parts(const experiment::BoundExperiment& config) {
  if (config.sweep.url.empty())
    throw Error("SWEEP", "the experiment has no server",
                {.place = "sweep.url",
                 .found = "nothing",
                 .expected = "a URL such as http://127.0.0.1:8000",
                 .fix = "set --url, or start a server with `meshwright serve`"});
  serve::HttpLoadOptions options;
  options.target = {.url = config.sweep.url, .model = config.sweep.model};
  if (const char* key = std::getenv("MESHWRIGHT_API_KEY")) options.target.api_key = key;
  BackendParts parts;
  if (const auto tokenizer = tokenizer_of(config.model.path)) {
    options.first_id = first_plain_id(*tokenizer);
    options.vocab = tokenizer->size();
    parts.notes.push_back(
        "prompts are token ids of the tokenizer in model.path, which must be that of the served model");
  }
  const bool is_replayed = config.sweep.prompts == options::PromptMode::replayed;
  parts.notes.push_back(std::string("the server's prefix cache is not emptied: every ") +
                        (is_replayed ? "length and repeat" : "rate") + " draws other prompts instead");
  parts.backend = serve::make_http_backend(std::move(options));
  return parts;
}

}  // namespace

BackendParts make_backend(const experiment::Experiment& e, const plan::PlanContext& context, const EmitBody& emit) {
  const experiment::BoundExperiment config = e.config();
  switch (serve::sweep_backend(config)) {
    case options::SweepBackend::engine:
      return engine_parts(e, emit);
    case options::SweepBackend::http:
      return http_parts(config);
    case options::SweepBackend::model:
      break;
  }
  return model_parts(e, context);
}

}  // namespace mw::jobs
