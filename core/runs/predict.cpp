// SPDX-License-Identifier: Apache-2.0
#include "core/runs/predict.h"

#include <algorithm>
#include <regex>

#include "core/engine/kernels/packed.h"
#include "core/formats/checkpoint.h"
#include "core/plan/memory.h"
#include "core/runs/settings.h"
#include "core/train/model.h"

namespace mw::runs {

std::vector<plan::LoraSize> lora_sizes(const model::Config& config, const engine::LoraOptions& options) {
  std::vector<plan::LoraSize> sizes;
  for (const engine::ResolvedLora& m : engine::resolve_lora(model::TensorInventory(config), options))
    sizes.push_back({.role = m.target.role, .layer = m.target.layer, .rank = m.rank});
  return sizes;
}

namespace {

plan::TrainShape shape_of(const train::Settings& s, const model::Config& config, const data::BatchSize& size) {
  plan::TrainShape shape;
  shape.method = s.method == engine::Method::full ? plan::Method::full : plan::Method::lora;
  shape.bf16 = engine::packed_kernels() ? plan::Bf16Math::packed : plan::Bf16Math::widened;
  shape.weights = static_cast<plan::WeightType>(s.model.weights);
  if (s.method == engine::Method::lora) shape.lora = lora_sizes(config, s.lora);
  shape.dropout = s.method == engine::Method::lora && s.lora.dropout > 0;
  shape.remat = static_cast<plan::Remat>(s.remat);
  shape.tokens = size.padded;
  shape.loss_tokens = size.loss_tokens;
  shape.longest = size.longest;
  shape.loss_chunk = s.loss_chunk;
  shape.threads = train::thread_count(s.model.threads);
  const bool samples = s.answers > 0 || (s.sample_every > 0 && s.sample_prompts > 0);
  if (samples) shape.generate_tokens = size.longest + s.sample.max_new_tokens;
  return shape;
}

Prediction predict_shape(const train::Settings& s, const model::Config& config, const data::BatchSize& size) {
  const plan::MemoryPlan plan = plan::predict_train_memory(config, shape_of(s, config, size));
  return {.target = "cpu",
          .capacity = s.model.capacity.value > 0 ? s.model.capacity : train::machine_memory(),
          .at_peak = plan.at_peak,
          .peak_instant = plan.peak_instant,
          .sources = {},
          .notes = {}};
}

// Every row as long as it may be: an upper bound where the data has not been read.
data::BatchSize full_rows(const train::Settings& s) {
  const std::int64_t tokens = std::int64_t{s.batch} * s.data.max_len;
  return {.tokens = tokens, .loss_tokens = tokens, .padded = tokens, .longest = s.data.max_len};
}

}  // namespace

Prediction predict_run(const train::Settings& settings, const train::DataFacts& facts) {
  return predict_shape(settings, facts.config, facts.largest);
}

Prediction predict(const Experiment& experiment, ReadData read_data, std::stop_token stop) {
  const bool from_folder = !experiment.path("model.path").empty();
  const model::Config config = from_folder ? formats::read_config(experiment.path("model.path"))
                                           : model::catalogue(experiment.string("model.id"));
  const train::Settings settings = plan_settings(experiment, config.family);
  const bool read =
      read_data == ReadData::yes && from_folder && !settings.data.path.empty() && !model::planning_only(config);
  data::BatchSize size = full_rows(settings);
  std::string basis =
      "every row taken as data.max_len = " + std::to_string(settings.data.max_len) + " tokens (the data was not read)";
  if (read) {
    const auto tokenizer = train::load_tokenizer_of(settings.model);
    const data::Dataset dataset = data::load_dataset(settings.data, *tokenizer, stop);
    size = train::data_facts(settings, config, dataset).largest;
    basis = "row lengths measured in " + settings.data.path.filename().string() + ": largest micro-batch " +
            std::to_string(size.tokens) + " tokens";
  }
  Prediction p = predict_shape(settings, config, size);
  p.basis = read ? Basis::exact : Basis::bound;
  p.sources = {"shapes: " + (from_folder ? (experiment.path("model.path") / "config.json").string()
                                         : "catalogue entry " + config.id),
               basis, "formulas: core/plan, held against the engine's measured ledger by its tests"};
  if (model::planning_only(config))
    p.notes.push_back({.id = "PLANNING-ONLY",
                       .severity = Severity::warning,
                       .message = "the engine does not run this model; this is what its formulas give for these shapes",
                       .file = config.id,
                       .found = config.hf_model_type,
                       .expected = "a Gemma model, to run it here"});
  return p;
}

Json predicted_json(const Prediction& p) {
  Json memory = Json::object();
  for (size_t i = 0; i < kMemoryCategories; ++i)
    memory[std::string(to_string(static_cast<MemoryCategory>(i)))] = p.at_peak.bytes[i].value;
  memory["total"] = p.at_peak.total().value;
  return {{"capacity_bytes", p.capacity.value},
          {"memory", memory},
          {"peak_instant", p.peak_instant},
          {"sources", p.sources}};
}

}  // namespace mw::runs
