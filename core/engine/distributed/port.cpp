// SPDX-License-Identifier: Apache-2.0
// The collectives. Devices share the process's memory: each reads what the others show, between meetings of the group.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/distributed/fabric_impl.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Arrays up to this are summed whole by every device: one meeting less than in parts.
constexpr size_t kSmall = 512;

struct Part {
  size_t begin, end;
  size_t size() const { return end - begin; }
};
Part part_of(size_t count, size_t members, size_t member) {
  constexpr size_t kLine = 16;  // floats of a cache line: no two devices write the same
  const size_t lines = (count + kLine - 1) / kLine;
  const auto edge = [&](size_t m) { return std::min(count, lines * m / members * kLine); };
  return {edge(member), edge(member + 1)};
}

}  // namespace

// The device's place in a group along an axis while a call lasts.
class Group {
 public:
  Group(Fabric::Impl& fabric, const Port& port, int axis, int same, mesh::CollectiveKind kind)
      : fabric_(fabric), kind_(static_cast<int>(kind)) {
    const int stride = fabric.strides.at(static_cast<size_t>(axis));
    const int rank = port.rank(axis), first = same > 1 ? rank / same * same : 0;
    members_ = static_cast<size_t>(same > 1 ? same : port.size(axis));
    member_ = static_cast<size_t>(rank - first);
    if (members_ > 1)
      meeting_ = &fabric.meeting(axis, port.device() - (rank - first) * stride, same > 1 ? same : port.size(axis));
  }
  size_t members() const { return members_; }
  size_t member() const { return member_; }
  double waited() const { return waited_; }
  Clock::time_point begun() const { return begun_; }

  void meet_again() {
    const auto start = Clock::now();
    meeting_->meet_again();
    waited_ += since(start);
  }
  // Shows `floats` values at `at` and waits until all have.
  void show(const float* at, size_t floats) {
    const Meeting::Shown mine{at, floats, kind_};
    meeting_->show(member_, mine);
    const auto start = Clock::now();
    if (!meeting_->meet(fabric_.broken)) throw Disconnected{};
    waited_ += since(start);
    for (size_t m = 0; m < members_; ++m)
      if (!meeting_->shown(m).same_call(mine))
        throw Error({.id = "FABRIC",
                     .message = "devices of a group make different calls",
                     .found = std::to_string(meeting_->shown(m).floats) + " values in call " +
                              std::to_string(meeting_->shown(m).call),
                     .expected = std::to_string(floats) + " values in call " + std::to_string(kind_)},
                    Error::Kind::failed);
  }
  const float* of(size_t member) const { return meeting_->shown(member).at; }

 private:
  Fabric::Impl& fabric_;
  int kind_;
  Meeting* meeting_ = nullptr;
  size_t members_ = 1, member_ = 0;
  double waited_ = 0;
  Clock::time_point begun_ = Clock::now();
};

namespace {

// out = the reduction over members of values [begin, end), in the order of members. out may be the own values.
void reduce(const Group& group, Part part, Reduce how, float* out) {
  const auto n = static_cast<std::int64_t>(part.size());
  // A block at a time: the own values are read before the result takes their place.
  constexpr std::int64_t kBlock = 1024;
  std::array<float, kBlock> sum;
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t count = std::min(kBlock, n - at);
    const auto values = [&](size_t m) { return group.of(m) + part.begin + at; };
    std::memcpy(sum.data(), values(0), static_cast<size_t>(count) * sizeof(float));
    for (size_t m = 1; m < group.members(); ++m) {
      if (how == Reduce::sum)
        vector_kernels().add(count, values(m), 1.0f, sum.data());
      else
        for (std::int64_t i = 0; i < count; ++i)
          sum[static_cast<size_t>(i)] = std::max(sum[static_cast<size_t>(i)], values(m)[i]);
    }
    std::memcpy(out + at, sum.data(), static_cast<size_t>(count) * sizeof(float));
  }
}

void reduce_small(Group& group, std::span<float> values, Reduce how) {
  std::array<float, kSmall> sum;
  reduce(group, {0, values.size()}, how, sum.data());
  group.meet_again();
  std::copy_n(sum.begin(), values.size(), values.begin());
}

// Each member reduces its part in place, then takes the others' parts.
void reduce_in_parts(Group& group, std::span<float> values, Reduce how) {
  const Part mine = part_of(values.size(), group.members(), group.member());
  reduce(group, mine, how, values.data() + mine.begin);
  group.meet_again();
  for (size_t m = 0; m < group.members(); ++m) {
    const Part part = part_of(values.size(), group.members(), m);
    if (m != group.member() && part.size() > 0)
      std::memcpy(values.data() + part.begin, group.of(m) + part.begin, part.size() * sizeof(float));
  }
  group.meet_again();
}

Bytes bytes_of(size_t floats) {
  return Bytes(static_cast<std::int64_t>(floats * sizeof(float)));
}

}  // namespace

int Port::size(int axis) const {
  return std::max(1, fabric_->impl_->mesh.axes.at(static_cast<size_t>(axis)).size);
}
int Port::rank(int axis) const {
  return device_ / fabric_->impl_->strides.at(static_cast<size_t>(axis)) % size(axis);
}
const mesh::Mesh& Port::mesh() const {
  return fabric_->impl_->mesh;
}
int Port::peer(int axis, int other) const {
  return device_ + (other - rank(axis)) * fabric_->impl_->strides.at(static_cast<size_t>(axis));
}

void Port::all_reduce(int axis, const CallFor& why, std::span<float> values, Reduce how, int same) {
  Group group(*fabric_->impl_, *this, axis, same, mesh::CollectiveKind::all_reduce);
  if (group.members() == 1) return;
  group.show(values.data(), values.size());
  values.size() <= kSmall ? reduce_small(group, values, how) : reduce_in_parts(group, values, how);
  tally(mesh::CollectiveKind::all_reduce, axis, why, bytes_of(values.size()), static_cast<int>(group.members()),
        {since(group.begun()), group.waited()});
}

void Port::all_gather(int axis, const CallFor& why, std::span<const float> mine, std::span<float> all) {
  Group group(*fabric_->impl_, *this, axis, 0, mesh::CollectiveKind::all_gather);
  if (group.members() == 1) {
    if (all.data() != mine.data()) std::copy(mine.begin(), mine.end(), all.begin());
    return;
  }
  group.show(mine.data(), mine.size());
  for (size_t m = 0; m < group.members(); ++m)
    if (float* to = all.data() + m * mine.size(); to != group.of(m))
      std::memcpy(to, group.of(m), mine.size() * sizeof(float));
  group.meet_again();
  tally(mesh::CollectiveKind::all_gather, axis, why, bytes_of(all.size()), static_cast<int>(group.members()),
        {since(group.begun()), group.waited()});
}

void Port::reduce_scatter(int axis, const CallFor& why, std::span<const float> all, std::span<float> mine) {
  Group group(*fabric_->impl_, *this, axis, 0, mesh::CollectiveKind::reduce_scatter);
  if (group.members() == 1) {
    if (all.data() != mine.data()) std::copy(all.begin(), all.end(), mine.begin());
    return;
  }
  group.show(all.data(), all.size());
  const size_t begin = group.member() * mine.size();
  reduce(group, {begin, begin + mine.size()}, Reduce::sum, mine.data());
  group.meet_again();
  tally(mesh::CollectiveKind::reduce_scatter, axis, why, bytes_of(all.size()), static_cast<int>(group.members()),
        {since(group.begun()), group.waited()});
}

void Port::all_to_all(int axis, const CallFor& why, std::span<const float> from, std::span<float> to) {
  Group group(*fabric_->impl_, *this, axis, 0, mesh::CollectiveKind::all_to_all);
  if (group.members() == 1) return static_cast<void>(std::copy(from.begin(), from.end(), to.begin()));
  group.show(from.data(), from.size());
  const size_t part = from.size() / group.members();
  for (size_t m = 0; m < group.members(); ++m)
    std::copy_n(group.of(m) + group.member() * part, part, to.data() + m * part);
  group.meet_again();
  tally(mesh::CollectiveKind::all_to_all, axis, why, bytes_of(from.size()), static_cast<int>(group.members()),
        {since(group.begun()), group.waited()});
}

void Port::barrier() {
  Fabric::Impl& f = *fabric_->impl_;
  if (f.ports.size() > 1 && !f.everybody.meet(f.broken)) throw Disconnected{};
}

void Port::count(mesh::CollectiveKind kind, int axis, int group, const CallFor& why, Bytes read, double seconds,
                 double waited) {
  book({kind, axis, group, Bytes(0), read}, why, {seconds, waited});
}

void Port::tally(mesh::CollectiveKind kind, int axis, const CallFor& why, Bytes full, int group, Spent spent) {
  book({kind, axis, group, full, mesh::bytes_sent(kind, full, group)}, why, spent);
}

// Calls come in the same order in every step: the entry after the last one is nearly always the right one.
void Port::book(const Call& call, const CallFor& why, Spent spent) {
  const std::string& name = mesh().axes[static_cast<size_t>(call.axis)].name;
  const auto is_it = [&](const Traffic& t) {
    const mesh::Collective& c = t.what;
    return c.kind == call.kind && c.layer == why.layer && c.phase == why.phase && c.cause == why.cause &&
           c.full == call.full && c.moved == call.moved && c.group == call.group && c.tensor == why.tensor &&
           c.axis == name;
  };
  const size_t entries = traffic_.size();
  size_t found = entries;
  for (size_t i = 0; i < entries && found == entries; ++i)
    if (const size_t at = (next_ + i) % entries; is_it(traffic_[at])) found = at;
  if (found == entries)
    traffic_.push_back({.what = {.kind = call.kind,
                                 .axis = name,
                                 .group = call.group,
                                 .phase = why.phase,
                                 .cause = why.cause,
                                 .layer = why.layer,
                                 .tensor = std::string(why.tensor),
                                 .full = call.full,
                                 .moved = call.moved,
                                 .calls = 0}});
  Traffic& t = traffic_[found];
  ++t.what.calls;
  t.seconds += spent.seconds, t.waited += spent.waited;
  next_ = found + 1;
}

}  // namespace mw::engine
