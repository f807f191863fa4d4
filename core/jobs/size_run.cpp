// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/size_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/engine/distributed/cluster.h"
#include "core/engine/transformer/checks.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/model/catalogue.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/experiment/predict_sizes.h"
#include "core/train/model.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRows = 1 << 20;

std::vector<int> batches_of(const options::Sizing& size) {
  std::vector<int> batches;
  for (const std::string& text : size.batches) {
    int batch = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), batch);
    if (error != std::errc() || end != text.data() + text.size() || batch < 1 || batch > kMostRows)
      throw Error("SIZE-BATCH", "the batch size is not a valid integer",
                  {.place = "size.batches", .found = text, .expected = "1 to " + std::to_string(kMostRows)});
    batches.push_back(batch);
  }
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

// Returns the model of a folder, or the shape of a catalogue model with random weights.
model::Config sized_config(const options::Model& model) {
  if (!model.path.empty()) {
    model::Config config = formats::read_config(model.path);
    engine::check_model(config);
    return config;
  }
  if (model.id.empty())
    throw Error("MISSING", "the experiment has no model",
                {.place = "model.path",
                 .expected = "a model folder, or model.id with model.init=random",
                 .fix = "set model.path to the folder of a Gemma model"});
  model::Config config = model::catalogue_config(model.id);
  engine::check_model(config);
  if (model.init != options::Init::random)
    throw Error("MISSING", "a catalogue model has no weights to load",
                {.place = "model.path",
                 .found = "only model.id = " + model.id,
                 .expected = "a model folder",
                 .fix = "set model.path, or size random weights of this shape with --set model.init=random"});
  return config;
}

Json names_of(const std::vector<options::Workload>& workloads) {
  Json names = Json::array();
  for (const options::Workload workload : workloads) names.push_back(to_string(workload));
  return names;
}

struct Adapters {
  bool wanted = false;
  std::optional<formats::PeftAdapter> loaded;
  options::Lora options;
};

Adapters adapters_of(const experiment::BoundExperiment& config, const model::Config& model) {
  Adapters a;
  a.wanted = config.size.adapters || !config.lora.adapter.empty();
  if (!config.lora.adapter.empty()) {
    a.loaded = formats::read_peft(config.lora.adapter, model::TensorInventory(model));
    a.options = train::lora_options(*a.loaded);
  } else if (a.wanted) {
    a.options = config.lora;
  }
  return a;
}

// At the rates of this machine; none if it cannot be planned, such as with a calibration that cannot be read.
std::optional<serve::MeasuredSize::PredictedTime> planned_time(experiment::Experiment e,
                                                               const plan::PlanContext& context,
                                                               const serve::MeasuredSize& point) try {
  e.set_value("size.adapters", point.adapters);
  const plan::Request request =
      plan::with_case(plan::plan_request(e, context), e.config().size, {point.workload, point.batch});
  return plan::predicted_time(request, plan::predict(request));
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

bool are_sizes_predicted(const experiment::BoundExperiment& config) {
  return config.target.id != "cpu";
}

serve::SizingSettings sizing_settings(const experiment::BoundExperiment& config) {
  train::check_target(config);
  train::check_planned_only(config.train);
  const train::ModelSettings model = train::model_values(config);
  if (model.mesh.devices() > 1)
    throw Error("MESH", "a size run supports only one device",
                {.place = "mesh." + model.mesh.axes.back().name,
                 .found = mesh::to_text(model.mesh),
                 .expected = "1",
                 .fix = "remove the mesh, or measure with a training run"});
  sized_config(config.model);
  serve::SizingSettings s;
  s.workloads.clear();
  for (const options::Workload w : config.size.workloads)
    if (std::find(s.workloads.begin(), s.workloads.end(), w) == s.workloads.end()) s.workloads.push_back(w);
  s.batches = batches_of(config.size);
  for (const auto& [empty, key] :
       {std::pair(s.workloads.empty(), "size.workloads"), {s.batches.empty(), "size.batches"}})
    if (empty) throw Error("MISSING", "the list is empty", {.place = key, .expected = "at least one"});
  s.prompt_len = config.size.prompt_len;
  s.new_tokens = config.size.new_tokens;
  s.top_k = config.size.top_k;
  s.chunk = config.size.chunk;
  s.seed = config.train.seed;
  return s;
}

event::Finished run_sizes(const experiment::Experiment& experiment, const plan::PlanContext* context, Json info,
                          const EventSink& sink, std::stop_token stop, train::PauseGate& gate) {
  const experiment::BoundExperiment& config = experiment.config();
  const auto start_time = Clock::now();
  const auto emit = [&](auto body) { sink({seconds_since(start_time), std::move(body)}); };
  emit(event::StateChanged{RunState::running});
  train::ModelSettings model = train::model_values(config);
  model.use = engine::NetworkUse::inference;
  serve::SizingRequest request{
      .config = sized_config(config.model), .model = {}, .capacity = {}, .settings = {}, .network = {}};
  request.settings = sizing_settings(config);
  if (const int longest = request.settings.prompt_len + request.settings.new_tokens;
      longest > request.config.max_positions)
    throw Error("CONTEXT", "prompt and answer are longer than the model's context",
                {.place = "size.new_tokens",
                 .found = counted(longest, "token"),
                 .expected = "at most " + std::to_string(request.config.max_positions)});
  request.capacity = model.capacity.value > 0 ? model.capacity : train::machine_memory();
  const Adapters adapters = adapters_of(config, request.config);
  request.model = plan::inference_model(model);
  if (adapters.wanted) request.model.lora = train::adapter_shapes(request.config, adapters.options);
  train::LoadedModel loaded;
  request.network = [&]() -> engine::Network& {
    loaded = train::load_weights(model, request.config, [&](long done, long total) {
      emit(event::Progress{"loading weights", done, total});
    });
    engine::Network& network = loaded.cluster->network(0);
    if (adapters.loaded)
      train::attach_adapter(*adapters.loaded, model.seed, *loaded.cluster);
    else if (adapters.wanted)
      network.add_lora(adapters.options, model.seed);
    const Ledger held = network.device().arena.use().at_peak;
    emit(event::Memory{0, 0, "load", held, held.total()});
    return network;
  };
  const auto points = static_cast<long>(request.settings.workloads.size() * request.settings.batches.size());
  info.update({{"kind", "size"},
               {"steps", points},
               {"workloads", names_of(request.settings.workloads)},
               {"batches", request.settings.batches},
               {"model", {{"path", model.path.string()}, {"name", request.config.id}}},
               {"device", {{"id", "cpu"}, {"threads", request.model.threads}}},
               {"capacity_bytes", request.capacity.value},
               {"adapters", adapters.wanted},
               {"prompt_len", request.settings.prompt_len},
               {"new_tokens", request.settings.new_tokens}});
  emit(event::Started{std::move(info)});

  event::Finished finished;
  const serve::SizingCallbacks callbacks{
      .point =
          [&](serve::MeasuredSize p) {
            if (context && p.fits()) p.predicted_time = planned_time(experiment, *context, p);
            if (!p.fits())
              emit(event::Log{"warning", std::string(to_string(p.workload)) + ", batch " + std::to_string(p.batch) +
                                             " would need " + to_text(p.predicted.total()) + " of " +
                                             to_text(p.capacity) + " and was skipped; the largest batch that fits is " +
                                             std::to_string(p.largest_batch)});
            if (!p.error.empty()) emit(event::Log{"warning", p.error});
            if (p.measured) {
              finished.tokens += static_cast<long>(p.measured->tokens);
              finished.peak = std::max(finished.peak, p.measured->memory.total());
            }
            emit(event::ResultPoint{++finished.steps, "size", to_json(p)});
          },
      .progress =
          [&](const std::string& phase, long done, long total) {
            emit(event::Progress{phase, done, total});
          },
      .before_point = [&] { gate.wait(stop, [&](RunState state) { emit(event::StateChanged{state}); }); }};
  finished.state = serve::measure_sizes(request, callbacks, stop) ? RunState::done : RunState::cancelled;
  finished.seconds = seconds_since(start_time);
  return finished;
}

event::Finished run_predicted_sizes(const experiment::Experiment& experiment, const plan::PlanContext& context,
                                    Json info, const EventSink& sink, const std::stop_token& stop) {
  const auto start_time = Clock::now();
  const auto emit = [&](auto body) { sink({seconds_since(start_time), std::move(body)}); };
  emit(event::StateChanged{RunState::running});
  const plan::PredictedSizes sizes = plan::predicted_sizes(experiment, context);
  std::vector<options::Workload> workloads;
  std::vector<std::int64_t> batches;
  for (const plan::SizeCase& each : sizes.cases) {
    if (workloads.empty() || workloads.back() != each.workload) workloads.push_back(each.workload);
    if (workloads.size() == 1) batches.push_back(each.batch);
  }
  info.update({{"kind", "size"},
               {"source", "predicted"},
               {"steps", 2 * sizes.cases.size()},
               {"workloads", names_of(workloads)},
               {"batches", batches},
               {"model", {{"name", sizes.plain.model.id}}},
               {"device", {{"id", sizes.plain.target.id}, {"count", sizes.plain.mesh.devices()}}},
               {"stack", to_string(sizes.plain.stack)},
               {"capacity_bytes", sizes.capacity().value},
               {"prompt_len", sizes.size.prompt_len},
               {"new_tokens", sizes.size.new_tokens}});
  emit(event::Started{std::move(info)});
  event::Finished finished;
  const auto point = [&](const serve::MeasuredSize& p) {
    emit(event::ResultPoint{++finished.steps, "size", to_json(p)});
  };
  finished.state = plan::predict_sizes(sizes, point, stop) ? RunState::done : RunState::cancelled;
  finished.seconds = seconds_since(start_time);
  return finished;
}

}  // namespace mw::jobs
