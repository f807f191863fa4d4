// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/engine_memory.h"

#include <algorithm>

#include "core/mesh/collectives/engine_step.h"
#include "core/plan/memory/device_memory.h"
#include "core/plan/memory/memory.h"

namespace mw::plan {
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
  return (is_bound(r) ? "every row taken as data.max_len = " + std::to_string(r.lengths.max_len) +
                            " tokens (the data was not read)"
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
