// SPDX-License-Identifier: Apache-2.0
#include "core/planning/predict.h"

#include <algorithm>
#include <map>

#include "core/formats/huggingface/hf_weights.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/collectives/reshard_plan.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/catalogue.h"
#include "core/plan/memory/memory.h"
#include "core/plan/request/lengths.h"
#include "core/planning/epoch_rows.h"
#include "core/planning/plan_request.h"
#include "core/train/model.h"
#include "core/train/run_settings.h"

namespace mw::planning {

namespace {

// The rows that a device computes and the request for its memory.
struct DeviceWork {
  data::BatchSize rows{}, evaluation{};
  train::DataFacts::PromptTokens asked{};
};

plan::TrainShape shape_of(const train::Settings& s, const model::Config& config, const DeviceWork& work) {
  plan::TrainShape shape;
  shape.method = s.method;
  shape.weights = s.model.weights;
  if (s.method == model::TrainMethod::lora) shape.lora = train::adapter_shapes(config, s.lora);
  shape.dropout = s.method == model::TrainMethod::lora && s.lora.dropout > 0;
  shape.remat = s.remat;
  shape.tokens = work.rows.step_tokens;
  shape.loss_tokens = work.rows.loss_tokens;
  shape.longest = std::max(work.rows.longest, 1);
  shape.loss_chunk = s.loss_chunk;
  shape.threads = s.model.mesh.devices() > 1 ? 1 : train::thread_count(s.model.threads);
  shape.evaluation = {work.evaluation.step_tokens, work.evaluation.loss_tokens, work.evaluation.longest};
  shape.prompt_tokens = work.asked.prompt;
  shape.generate_tokens = work.asked.with_answer;
  return shape;
}

Prediction predict_shape(const train::Settings& s, const train::DataFacts& facts) {
  Prediction p;
  p.capacity = train::device_capacity(s.model);
  const int devices = s.model.mesh.devices();
  const auto share = [](const std::vector<data::BatchSize>& of, std::int64_t index) {
    return of.empty() ? data::BatchSize() : of.at(static_cast<size_t>(index));
  };
  const auto add = [&](plan::MemoryPlan plan, const data::BatchSize& size) {
    p.devices.push_back(
        {plan.at_peak, plan.category_peaks, std::move(plan.peak_instant), size.tokens, size.loss_tokens});
  };
  if (devices == 1) {
    const DeviceWork work{facts.largest, share(facts.evaluation, 0), facts.asked};
    add(plan::predict_train_memory(facts.config, shape_of(s, facts.config, work)), facts.largest);
  } else {
    p.mesh = s.model.mesh;
    const mesh::Placement placement = train::training_placement(s, facts.config);
    const mesh::ReshardPlans plans(facts.config, placement, p.mesh);
    for (int d = 0; d < devices; ++d) {
      const std::int64_t index = mesh::batch_slice(p.mesh, d).index;
      const DeviceWork work{share(facts.shares, index), share(facts.evaluation, index), facts.asked};
      add(plan::predict_train_memory(facts.config, shape_of(s, facts.config, work), plans, d), work.rows);
    }
  }
  const auto fullest = std::max_element(p.devices.begin(), p.devices.end(), [](const auto& a, const auto& b) {
    return a.at_peak.total() < b.at_peak.total();
  });
  p.at_peak = fullest->at_peak;
  p.peak_instant = fullest->peak_instant;
  return p;
}

// Assumes the maximum length for all rows: an upper bound if the data has not been read.
data::BatchSize full_rows(const train::Settings& s, std::int64_t rows) {
  const std::int64_t tokens = rows * s.data.max_len;
  return {.tokens = tokens,
          .loss_tokens = tokens,
          .padded = tokens,
          .longest = rows > 0 ? s.data.max_len : 0,
          .step_tokens = tokens};
}

std::vector<data::BatchSize> full_shares(const train::Settings& s, std::int64_t of_rows) {
  std::vector<data::BatchSize> shares;
  const std::int64_t ways = mesh::batch_devices(s.model.mesh);
  for (std::int64_t w = 0; w < ways; ++w) {
    const mesh::Range rows = mesh::batch_rows({w, ways}, of_rows);
    shares.push_back(full_rows(s, rows.end - rows.begin));
  }
  return shares;
}

train::DataFacts full_facts(const train::Settings& s, const model::Config& config) {
  train::DataFacts facts{.config = config, .largest = full_rows(s, s.batch), .shares = full_shares(s, s.batch)};
  if (!s.data.holds_rows_out()) return facts;  // no rows are held out
  facts.evaluation = full_shares(s, std::min<std::int64_t>(s.batch, s.eval_rows));
  if (s.answers > 0 || (s.sample_every > 0 && s.sample_prompts > 0))
    facts.asked = {s.data.max_len, s.data.max_len + s.sample.max_new_tokens};
  return facts;
}

}  // namespace

Prediction predict_run(const train::Settings& settings, const train::DataFacts& facts) {
  return predict_shape(settings, facts);
}

Prediction predict(const experiment::Experiment& experiment, ReadData read_data, std::stop_token stop) {
  const experiment::ExperimentConfig& given = experiment.config();
  const bool from_folder = !given.model.path.empty();
  const model::Config config =
      from_folder ? formats::read_config(given.model.path) : model::catalogue_config(given.model.id);
  train::Settings settings = train::plan_settings(given, config.family);
  const bool read =
      read_data == ReadData::yes && from_folder && !settings.data.path.empty() && !model::is_planning_only(config);
  train::DataFacts facts;
  std::map<int, std::int64_t> lengths;
  double tokens = 0, loss_tokens = 0;
  std::string basis;
  if (read) {
    const auto tokenizer = train::load_tokenizer_of(settings.model);
    const data::TokenizedDataset dataset = data::open_dataset(settings.data, *tokenizer, stop);
    train::set_steps_from_epochs(settings, dataset.train);
    facts = train::data_facts(settings, config, dataset, *tokenizer);
    for (size_t i = 0; i < dataset.train.size(); ++i) {
      const data::ExampleSize size = dataset.train.size_of(i);
      ++lengths[size.tokens];
      tokens += size.tokens, loss_tokens += size.loss_tokens;
    }
    basis = "row lengths measured in " + settings.data.path.filename().string() + ": largest micro-batch " +
            std::to_string(facts.largest.tokens) + " tokens";
  } else {
    facts = full_facts(settings, config);
    basis = "every row taken as data.max_len = " + std::to_string(settings.data.max_len) +
            " tokens (the data was not read)";
  }
  Prediction p = predict_shape(settings, facts);
  p.basis = read ? Basis::exact : Basis::bound;
  p.lengths.assign(lengths.begin(), lengths.end());
  if (tokens > 0) p.loss_share = loss_tokens / tokens;
  p.trainable = train::trainable(settings, config);
  if (settings.epochs <= 0)
    p.steps = settings.rate.steps;
  else if (read_data == ReadData::yes)
    p.steps = training_steps(given, stop);
  p.sources = {
      "shapes: " + (from_folder ? (given.model.path / "config.json").string() : "catalogue entry " + config.id), basis,
      "formulas: core/plan, held against the engine's measured ledger by its tests"};
  if (model::is_planning_only(config))
    p.notes.push_back(
        {.id = "PLANNING-ONLY",
         .severity = Severity::warning,
         .message = "the engine does not run this model; the prediction applies its formulas to the shapes",
         .file = config.id,
         .found = config.hf_model_type,
         .expected = "a Gemma model, to run it here"});
  return p;
}

Prediction predict(const experiment::Experiment& experiment, ReadData read_data, const plan::PlanContext& context,
                   std::stop_token stop) {
  Prediction p = predict(experiment, read_data, std::move(stop));
  if (experiment.config().kind != experiment::Kind::train) return p;
  try {
    plan::Request request = plan_request(experiment, context);
    if (!p.lengths.empty()) {
      request.lengths.histogram = p.lengths;
      request.lengths.packed_rows = plan::pack_count(p.lengths, request.lengths.max_len);
    }
    request.train.loss_share = p.loss_share;
    if (p.steps) request.train.steps = *p.steps;
    p.plan = plan::predict(request);
    p.plan->memory = device_memory(p);
    p.sources.push_back("rates: " + request.efficiencies.matmul.source);
  } catch (const Error& error) {
    Problem note = error.problem();
    note.severity = Severity::warning;
    note.message = "the time is not predicted: " + note.message;
    p.notes.push_back(std::move(note));
  }
  return p;
}

plan::InferenceModel inference_model(const train::ModelSettings& settings) {
  return {.weights = settings.weights, .threads = train::thread_count(settings.threads)};
}

plan::DeviceMemory device_memory(const Prediction& p) {
  plan::DeviceMemory memory{.capacity = p.capacity,
                            .at_peak = p.at_peak,
                            .category_peaks = p.at_peak,
                            .peak_instant = p.peak_instant,
                            .buffers = {},
                            .total = {}};
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    if (const Bytes b = p.at_peak[category]; b.value > 0)
      memory.buffers.push_back({std::string(to_string(category)), category, b, b, "the engine's own formulas"});
  }
  std::stable_sort(memory.buffers.begin(), memory.buffers.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  const auto total = static_cast<double>(p.at_peak.total().value);
  std::string sources;
  for (const std::string& s : p.sources) sources += (sources.empty() ? "" : "; ") + s;
  memory.total = {.value = total,
                  .low = p.basis == Basis::exact ? total : 0,
                  .high = total,
                  .origin = plan::Origin::measured,
                  .formula = "the engine's own formulas",
                  .inputs = {},
                  .source = sources};
  return memory;
}

std::vector<std::string> device_lines(const Prediction& p) {
  std::vector<std::string> lines;
  if (p.devices.size() < 2) return lines;
  for (size_t d = 0; d < p.devices.size(); ++d) {
    const Ledger& ledger = p.devices[d].at_peak;
    const std::vector<int> at = mesh::coordinate(p.mesh, static_cast<int>(d));
    std::string place;
    for (size_t a = 0; a < at.size(); ++a)
      place += (place.empty() ? "" : ", ") + p.mesh.axes[a].name + " " + std::to_string(at[a]);
    std::vector<std::pair<Bytes, std::string>> parts;
    for (const MemoryCategory category : all_values<MemoryCategory>())
      if (ledger[category].value > 0) parts.emplace_back(ledger[category], std::string(to_string(category)));
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text = "device " + std::to_string(d) + " (" + place + "): " + to_text(ledger.total());
    for (size_t i = 0; i < std::min<size_t>(3, parts.size()); ++i)
      text += (i == 0 ? ", of which " : ", ") + parts[i].second + " " + to_text(parts[i].first);
    lines.push_back(std::move(text));
  }
  return lines;
}

Json ledger_json(const Ledger& ledger) {
  Json memory = Json::object();
  for (const MemoryCategory category : all_values<MemoryCategory>())
    memory[std::string(to_string(category))] = ledger[category].value;
  memory["total"] = ledger.total().value;
  return memory;
}

Json predicted_json(const Prediction& p) {
  Json memory = ledger_json(p.at_peak);
  if (p.devices.size() > 1) {
    memory["devices"] = Json::array();
    for (const DevicePrediction& d : p.devices) memory["devices"].push_back(ledger_json(d.at_peak));
  }
  return {{"capacity_bytes", p.capacity.value},
          {"memory", memory},
          {"peak_instant", p.peak_instant},
          {"sources", p.sources}};
}

}  // namespace mw::planning
