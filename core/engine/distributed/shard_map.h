// SPDX-License-Identifier: Apache-2.0
// Which elements of a tensor a device of a mesh stores and which it computes with, as rows and columns of the matrix in
// the files, and what must be copied from one to the other. Plain values; any thread.
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

// Every row of `rows` at every column of `cols`: ascending runs that do not touch. It is stored row after row without
// gaps. A vector is one row; experts' matrices lie one under the other.
struct Region {
  std::vector<mesh::Range> rows, cols;
  std::int64_t height() const;
  std::int64_t width() const;
  std::int64_t elements() const { return height() * width(); }
  bool operator==(const Region&) const = default;
};

// What the device stores, as the spec says: mesh::piece() in the order of the files. Empty where uneven pieces ran out.
Region stored_region(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh, int device);
// What it computes with, without the padding of uneven parts.
Region working_region(const mesh::LocalSlice& slice);

// `count` rows or columns, by their places in the two regions.
struct Stretch {
  std::int64_t from = 0, to = 0, count = 0;
  bool operator==(const Stretch&) const = default;
};
// Every row stretch at every column stretch.
struct Overlap {
  std::vector<Stretch> rows, cols;
  bool empty() const { return rows.empty() || cols.empty(); }
  std::int64_t elements() const;
};
Overlap overlap(const Region& from, const Region& to);

// Part of a region that lies at (or comes from) a device.
struct Share {
  int device = 0;
  std::size_t stage = 0;  // in which it is counted, mesh::stage_of()
  Overlap at;             // from the stored to the working region
};
// Where a device finds all it computes with: of each piece the nearest holder, the one whose stage comes last, itself
// if it can. stored: of each device.
std::vector<Share> sources(const mesh::PlacedTensor& tensor, const mesh::Mesh& mesh,
                           std::span<const mesh::Stage> stages, const std::vector<Region>& stored,
                           const Region& working, int device);

struct Replica {
  int device = 0;
  std::size_t stage = 0;
};

// How the elements of one tensor go between storing and computing, on every device of the mesh.
struct Flow {
  std::int64_t rows = 0, cols = 0;            // of the tensor in the files
  std::vector<Region> stored, working;        // by device
  std::vector<std::vector<Share>> sources;    // of what the device computes with; empty where `direct`
  std::vector<std::vector<Share>> terms;      // of its stored gradient: from working gradients, in order of devices
  std::vector<std::vector<Replica>> sharers;  // of its sums, itself included, ascending: who stores the same
  std::vector<bool> counts;                   // the first device with its piece
  bool direct = false;                        // on every device what is stored is what it computes with
  bool sums = false;                          // a stored gradient is not simply the device's own
  std::vector<mesh::Stage> gather_stages, sum_stages;  // the names under which reads are counted, not how many
};
// slices: of each device. Tensors that lie alike share one.
class Flows {
 public:
  Flows(const mesh::ComputeSharding& form, const mesh::Mesh& mesh) : form_(form), mesh_(mesh) {}
  std::shared_ptr<const Flow> of(const mesh::PlacedTensor& tensor, const std::vector<mesh::LocalSlice>& slices);

 private:
  const mesh::ComputeSharding& form_;
  const mesh::Mesh& mesh_;
  std::map<std::string, std::shared_ptr<const Flow>> known_;
};

}  // namespace mw::engine
