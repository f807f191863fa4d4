// SPDX-License-Identifier: Apache-2.0
// Which elements of a tensor a device of a mesh stores and which it computes with, as rows and columns of the matrix in
// the checkpoint, and what must be copied between the two. Plain values; any thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/mesh/collectives/local_config.h"
#include "core/mesh/collectives/stages.h"

namespace mw::engine {

// All rows in `rows` at all columns in `cols`: ascending ranges that do not touch. A region is stored row by row
// without gaps. A vector is one row; the matrices of experts are stacked.
struct IndexRegion {
  std::vector<mesh::Range> rows, cols;
  std::int64_t height() const;
  std::int64_t width() const;
  std::int64_t elements() const { return height() * width(); }
  bool operator==(const IndexRegion&) const = default;
};

// The region that the device stores: mesh::piece() in the order of the checkpoint. Empty if uneven pieces ran out.
IndexRegion stored_region(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh, int device);
// The region that it computes with, without the padding of uneven parts.
IndexRegion working_region(const mesh::LocalSlice& slice);

// `count` rows or columns, by their positions in two regions.
struct IndexRange {
  std::int64_t from = 0, to = 0, count = 0;
  bool operator==(const IndexRange&) const = default;
};
// All row ranges at all column ranges.
struct RegionOverlap {
  std::vector<IndexRange> rows, cols;
  bool empty() const { return rows.empty() || cols.empty(); }
  std::int64_t elements() const;
};
RegionOverlap overlap(const IndexRegion& from, const IndexRegion& to);

// The part of a region that is copied from a device.
struct CopySource {
  int device = 0;
  std::size_t stage = 0;  // under which it is counted, mesh::stage_of()
  RegionOverlap at;       // from the stored to the working region
};
// The sources of all elements that a device computes with: for each piece the nearest holder, that is the one with the
// last stage, the device itself if possible. stored: by device.
std::vector<CopySource> sources(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh,
                                std::span<const mesh::Stage> stages, const std::vector<IndexRegion>& stored,
                                const IndexRegion& working, int device);

struct Replica {
  int device = 0;
  std::size_t stage = 0;
};

// How the elements of one tensor are copied between storage and computation, on every device of the mesh.
struct ReshardPlan {
  std::int64_t rows = 0, cols = 0;               // of the tensor in the files
  std::vector<IndexRegion> stored, working;      // by device
  std::vector<std::vector<CopySource>> sources;  // of what the device computes with; empty where `direct`
  std::vector<std::vector<CopySource>> terms;    // of its stored gradient: from working gradients, in order of devices
  std::vector<std::vector<Replica>>
      replicas;              // devices that store the same and share its sums, ascending, itself included
  std::vector<bool> counts;  // the first device with its piece
  bool direct = false;       // every device computes with what it stores
  bool sums = false;         // some stored gradient is a sum over devices
  std::vector<mesh::Stage> gather_stages, sum_stages;  // under which reads are counted
};
// slices: by device. Tensors with the same layout share a plan.
class ReshardPlans {
 public:
  ReshardPlans(const mesh::ComputeSharding& form, const mesh::Mesh& mesh) : form_(form), mesh_(mesh) {}
  std::shared_ptr<const ReshardPlan> of(const mesh::PlacedTensor& tensor, const std::vector<mesh::LocalSlice>& slices);

 private:
  const mesh::ComputeSharding& form_;
  const mesh::Mesh& mesh_;
  std::map<std::string, std::shared_ptr<const ReshardPlan>> known_;
};

}  // namespace mw::engine
