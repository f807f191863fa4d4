// SPDX-License-Identifier: Apache-2.0
#include "core/train/traffic.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace mw::train {

TrafficPlan::TrafficPlan(const engine::Cluster& cluster, const Settings& s)
    : cluster_(cluster),
      loss_chunk_(s.loss_chunk),
      step_{.work = s.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
            .weight_bytes = s.model.weights == model::WeightType::f32 ? 4 : 2,
            .recompute = s.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers} {
  if (cluster.devices() < 2) return;
  planned_.emplace(cluster.config(), cluster.mesh(), cluster.placement(), step_);
  // Streamed logits are bf16 (core/engine/transformer/loss.cpp).
  const bool streams = s.model.weights == model::WeightType::bf16 && s.method == model::TrainMethod::lora;
  for (int d = 0; d < cluster.devices(); ++d) logit_row_bytes_.push_back(planned_->vocab_rows(d) * (streams ? 2 : 4));
}

std::vector<mesh::DeviceTokens> TrafficPlan::own(std::span<const data::Batch> micro, int device) const {
  const mesh::BatchSlice share = mesh::batch_slice(cluster_.mesh(), device);
  std::vector<mesh::DeviceTokens> all;
  for (const data::Batch& batch : micro) {
    const mesh::IndexInterval rows = mesh::batch_rows(share, batch.rows);
    std::int64_t tokens = 0, with_loss = 0;
    for (std::int64_t i = rows.begin * batch.len; i < rows.end * batch.len; ++i) {
      const auto at = static_cast<size_t>(i);
      if (batch.segments[at] < 0) continue;
      ++tokens;
      with_loss += batch.targets[at] >= 0;
    }
    all.push_back(
        mesh::count_device_tokens(tokens, with_loss, loss_chunk_, logit_row_bytes_.at(static_cast<size_t>(device))));
  }
  return all;
}

std::vector<mesh::Collective> TrafficPlan::collectives(std::span<const mesh::DeviceTokens> own, int device) const {
  return planned_ ? planned_->of(device, own) : std::vector<mesh::Collective>();
}

event::StepTraffic traffic_of(const engine::Cluster& cluster, long step, const TrafficPlan& plan,
                              std::span<const data::Batch> micro) {
  event::StepTraffic out{.step = step, .entries = {}, .devices = {}};
  const int devices = cluster.devices();
  using Key = std::tuple<mesh::Phase, int, std::string, mesh::CollectiveKind, mesh::Cause>;
  std::map<Key, event::StepTraffic::Entry> entries;
  for (int d = 0; d < devices; ++d) {
    event::StepTraffic::Device& total = out.devices.emplace_back();
    std::map<Key, std::int64_t> calls;  // of this device; devices with smaller pieces make fewer calls
    for (const engine::CollectiveTraffic& t : cluster.traffic(d)) {
      const mesh::Collective& c = t.what;
      const Bytes sent = c.moved * c.calls;
      const Key key{c.phase, c.layer, c.axis, c.kind, c.cause};
      event::StepTraffic::Entry& e = entries[key];
      e.calls = std::max(e.calls, calls[key] += c.calls);
      e.bytes += sent;
      e.seconds += t.seconds / devices;
      e.waited += t.waited / devices;
      total.bytes += sent;
      total.seconds += t.seconds;
      total.waited += t.waited;
    }
    for (const mesh::Collective& c : plan.collectives(plan.own(micro, d), d)) {
      std::optional<Bytes>& planned = entries[{c.phase, c.layer, c.axis, c.kind, c.cause}].planned;
      planned = planned.value_or(Bytes(0)) + c.moved * c.calls;
    }
  }
  for (auto& [key, e] : entries) {
    const auto& [phase, layer, axis, kind, cause] = key;
    e.kind = mesh::to_string(kind);
    e.axis = axis;
    e.phase = mesh::to_string(phase);
    e.cause = mesh::to_string(cause);
    e.layer = layer;
    if (!e.planned) e.planned = Bytes(0);  // not in the plan
    out.entries.push_back(std::move(e));
  }
  return out;
}

}  // namespace mw::train
