// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/memory.h"

#include <algorithm>
#include <map>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/engine/layout/weights_layout.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/plan/prediction/device_memory.h"

namespace mw::plan {
namespace {

using engine::Allocation;

constexpr std::int64_t kMostTokens = 1 << 30;  // keeps every product of sizes inside 63 bits

void check_rows(std::int64_t rows, std::int64_t len) {
  if (rows < 1 || len < 1 || rows > kMostTokens / len)
    throw Error("PLAN-SIZE", "the batch size is out of range",
                {.found = counted(rows, "row") + " of " + counted(len, "token"),
                 .expected = "1 to " + std::to_string(kMostTokens) + " tokens"});
}

void check(const TrainShape& shape) {
  const EngineRows& e = shape.evaluation;
  if (shape.tokens < 0 || shape.tokens > kMostTokens || shape.loss_tokens < 0 || shape.longest < 0 ||
      shape.threads < 1 || shape.generate_tokens < 0 || shape.prompt_tokens < 0 || e.tokens < 0 ||
      e.tokens > kMostTokens || e.loss_tokens < 0 || e.longest < 0)
    throw Error("PLAN-SIZE", "the size of the micro-batch is out of range",
                {.found = counted(shape.tokens, "token") + ", " + counted(shape.threads, "thread"),
                 .expected = "0 to " + std::to_string(kMostTokens) + " tokens, at least 1 thread"});
}

engine::ModelShape model_shape(const model::Config& config, const InferenceModel& model) {
  engine::ModelShape shape(config, {model.weights, engine::NetworkUse::inference});
  shape.set_adapters(model.lora);
  return shape;
}

engine::ModelShape model_shape(const model::Config& config, const TrainShape& shape, const mesh::LocalConfig* local) {
  engine::ModelShape model(config, {shape.weights, engine::NetworkUse::training}, local);
  model.full = shape.method == model::TrainMethod::full;
  if (!model.full) model.set_adapters(shape.lora);
  return model;
}

// Follows the buffers of a device through the phases of a run: which are kept, replaced or released, and what is held
// at the peak.
class BufferTimeline {
 public:
  // `lasting`: held during the whole run.
  BufferTimeline(const engine::ModelShape& model, const std::vector<Allocation>& lasting) : model_(model) {
    for (const Allocation& allocation : lasting) allocate(allocation, kNoPhase);
  }

  void run(const engine::PhaseBuffers& phase, const char* instant) {
    for (const Allocation& own : phase.own) allocate(own, instant);
    if (step_.tokens == 0 || !step_.holds(phase.step)) {
      for (const Allocation& old : activations_) release(old);
      step_ = phase.step;
      activations_ = engine::lay_out_step(model_, step_).allocations;
      for (const Allocation& activations : activations_) allocate(activations, instant);
    }
    keep(phase.kept, instant);
    note_peak(instant);
    for (const Allocation& own : phase.own) release(own);
  }

  void forget_peaks() { plan_ = {}; }  // of earlier phases, but not what they leave
  MemoryPlan plan() {
    note_peak(kNoPhase);  // where no phase ran
    return plan_;
  }

 private:
  static constexpr const char* kNoPhase = "weights and what is learned";

  // Logits only grow here: micro-batches differ in size, and the engine keeps the largest while it is not four times
  // too large.
  void keep(const std::vector<Allocation>& wanted, const char* instant) {
    std::map<std::string_view, int> seen;
    for (const Allocation& allocation : wanted) {
      Allocation& kept = kept_[{allocation.label, seen[allocation.label]++}];
      if (kept.bytes >= allocation.bytes) continue;
      release(kept);
      kept = allocation;
      allocate(kept, instant);
    }
  }

  void release(const Allocation& allocation) { held_[allocation.category] -= allocation.pages(); }
  void allocate(const Allocation& allocation, const char* instant) {
    held_[allocation.category] += allocation.pages();
    note_peak(instant);
  }
  void note_peak(const char* instant) {
    for (size_t c = 0; c < kMemoryCategories; ++c)
      plan_.category_peaks.bytes[c] = std::max(plan_.category_peaks.bytes[c], held_.bytes[c]);
    if (held_.total() > plan_.at_peak.total()) plan_.at_peak = held_, plan_.peak_instant = instant;
  }

  const engine::ModelShape& model_;
  Ledger held_;
  engine::ActivationShape step_;
  std::vector<Allocation> activations_;                          // of step_
  std::map<std::pair<std::string_view, int>, Allocation> kept_;  // by label, and number of this label
  MemoryPlan plan_;
};

MemoryPlan predict_phase(const engine::ModelShape& model, const engine::PhaseBuffers& phase, const char* instant) {
  BufferTimeline buffers(model, engine::model_allocations(model, engine::whole_tensors(model)));
  buffers.run(phase, instant);
  return buffers.plan();
}

// The peak of a run over its steps, evaluation and sampling.
MemoryPlan predict_run(const engine::ModelShape& model, const TrainShape& shape,
                       std::span<const engine::ShardShape> tensors) {
  BufferTimeline buffers(model, engine::model_allocations(model, tensors));
  const EngineRows& held_out = shape.evaluation;
  const engine::ActivationShape step{.tokens = shape.tokens,
                                     .lowest = model.lowest_trained_layer(),
                                     .backward = true,
                                     .full = model.full,
                                     .dropout = shape.dropout,
                                     .remat = shape.remat};
  const auto train = [&] {
    if (shape.loss_tokens > 0)
      buffers.run(engine::step_phase(model, {step, shape.loss_tokens, shape.loss_chunk, shape.longest}, shape.threads),
                  "logits of a training step");
  };
  const auto evaluate = [&] {
    if (held_out.loss_tokens > 0)
      buffers.run(engine::step_phase(model,
                                     {engine::forward_shape(model, held_out.tokens), held_out.loss_tokens,
                                      shape.loss_chunk, held_out.longest},
                                     shape.threads),
                  "evaluation of held-out rows");
  };
  const auto sample = [&] {  // a prompt at a time
    const int prompt = std::max(1, shape.prompt_tokens);
    if (shape.generate_tokens > 0)
      buffers.run(engine::generation_phase(model, {.prompt = prompt, .new_tokens = shape.generate_tokens - prompt},
                                           shape.threads),
                  "start of sampling");
  };
  train();
  evaluate();
  sample();
  buffers.forget_peaks();
  train();
  sample();
  train();
  evaluate();
  sample();
  return buffers.plan();
}

}  // namespace

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model,
                          const engine::GenerationWork& work) {
  check_rows(work.rows, work.prompt);
  const engine::ModelShape shape = model_shape(config, model);
  return predict_phase(shape, engine::generation_phase(shape, work, model.threads), "decoding");
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const engine::ServingWork& work) {
  const engine::ModelShape shape = model_shape(config, model);
  return predict_phase(shape, engine::serving_phase(shape, work, model.threads), "step of a server");
}

MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const engine::ScoringWork& work) {
  check_rows(work.rows, work.len);
  const engine::ModelShape shape = model_shape(config, model);
  return predict_phase(shape, engine::scoring_phase(shape, work, model.threads), "the last rows of logits");
}

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape) {
  check(shape);
  const engine::ModelShape model = model_shape(config, shape, nullptr);
  return predict_run(model, shape, engine::whole_tensors(model));
}

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const mesh::ReshardPlans& plans,
                                int device) {
  check(shape);
  TrainShape own = shape;
  if (mesh::batch_slice(plans.mesh(), device).index > 0) own.generate_tokens = 0;  // one prompt at a time
  const engine::ModelShape model = model_shape(config, own, &plans.local(device));
  std::vector<engine::ShardShape> shards = engine::whole_tensors(model);
  const mesh::Placement& placed = plans.placement();
  const size_t weights = placed.tensors.size(), in_shards = weights + placed.adapters.size();
  for (size_t i = 0; i < in_shards; ++i) {
    const mesh::PlacedTensor& tensor = i < weights ? placed.tensors[i] : placed.adapters[i - weights];
    const mesh::ReshardPlan& plan = plans.of(tensor);
    shards[i].part = engine::part_of(tensor);
    shards[i].is_embedding = tensor.role == model::Role::embed;
    shards[i].direct = plan.direct;
    shards[i].sums = plan.sums;
    shards[i].stored = plan.stored[static_cast<size_t>(device)].elements();
  }
  return predict_run(model, own, shards);
}

namespace {

bool is_bound(const Request& r) {
  return r.work == Work::train && r.engine->read.empty();
}

// The rows of a share of the batch: as read, else each as long as it may be.
EngineRows rows_of(const Request& r, const std::vector<EngineRows>& read, mesh::BatchSlice share, std::int64_t batch) {
  if (!is_bound(r)) return read.empty() ? EngineRows() : read.at(static_cast<size_t>(share.index));
  const mesh::IndexInterval range = mesh::batch_rows(share, batch);
  const std::int64_t rows = range.end - range.begin, tokens = rows * r.lengths.max_len;
  return {tokens, tokens, rows > 0 ? r.lengths.max_len : 0, tokens};
}

TrainShape shape_of(const Request& r, mesh::BatchSlice share) {
  const EngineWork& e = *r.engine;
  const EngineRows rows = rows_of(r, e.rows, share, r.train.batch);
  return {.method = r.method,
          .weights = weight_type(r.weights),
          .lora = e.lora,
          .dropout = r.method == model::TrainMethod::lora && r.lora.dropout > 0,
          .remat = r.train.remat,
          .tokens = rows.tokens,
          .loss_tokens = rows.loss_tokens,
          .longest = std::max(rows.longest, 1),
          .loss_chunk = r.train.loss_chunk,
          .threads = r.mesh.devices() > 1 ? 1 : e.threads,
          .evaluation = rows_of(r, e.evaluation, share, std::min(r.train.batch, e.eval_rows)),
          .prompt_tokens = e.prompt_tokens,
          .generate_tokens = e.generate_tokens};
}

MemoryPlan inference(const Request& r) {
  const InferenceModel model{weight_type(r.weights), r.engine->lora, r.engine->threads};
  if (r.work == Work::serve) return predict_memory(r.model, model, r.engine->server);
  const ForwardWork& f = r.forward;
  if (r.work == Work::forward)
    return predict_memory(r.model, model, engine::ScoringWork{f.batch, f.len, f.chunk, f.top_k});
  return predict_memory(r.model, model,
                        engine::GenerationWork{r.rollout.batch, r.rollout.prompt, r.rollout.new_tokens});
}

std::vector<DeviceUse> devices_of(const Request& r) {
  std::vector<DeviceUse> all;
  const auto add = [&](MemoryPlan plan, const EngineRows& rows) {
    all.push_back({plan.at_peak, plan.category_peaks, std::move(plan.peak_instant), rows});
  };
  const auto rows = [&](mesh::BatchSlice share) { return rows_of(r, r.engine->rows, share, r.train.batch); };
  if (r.work != Work::train) {
    add(inference(r), {});
  } else if (r.mesh.devices() == 1) {
    add(predict_train_memory(r.model, shape_of(r, {0, 1})), rows({0, 1}));
  } else {
    const mesh::Placement placement =
        mesh::place(model::TensorInventory(r.model), r.mesh, r.rules, r.engine->lora, mesh::ShardingUse::training);
    for (const Problem& p : placement.problems)
      if (p.severity == Severity::error) throw Error(p);
    const mesh::ReshardPlans plans(r.model, placement, r.mesh);
    for (int d = 0; d < r.mesh.devices(); ++d) {
      const mesh::BatchSlice share = mesh::batch_slice(r.mesh, d);
      add(predict_train_memory(r.model, shape_of(r, share), plans, d), rows(share));
    }
  }
  return all;
}

std::string source_of(const Request& r) {
  const std::string formulas = "formulas: core/plan, held against the engine's measured ledger by its tests";
  if (r.work != Work::train) return formulas;
  return (is_bound(r)
              ? "every row taken as data.max_len = " + counted(r.lengths.max_len, "token") + " (the data was not read)"
              : r.engine->read) +
         "; " + formulas;
}

}  // namespace

DeviceMemory engine_memory(const Request& r) {
  constexpr const char* kFormula = "the engine's own formulas";
  DeviceMemory memory;
  memory.capacity = device_capacity(r);
  memory.devices = devices_of(r);
  memory.is_bound = is_bound(r);
  const DeviceUse& fullest =
      *std::max_element(memory.devices.begin(), memory.devices.end(),
                        [](const auto& a, const auto& b) { return a.at_peak.total() < b.at_peak.total(); });
  memory.at_peak = fullest.at_peak;
  memory.category_peaks = fullest.category_peaks;
  memory.peak_instant = fullest.peak_instant;
  for (const MemoryCategory category : all_values<MemoryCategory>())
    if (const Bytes b = memory.at_peak[category]; b.value > 0)
      memory.buffers.push_back({std::string(to_string(category)), category, b, b, kFormula});
  std::stable_sort(memory.buffers.begin(), memory.buffers.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  const auto total = static_cast<double>(memory.at_peak.total().value);
  memory.total = {.value = total,
                  .low = memory.is_bound ? 0 : total,
                  .high = total,
                  .origin = Origin::measured,
                  .formula = kFormula,
                  .inputs = {},
                  .source = source_of(r)};
  return memory;
}

}  // namespace mw::plan
