// SPDX-License-Identifier: Apache-2.0
// A reshard plan says which elements of a tensor each device of a mesh stores and which it computes with, as rows and
// columns of the matrix in the checkpoint, and what must be copied between the two. The engine's virtual devices
// execute it; planner and designer count the elements that it moves. It differs from staged collectives for uneven
// pieces, whose padding is not read, and where stored pieces do not line up with those that the devices compute with.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/collectives/compute_sharding.h"
#include "core/mesh/collectives/local_config.h"

namespace mw::mesh {

// All rows in `rows` at all columns in `cols`: ascending ranges that do not touch. A region is stored row by row
// without gaps. A vector is one row; the matrices of experts are stacked.
struct IndexRegion {
  std::vector<IndexInterval> rows, cols;
  std::int64_t height() const;
  std::int64_t width() const;
  std::int64_t elements() const { return height() * width(); }
  bool operator==(const IndexRegion&) const = default;
};
// ranges: of the tensor's dimensions, as piece() and working_piece() give them.
IndexRegion region_of(const PlacedTensor& tensor, const std::vector<IndexInterval>& ranges);

// `count` rows or columns, by their positions in two regions.
struct IndexRange {
  std::int64_t from = 0, to = 0, count = 0;
};
// All row ranges at all column ranges.
struct RegionOverlap {
  std::vector<IndexRange> rows, cols;
  bool empty() const { return rows.empty() || cols.empty(); }
  std::int64_t elements() const;
};

// The part of a region that is copied from a device.
struct CopySource {
  int device = 0;
  std::size_t stage = 0;  // under which it is counted, stage_of()
  RegionOverlap at;
};
struct Replica {
  int device = 0;
  std::size_t stage = 0;
};
// The elements of a tensor that one device copies.
struct DeviceCopies {
  // From stored regions to what it computes with, all of it: each piece from the nearest holder, that is the one with
  // the last stage, the device itself if possible. Empty where the plan is direct.
  std::vector<CopySource> sources;
  // From working gradients to its stored gradient, whose terms these are, in order of devices.
  std::vector<CopySource> terms;
  // The devices that store the same and divide the sums among them, ascending, itself included; itself alone unless
  // every term is of all that it stores.
  std::vector<Replica> replicas;
};

// How the elements of one tensor are copied between storage and computation, on every device of the mesh.
struct ReshardPlan {
  // used: by device, what it computes with. The mesh must outlive the plan.
  ReshardPlan(const PlacedTensor& tensor, const ComputeSharding& form, const Mesh& on_mesh,
              std::vector<IndexRegion> used);
  // Made at the first call for the device. Different devices may call at the same time.
  const DeviceCopies& copies(int device) const;
  // The stages in which the device reads elements of its peers, in order, with `moved` as read: when it gathers the
  // tensor, and when it sums the gradient.
  std::vector<Stage> gather_reads(int device) const;
  std::vector<Stage> sum_reads(int device) const;
  bool counts(int device) const;  // the first device with its piece

  const Mesh& mesh;
  std::int64_t cols = 0;                     // of the tensor in the files
  std::vector<IndexRegion> stored, working;  // by device
  std::vector<std::int64_t> pieces;          // by device: piece_index()
  std::vector<Stage> gather_stages, sum_stages;
  AxisSet summed = 0;   // contributing()
  bool direct = false;  // every device computes with what it stores
  bool sums = false;    // some stored gradient is a sum over devices

 private:
  std::vector<CopySource> sources(int device) const;
  void find_gradient_terms(int device, DeviceCopies& out) const;
  mutable std::vector<std::optional<DeviceCopies>> copies_;  // by device
};

// The plans of a model's tensors. Thread-safe.
class ReshardPlans {
 public:
  // The arguments must outlive this object. Throws the errors of local_config().
  ReshardPlans(const model::Config& config, const Placement& placement, const Mesh& mesh);
  // Tensors with the same layout share a plan.
  const ReshardPlan& of(const PlacedTensor& tensor) const;
  const LocalConfig& local(int device) const { return locals_[static_cast<size_t>(device)]; }
  const Placement& placement() const { return placement_; }
  const Mesh& mesh() const { return mesh_; }

 private:
  const Placement& placement_;
  const Mesh& mesh_;
  const ComputeSharding form_;
  std::vector<LocalConfig> locals_;  // by device
  std::vector<int> same_as_;         // for each layer the first layer that all devices split alike
  mutable std::mutex mutex_;
  mutable std::map<std::string, ReshardPlan> known_;
};

}  // namespace mw::mesh
