// SPDX-License-Identifier: GPL-3.0-or-later
// Mistakes that a sharded engine could make, made in a Cluster of several devices: for tests of what should find them.
#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/distributed/mesh_cluster.h"

namespace mw::engine {

struct ClusterFaults {
  using Node = MeshCluster::Node;
  static MeshCluster& many(Cluster& cluster) { return dynamic_cast<MeshCluster&>(cluster); }

  static size_t trained(const Cluster& cluster, const std::string& tensor) {
    const auto all = cluster.trained();
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == tensor; });
    if (at == all.end()) throw std::invalid_argument(tensor);
    return static_cast<size_t>(at - all.begin());
  }

  // The optimizers of all devices but the first update a copy of the tensor. The copies have to outlive the cluster.
  using Copies = std::vector<std::vector<float>>;
  static std::shared_ptr<Copies> update_on_one_device(Cluster& cluster, const std::string& tensor,
                                                      const options::AdamWOptions& options) {
    auto copies = std::make_shared<Copies>();
    const size_t index = trained(cluster, tensor);
    for (auto& node : many(cluster).nodes) {
      const std::span<const TrainableTensor> all = node->shards->parameters();
      std::vector<TrainableTensor> parameters(all.begin(), all.end());
      std::span<float>& value = parameters[index].value;
      copies->emplace_back(value.begin(), value.end());
      if (node != many(cluster).nodes.front()) value = copies->back();
      node->optimizer = std::make_unique<AdamW>(node->device, parameters, options);
    }
    return copies;
  }

  // Between two steps: every device takes the moments of the next one.
  static void exchange_moments(Cluster& cluster, const std::string& tensor) {
    const size_t index = trained(cluster, tensor);
    for (const Cluster::Part part : {Cluster::Part::first_moment, Cluster::Part::second_moment}) {
      std::vector<std::span<float>> moments;
      for (auto& node : many(cluster).nodes) moments.push_back(MeshCluster::values(*node, index, part));
      for (size_t d = 0; d + 1 < moments.size(); ++d)
        std::swap_ranges(moments[d].begin(), moments[d].end(), moments[d + 1].begin());
    }
  }

  // Every device, or that one, keeps its own part of a gradient's sum only.
  static void leave_sum_out(Cluster& cluster, const std::string& tensor, int device = -1) {
    change_copies(cluster, tensor, device, [](mesh::DeviceCopies& copies, int d) {
      std::erase_if(copies.terms, [d](const mesh::CopySource& term) { return term.device != d; });
    });
  }
  // The device gathers what a peer stores once more, or not at all.
  static void read_weight_twice(Cluster& cluster, const std::string& tensor, int device) {
    change_copies(cluster, tensor, device,
                  [](mesh::DeviceCopies& copies, int d) { copies.sources.push_back(*peer_in(copies.sources, d)); });
  }
  static void leave_read_out(Cluster& cluster, const std::string& tensor, int device) {
    change_copies(cluster, tensor, device,
                  [](mesh::DeviceCopies& copies, int d) { copies.sources.erase(peer_in(copies.sources, d)); });
  }

 private:
  static std::vector<mesh::CopySource>::iterator peer_in(std::vector<mesh::CopySource>& sources, int device) {
    const auto at =
        std::find_if(sources.begin(), sources.end(), [&](const mesh::CopySource& s) { return s.device != device; });
    if (at == sources.end()) throw std::invalid_argument("nothing is read of a peer");
    return at;
  }

  // device -1: on all.
  template <class Change>
  static void change_copies(Cluster& cluster, const std::string& tensor, int device, const Change& change) {
    MeshCluster& all = many(cluster);
    for (int d = 0; d < all.devices(); ++d) {
      if (device >= 0 && d != device) continue;
      std::vector<DeviceShards::Held>& held = all.node(d).shards->held_;
      const auto at = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h.placed->name == tensor; });
      if (at == held.end()) throw std::invalid_argument(tensor);
      static std::deque<mesh::DeviceCopies> changed;  // outlives the cluster
      change(changed.emplace_back(*at->copies), d);
      at->copies = &changed.back();
    }
  }
};

}  // namespace mw::engine
