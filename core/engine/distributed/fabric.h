// SPDX-License-Identifier: Apache-2.0
// Collectives between the virtual devices of a mesh: one thread per device, all of a group make the same calls in the
// same order. Data really moves, is counted where it does, and is summed in the order of ranks: the same bits on every
// device and in every run.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh/collectives/collectives.h"

namespace mw::engine {

// What a call is for: the keys under which it is counted, those of mesh::Collective.
struct CallFor {
  mesh::Phase phase = mesh::Phase::forward;
  mesh::Cause cause = mesh::Cause::partial_sums;
  int layer = -1;
  std::string_view tensor = {};  // logical name, or the block's as in mesh::Collective
};

// Calls of one kind, axis, size and purpose by one device. `what.moved` bytes a call, `what.calls` of them. `what.full`
// of calls of a Port; of reads it stays 0.
struct Traffic {
  mesh::Collective what;
  double seconds = 0;  // in the calls, waiting for the others included
  double waited = 0;   // of those, waiting
};

enum class Reduce { sum, max };

class Fabric;

// A device's end. Used by its own thread only.
class Port {
 public:
  int device() const { return device_; }  // row-major in the mesh
  int size(int axis) const;
  int rank(int axis) const;  // the device's coordinate along the mesh axis
  const mesh::Mesh& mesh() const;

  // In place: on return every device of the group along `axis` holds the sum (or maximum) over it. Same length on all.
  // `same` > 1: only runs of so many neighbours along the axis (devices with the same KV head).
  void all_reduce(int axis, const CallFor& why, std::span<float> values, Reduce how = Reduce::sum, int same = 0);
  // `all` is `mine` of every rank, one after the other. all.size() == size(axis) * mine.size().
  void all_gather(int axis, const CallFor& why, std::span<const float> mine, std::span<float> all);
  // `mine` is the rank's part of the sum of everybody's `all`.
  void reduce_scatter(int axis, const CallFor& why, std::span<const float> all, std::span<float> mine);
  // Part r of `from` goes to rank r, where it is part (own rank) of `to`. Parts of equal size.
  void all_to_all(int axis, const CallFor& why, std::span<const float> from, std::span<float> to);

  // Nobody of the whole mesh goes on before all are here.
  void barrier();
  // The device's rank along `axis` replaced by `rank`: whose memory a gather of constant data reads directly.
  int peer(int axis, int rank) const;
  // Counts what was read of peers' memory in place of a collective in a group of that size. waited: of the seconds.
  void count(mesh::CollectiveKind kind, int axis, int group, const CallFor& why, Bytes read, double seconds,
             double waited);

  const std::vector<Traffic>& traffic() const { return traffic_; }
  void clear_traffic() { traffic_.clear(), next_ = 0; }

 private:
  friend class Fabric;
  friend class Group;
  struct Spent {
    double seconds, waited;
  };
  void tally(mesh::CollectiveKind kind, int axis, const CallFor& why, Bytes full, int group, Spent spent);
  struct Call {
    mesh::CollectiveKind kind{};
    int axis = 0, group = 1;
    Bytes full, moved;
  };
  void book(const Call& call, const CallFor& why, Spent spent);
  Port(Fabric& fabric, int device) : fabric_(&fabric), device_(device) {}
  Fabric* fabric_;
  int device_;
  std::vector<Traffic> traffic_;
  size_t next_ = 0;  // where the next call is looked for first
};

// Thrown on the threads of devices that wait for one which failed; never leaves Fabric::each.
struct Disconnected {};

class Fabric {
 public:
  // At most 64 devices; throws Error MESH-SIZE beyond.
  explicit Fabric(const mesh::Mesh& mesh);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  const mesh::Mesh& mesh() const;
  int devices() const;
  Port& port(int device);

  // Runs `work` once per device, each on its own thread (kept between calls), and returns when all have ended. If one
  // throws, those that wait for it are let go, and what the lowest device threw is thrown here; the fabric can be used
  // again. A stop request lets the others go likewise: throws Error of kind cancelled.
  void each(const std::function<void(Port&)>& work, std::stop_token stop = {});

 private:
  friend class Port;
  friend class Group;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::engine
