// SPDX-License-Identifier: Apache-2.0
// Tensors of a Cluster on several devices as wholes. Between steps, on the thread that drives it.
#include <cstring>

#include "core/engine/distributed/cluster_mesh.h"

namespace mw::engine {

std::span<float> Cluster::Many::values(const Node& node, size_t index, Part part) {
  return values_of(node.shards->parameters()[index], node.optimizer.get(), index, part);
}
void Cluster::Many::read(size_t index, Part part, std::span<float> out) const {
  for (const auto& node : nodes)
    if (node->shards->counts(index)) node->shards->copy_out(index, values(*node, index, part), out);
}
int Cluster::Many::odd_copies(size_t index, Part part) const {
  std::vector<float> whole(static_cast<size_t>(trained[index].size));
  read(index, part, whole);
  int odd = 0;
  for (const auto& node : nodes) {
    const std::span<float> stored = values(*node, index, part);
    std::vector<float> expected(stored.begin(), stored.end());  // padding stays as it is
    node->shards->copy_in(index, whole, expected);
    odd += std::memcmp(expected.data(), stored.data(), stored.size_bytes()) != 0;
  }
  return odd;
}
void Cluster::Many::write(size_t index, Part part, std::span<const float> from) {
  for (const auto& node : nodes) node->shards->copy_in(index, from, values(*node, index, part));
}
void Cluster::Many::values_written() {
  each([](Node& node) { node.shards->values_changed(); });
}
void Cluster::Many::read_weight(size_t index, std::span<float> out) {
  for (const auto& node : nodes)
    if (node->shards->counts_weight(index)) node->shards->read_weight(index, out);
}

}  // namespace mw::engine
