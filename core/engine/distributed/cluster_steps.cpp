// SPDX-License-Identifier: Apache-2.0
// Steps of a Cluster on several devices, and what they took.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/engine/distributed/cluster_mesh.h"
#include "core/engine/transformer/checks.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {

void Cluster::Many::zero_gradients() {
  each([](Node& node) { node.shards->zero_gradients(); });
}

Cluster::Many::Rows Cluster::Many::rows_of(int device, int all) const {
  const mesh::Range r = mesh::batch_rows(mesh::batch_slice(options.mesh, device), all);
  return {static_cast<int>(r.begin), static_cast<int>(r.end - r.begin)};
}
// One device of those that have the same rows.
bool Cluster::Many::speaks(int device) const {
  const std::vector<int> at = mesh::coordinate(options.mesh, device);
  for (int a = 0; a < form.axes(); ++a)
    if (form.model() >> a & 1 && at[static_cast<size_t>(a)] != 0) return false;
  return true;
}

template <class Run>
LossSum Cluster::Many::step(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop, const Run& run) {
  check_batch(batch, config.vocab, config.max_positions);
  std::vector<LossSum> sums(nodes.size());
  each(
      [&](Node& node) {
        const int d = node.part.port().device();
        const Rows rows = rows_of(d, batch.rows);
        const auto part = [&](std::span<const int> all) {
          return all.subspan(static_cast<size_t>(rows.first) * static_cast<size_t>(batch.len),
                             static_cast<size_t>(rows.count) * static_cast<size_t>(batch.len));
        };
        StepOptions own = whole;
        own.first_row += rows.first;
        sums[static_cast<size_t>(d)] = run(*node.network,
                                           TokenBatch{rows.count, batch.len, part(batch.ids), part(batch.targets),
                                                      part(batch.positions), part(batch.segments)},
                                           own);
      },
      std::move(stop));
  LossSum sum;
  for (int d = 0; d < devices(); ++d)
    if (speaks(d)) sum.sum += sums[static_cast<size_t>(d)].sum, sum.tokens += sums[static_cast<size_t>(d)].tokens;
  return sum;
}

LossSum Cluster::Many::forward_backward(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) {
  return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
    return network.forward_backward(rows, own);
  });
}
LossSum Cluster::Many::evaluate(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) {
  return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
    return network.evaluate(rows, own);
  });
}

double Cluster::Many::gradient_norm() {
  std::vector<double> sums(trained.size() * nodes.size());
  each([&](Node& node) {
    for (size_t i = 0; i < trained.size(); ++i)
      sums[i * nodes.size() + static_cast<size_t>(node.part.port().device())] = node.shards->square_sum(i);
  });
  double sum = 0;
  for (const double one : sums) sum += one;
  return std::sqrt(sum);
}

void Cluster::Many::update(std::int64_t t, float learning_rate, float clip, double norm) {
  each([&](Node& node) {
    node.optimizer->step(t, learning_rate, clip, norm);
    node.shards->values_changed();
  });
}

// A stop ends all rows with what they have, wherever the devices were.
std::vector<std::vector<int>> Cluster::Many::generate_batch(std::span<const std::vector<int>> prompts,
                                                            const SampleOptions& sample, std::stop_token stop) {
  std::vector<std::vector<int>> out(prompts.size());
  try {
    each(
        [&](Node& node) {
          const int d = node.part.port().device();
          const Rows rows = rows_of(d, static_cast<int>(prompts.size()));
          SampleOptions own = sample;
          own.first_row += rows.first;
          Sampler::OnToken keep;
          if (speaks(d))
            keep = [&](int row, int id) {
              out[static_cast<size_t>(rows.first + row)].push_back(id);
              return true;
            };
          Sampler(*node.network)
              .generate_batch(prompts.subspan(static_cast<size_t>(rows.first), static_cast<size_t>(rows.count)), own,
                              {}, keep);
        },
        stop);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) throw;
  }
  return out;
}

// --- What a step took ---

const std::vector<Traffic>& Cluster::Many::traffic(int index) const {
  return nodes.at(static_cast<size_t>(index))->part.port().traffic();
}
void Cluster::Many::clear_traffic() {
  for (const auto& node : nodes) node->part.port().clear_traffic();
}
std::vector<KernelTime> Cluster::Many::take_profile() {
  std::vector<KernelTime> sums;
  for (const auto& node : nodes)
    for (const KernelTime& k : node->network->take_profile()) {
      const auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.name == k.name; });
      if (found == sums.end())
        sums.push_back(k);
      else
        found->seconds += k.seconds, found->calls += k.calls, found->flops += k.flops;
    }
  return sums;
}
void Cluster::Many::release_step_memory() {
  for (const auto& node : nodes) node->network->release_step_memory();
}

}  // namespace mw::engine
