// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/collectives/engine_step.h"

#include <algorithm>

#include "core/base/buffer_sizes.h"
#include "core/mesh/collectives/reshard_plan.h"

namespace mw::mesh {
namespace {

bool same_call(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.axis == b.axis && a.group == b.group && a.phase == b.phase && a.cause == b.cause &&
         a.layer == b.layer && a.tensor == b.tensor && a.full == b.full && a.moved == b.moved;
}

}  // namespace

StepShape engine_step(const EngineStep& step) {
  return {.work = step.work,
          .row_norms = 1,
          .recompute = step.recompute,
          .residual = ResidualLayout::whole,
          .gradient_sum = GradientSum::each_micro_batch,
          .weight_bytes = step.weight_bytes,
          .adapter_bytes = 4,
          .activation_bytes = 4,
          .gradient_bytes = 4,
          .logit_bytes = 4};
}

ShardingRules engine_rules(ShardingRules rules) {
  rules.adapters = AdapterForm::separate;
  return rules;
}

BatchSlice batch_slice(const Mesh& mesh, int device) {
  const std::vector<std::string> axes = StepShape{}.batch_axes;
  const std::vector<int> at = coordinate(mesh, device);
  BatchSlice share;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (std::find(axes.begin(), axes.end(), mesh.axes[a].name) == axes.end()) continue;
    const std::int64_t size = std::max(1, mesh.axes[a].size);
    share.index = share.index * size + at[a];
    share.ways *= size;
  }
  return share;
}

IndexInterval batch_rows(const BatchSlice& share, std::int64_t rows) {
  const std::int64_t each = (rows + share.ways - 1) / share.ways;
  return {std::min(share.index * each, rows), std::min((share.index + 1) * each, rows)};
}

IndexInterval reduction_range(std::int64_t elements, size_t devices, size_t index) {
  return batch_rows({.index = static_cast<std::int64_t>(index), .ways = static_cast<std::int64_t>(devices)}, elements);
}

DeviceTokens count_device_tokens(std::int64_t tokens, std::int64_t loss_tokens, int loss_chunk,
                                 std::int64_t logit_row_bytes) {
  if (loss_tokens == 0) return {};
  return {.tokens = tokens,
          .loss_tokens = loss_tokens,
          .loss_rows = sizes::loss_rows(loss_tokens, loss_chunk, logit_row_bytes)};
}

struct DeviceCollectives::Impl {
  Impl(const model::Config& c, const Mesh& m, const Placement& p, const EngineStep& s)
      : config(c), mesh(m), placement(p), step(s), plans(c, p, m) {}
  const model::Config& config;
  const Mesh& mesh;
  const Placement& placement;
  const EngineStep step;
  const ReshardPlans plans;
};

DeviceCollectives::DeviceCollectives(const model::Config& config, const Mesh& mesh, const Placement& placement,
                                     const EngineStep& step)
    : impl_(std::make_unique<Impl>(config, mesh, placement, step)) {}
DeviceCollectives::~DeviceCollectives() = default;

std::int64_t DeviceCollectives::vocab_rows(int device) const {
  return impl_->plans.local(device).config.vocab;
}

std::vector<Collective> DeviceCollectives::of(int device, std::span<const DeviceTokens> micro_batches) const {
  std::vector<Collective> all;
  StepShape shape = engine_step(impl_->step);
  for (const DeviceTokens& own : micro_batches) {
    shape.device_tokens = own.tokens;
    shape.device_logits = own.loss_tokens;
    shape.logits_at_once = own.loss_rows;
    std::vector<Collective> list =
        collectives(impl_->config, impl_->mesh, impl_->placement, shape, &impl_->plans, device);
    shape.row_norms = 0;  // the first micro-batch computes them
    if (all.empty()) {
      all = std::move(list);
      continue;
    }
    // Lists of two micro-batches differ in sizes only: compare entries at the same index first.
    for (size_t i = 0; i < list.size(); ++i) {
      Collective* at = i < all.size() && same_call(all[i], list[i]) ? &all[i] : nullptr;
      if (!at)
        if (const auto found =
                std::find_if(all.begin(), all.end(), [&](const auto& c) { return same_call(c, list[i]); });
            found != all.end())
          at = &*found;
      if (at)
        at->calls += list[i].calls;
      else
        all.push_back(std::move(list[i]));
    }
  }
  return all;
}

}  // namespace mw::mesh
