// SPDX-License-Identifier: Apache-2.0
// Collectives between the virtual devices of a mesh: one thread per device; all devices of a group make the same calls
// in the same order. Data is copied and counted where it is copied; sums are in the order of ranks, hence the same bits
// on every device and in every run.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "core/mesh/collectives/collectives.h"

namespace mw::engine {

// The keys of mesh::Collective under which a call is counted.
struct CallTag {
  mesh::Phase phase = mesh::Phase::forward;
  mesh::Cause cause = mesh::Cause::partial_sums;
  int layer = -1;
  std::string_view tensor = {};  // logical name, or the block's as in mesh::Collective
};

// The calls of one kind, axis, size and purpose by one device: `what.calls` calls of `what.moved` bytes each.
// `what.full` is 0 for reads (Communicator::count).
struct CollectiveTraffic {
  mesh::Collective what;
  double seconds = 0;  // in the calls, waiting for the others included
  double waited = 0;   // of those, waiting
};

enum class Reduce { sum, max };

class CommunicatorGroup;

// The collectives of one device, for the thread of that device.
class Communicator {
 public:
  int device() const { return device_; }  // row-major in the mesh
  int size(int axis) const;
  int rank(int axis) const;  // the device's coordinate along the mesh axis
  const mesh::Mesh& mesh() const;

  // In place: on return every device of the group along `axis` holds the sum (or maximum) over it. Same length on all.
  void all_reduce(int axis, const CallTag& why, std::span<float> values, Reduce how = Reduce::sum);
  // `all` is `mine` of every rank, one after the other. all.size() == size(axis) * mine.size().
  void all_gather(int axis, const CallTag& why, std::span<const float> mine, std::span<float> all);

  // Blocks until every device of the mesh has called it.
  void barrier();
  // The device with the same coordinates except `rank` along `axis`.
  int peer(int axis, int rank) const;
  // Counts a direct read of peers' memory as a collective in a group of that size.
  struct CallTime {  // `waited` is a part of `seconds`
    double seconds = 0, waited = 0;
  };
  void count(mesh::CollectiveKind kind, int axis, int group, const CallTag& why, Bytes read, CallTime spent);

  const std::vector<CollectiveTraffic>& traffic() const { return traffic_; }
  void clear_traffic() { traffic_.clear(), next_ = 0; }

 private:
  friend class CommunicatorGroup;
  friend class Group;
  void record_collective(mesh::CollectiveKind kind, int axis, const CallTag& why, Bytes full, int group,
                         CallTime spent);
  struct Call {
    mesh::CollectiveKind kind{};
    int axis = 0, group = 1;
    Bytes full, moved;
  };
  void record(const Call& call, const CallTag& why, CallTime spent);
  Communicator(CommunicatorGroup& communicators, int device) : communicators_(&communicators), device_(device) {}
  CommunicatorGroup* communicators_;
  int device_;
  std::vector<CollectiveTraffic> traffic_;
  size_t next_ = 0;  // where the next call is looked for first
};

// Thrown on the threads of devices that wait for a failed device; does not leave CommunicatorGroup::each.
struct Disconnected {};

class CommunicatorGroup {
 public:
  // At most 64 devices; throws Error MESH-SIZE beyond.
  explicit CommunicatorGroup(const mesh::Mesh& mesh);
  ~CommunicatorGroup();
  CommunicatorGroup(const CommunicatorGroup&) = delete;
  CommunicatorGroup& operator=(const CommunicatorGroup&) = delete;

  const mesh::Mesh& mesh() const;
  int devices() const;
  Communicator& port(int device);

  // Runs `work` once per device, each on its own thread (kept between calls), and returns when all have ended. If one
  // throws, devices that wait for it are released, and the exception of the lowest device is rethrown; the
  // communicators can be used again. A stop request lets the others go likewise: throws Error of kind cancelled.
  void each(const std::function<void(Communicator&)>& work, std::stop_token stop = {});

 private:
  friend class Communicator;
  friend class Group;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
