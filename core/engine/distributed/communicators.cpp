// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/communicators.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/runtime/thread_pool.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

// Synchronises the threads of a group of devices, each of which publishes memory for the others to read.
class GroupBarrier {
 public:
  explicit GroupBarrier(std::size_t members) : published_(members) {}

  struct Published {  // one member's memory, and what it thinks the call is
    const float* at = nullptr;
    std::size_t floats = 0;
    int call = 0;
    bool same_call(const Published& o) const { return floats == o.floats && call == o.call; }
  };
  // Call it before enter(), after which the other members may read published().
  void publish(std::size_t member, const Published& published) { published_[member] = published; }
  const Published& published(std::size_t member) const { return published_[member]; }

  // Waits until all members have entered and returns true to each, or returns false if `broken` is set before that. A
  // member that returns false no longer counts as arrived, so that nobody reads its memory after it has gone.
  bool enter(const std::atomic<bool>& broken) {
    std::unique_lock lock(mutex_);
    const unsigned mine = round_;
    if (arrive(lock)) return true;
    changed_.wait(lock, [&] { return round_ != mine || broken; });
    if (round_ != mine) return true;
    --arrived_;
    return false;
  }
  // Waits within an open call for all its members: they come even if `broken` is set, and keep their memory until then.
  void leave() {
    std::unique_lock lock(mutex_);
    const unsigned mine = round_;
    if (!arrive(lock)) changed_.wait(lock, [&] { return round_ != mine; });
  }
  void wake() {  // after `broken` was set
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

 private:
  bool arrive(std::unique_lock<std::mutex>& lock) {  // true: the last
    if (++arrived_ < published_.size()) return false;
    arrived_ = 0, ++round_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  unsigned round_ = 0;
  std::vector<Published> published_;
};

size_t checked_devices(const mesh::Mesh& mesh) {
  const int devices = mesh.devices();
  if (devices > mesh::kMostVirtualDevices)
    throw Error("MESH-SIZE", "too many virtual devices",
                {.place = "mesh",
                 .found = std::to_string(devices) + " (" + mesh::to_text(mesh) + ")",
                 .expected = "at most " + std::to_string(mesh::kMostVirtualDevices),
                 .fix = "make an axis smaller"});
  return static_cast<size_t>(devices);
}
}  // namespace

struct CommunicatorGroup::Impl {
  explicit Impl(const mesh::Mesh& mesh);
  ~Impl();

  GroupBarrier& barrier_of(int axis, int first_device, size_t members);
  void disconnect_all();  // lets go all_devices who waits
  void work(size_t device, std::stop_token quit);
  void run_one(size_t device);

  mesh::Mesh mesh;
  std::vector<int> strides;  // of mesh axes in the row-major device index
  std::vector<Communicator> ports;
  GroupBarrier all_devices;
  std::mutex barriers_mutex;
  std::map<std::pair<int, int>, GroupBarrier> barriers;  // of the groups: axis, first device
  std::atomic<bool> broken{false};

  // The current work, guarded by `mutex`.
  std::mutex mutex;
  std::condition_variable_any begun;
  std::condition_variable ended;
  const std::function<void(Communicator&)>* body = nullptr;
  unsigned round = 0;
  size_t running = 0;
  std::vector<std::exception_ptr> errors;
  std::vector<char> disconnected;  // by device: left because `broken` was set

  std::vector<std::jthread> threads;  // last: they end first
};

CommunicatorGroup::Impl::Impl(const mesh::Mesh& m)
    : mesh(m), all_devices(checked_devices(m)), errors(checked_devices(m)), disconnected(checked_devices(m)) {
  strides.resize(mesh.axes.size());
  int stride = 1;
  for (size_t a = mesh.axes.size(); a-- > 0;) {
    strides[a] = stride;
    stride *= std::max(1, mesh.axes[a].size);
  }
}

CommunicatorGroup::Impl::~Impl() {
  for (std::jthread& t : threads) t.request_stop();
}

GroupBarrier& CommunicatorGroup::Impl::barrier_of(int axis, int first_device, size_t members) {
  const std::lock_guard lock(barriers_mutex);
  return barriers.try_emplace({axis, first_device}, members).first->second;
}

void CommunicatorGroup::Impl::disconnect_all() {
  broken = true;
  all_devices.wake();
  const std::lock_guard lock(barriers_mutex);
  for (auto& [key, barrier] : barriers) barrier.wake();
}

void CommunicatorGroup::Impl::run_one(size_t device) {
  try {
    (*body)(ports[device]);
  } catch (const Disconnected&) {
    disconnected[device] = true;
  } catch (...) {
    errors[device] = std::current_exception();
    disconnect_all();
  }
}

void CommunicatorGroup::Impl::work(size_t device, std::stop_token quit) {
  lower_priority();
  for (unsigned seen = 0;;) {
    {
      std::unique_lock lock(mutex);
      if (!begun.wait(lock, quit, [&] { return round != seen; })) return;
      seen = round;
    }
    run_one(device);
    const std::lock_guard lock(mutex);
    if (--running == 0) ended.notify_all();
  }
}

CommunicatorGroup::CommunicatorGroup(const mesh::Mesh& mesh) : impl_(std::make_unique<Impl>(mesh)) {
  const size_t devices = impl_->errors.size();
  for (size_t d = 0; d < devices; ++d) impl_->ports.push_back(Communicator(*this, static_cast<int>(d)));
  if (devices == 1) return;  // works on the calling thread
  for (size_t d = 0; d < devices; ++d)
    impl_->threads.emplace_back([impl = impl_.get(), d](std::stop_token quit) { impl->work(d, std::move(quit)); });
}

CommunicatorGroup::~CommunicatorGroup() = default;

const mesh::Mesh& CommunicatorGroup::mesh() const {
  return impl_->mesh;
}
int CommunicatorGroup::devices() const {
  return static_cast<int>(impl_->ports.size());
}
Communicator& CommunicatorGroup::port(int device) {
  return impl_->ports.at(static_cast<size_t>(device));
}

void CommunicatorGroup::each(const std::function<void(Communicator&)>& work, std::stop_token stop) {
  Impl& f = *impl_;
  f.broken = false;
  std::fill(f.errors.begin(), f.errors.end(), nullptr);
  std::fill(f.disconnected.begin(), f.disconnected.end(), char{false});
  f.body = &work;
  {
    const std::stop_callback on_stop(stop, [&] { f.disconnect_all(); });
    if (f.threads.empty()) {
      f.run_one(0);
    } else {
      std::unique_lock lock(f.mutex);
      f.running = f.threads.size();
      ++f.round;
      f.begun.notify_all();
      f.ended.wait(lock, [&] { return f.running == 0; });
    }
  }
  f.body = nullptr;
  for (const std::exception_ptr& error : f.errors)
    if (error) std::rethrow_exception(error);
  if (std::any_of(f.disconnected.begin(), f.disconnected.end(), [](char gone) { return gone != 0; }))
    throw cancelled("the step on the mesh");
}

// --- Collectives: devices share the process's memory; each reads what the others publish, between barriers of the
// group. ---

namespace {

using Clock = std::chrono::steady_clock;

// Arrays of at most this many values are summed whole by every device, which takes one barrier less than in parts.
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

// A device's membership in a group along an axis during one call.
class Group {
 public:
  Group(CommunicatorGroup::Impl& communicators, const Communicator& port, int axis, mesh::CollectiveKind kind)
      : communicators_(communicators),
        kind_(static_cast<int>(kind)),
        members_(static_cast<size_t>(port.size(axis))),
        member_(static_cast<size_t>(port.rank(axis))) {
    if (members_ > 1) barrier_ = &communicators.barrier_of(axis, port.peer(axis, 0), members_);
  }
  size_t members() const { return members_; }
  size_t member() const { return member_; }
  double waited() const { return waited_; }
  Clock::time_point begun() const { return begun_; }

  void leave() {
    const auto start = Clock::now();
    barrier_->leave();
    waited_ += seconds_since(start);
  }
  // Publishes `floats` values at `at` and waits until all members have published theirs.
  void publish(const float* at, size_t floats) {
    const GroupBarrier::Published mine{at, floats, kind_};
    barrier_->publish(member_, mine);
    const auto start = Clock::now();
    if (!barrier_->enter(communicators_.broken)) throw Disconnected{};
    waited_ += seconds_since(start);
    for (size_t m = 0; m < members_; ++m)
      if (!barrier_->published(m).same_call(mine))
        throw Error("FABRIC", "devices of a group make different calls",
                    {.found = std::to_string(barrier_->published(m).floats) + " values in call " +
                              std::to_string(barrier_->published(m).call),
                     .expected = std::to_string(floats) + " values in call " + std::to_string(kind_)},
                    Error::Kind::failed);
  }
  const float* of(size_t member) const { return barrier_->published(member).at; }

 private:
  CommunicatorGroup::Impl& communicators_;
  int kind_;
  size_t members_, member_;
  GroupBarrier* barrier_ = nullptr;
  double waited_ = 0;
  Clock::time_point begun_ = Clock::now();
};

namespace {

// out = the reduction over members of values [begin, end), in the order of members. out may be the own values.
void reduce(const Group& group, Part part, Reduce how, float* out) {
  const auto n = static_cast<std::int64_t>(part.size());
  // Works block by block: if `out` is the own values, they are read before the result overwrites them.
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
  group.leave();
  std::copy_n(sum.begin(), values.size(), values.begin());
}

// Each member reduces its part in place, then takes the others' parts.
void reduce_in_parts(Group& group, std::span<float> values, Reduce how) {
  const Part mine = part_of(values.size(), group.members(), group.member());
  reduce(group, mine, how, values.data() + mine.begin);
  group.leave();
  for (size_t m = 0; m < group.members(); ++m) {
    const Part part = part_of(values.size(), group.members(), m);
    if (m != group.member() && part.size() > 0)
      std::memcpy(values.data() + part.begin, group.of(m) + part.begin, part.size() * sizeof(float));
  }
  group.leave();
}

Bytes bytes_of(size_t floats) {
  return Bytes(static_cast<std::int64_t>(floats * sizeof(float)));
}

}  // namespace

int Communicator::size(int axis) const {
  return std::max(1, communicators_->impl_->mesh.axes.at(static_cast<size_t>(axis)).size);
}
int Communicator::rank(int axis) const {
  return device_ / communicators_->impl_->strides.at(static_cast<size_t>(axis)) % size(axis);
}
const mesh::Mesh& Communicator::mesh() const {
  return communicators_->impl_->mesh;
}
int Communicator::peer(int axis, int other) const {
  return device_ + (other - rank(axis)) * communicators_->impl_->strides.at(static_cast<size_t>(axis));
}

void Communicator::all_reduce(int axis, const CallTag& why, std::span<float> values, Reduce how) {
  Group group(*communicators_->impl_, *this, axis, mesh::CollectiveKind::all_reduce);
  if (group.members() == 1) return;
  group.publish(values.data(), values.size());
  values.size() <= kSmall ? reduce_small(group, values, how) : reduce_in_parts(group, values, how);
  record_collective(mesh::CollectiveKind::all_reduce, axis, why, bytes_of(values.size()),
                    static_cast<int>(group.members()), {seconds_since(group.begun()), group.waited()});
}

void Communicator::all_gather(int axis, const CallTag& why, std::span<const float> mine, std::span<float> all) {
  Group group(*communicators_->impl_, *this, axis, mesh::CollectiveKind::all_gather);
  if (group.members() == 1) {
    if (all.data() != mine.data()) std::copy(mine.begin(), mine.end(), all.begin());
    return;
  }
  group.publish(mine.data(), mine.size());
  for (size_t m = 0; m < group.members(); ++m)
    if (float* to = all.data() + m * mine.size(); to != group.of(m))
      std::memcpy(to, group.of(m), mine.size() * sizeof(float));
  group.leave();
  record_collective(mesh::CollectiveKind::all_gather, axis, why, bytes_of(all.size()),
                    static_cast<int>(group.members()), {seconds_since(group.begun()), group.waited()});
}

void Communicator::barrier() {
  CommunicatorGroup::Impl& f = *communicators_->impl_;
  if (f.ports.size() > 1 && !f.all_devices.enter(f.broken)) throw Disconnected{};
}

void Communicator::count(mesh::CollectiveKind kind, int axis, int group, const CallTag& why, Bytes read,
                         CallTime spent) {
  record({kind, axis, group, Bytes(0), read}, why, spent);
}

void Communicator::record_collective(mesh::CollectiveKind kind, int axis, const CallTag& why, Bytes full, int group,
                                     CallTime spent) {
  record({kind, axis, group, full, mesh::bytes_sent(kind, full, group)}, why, spent);
}

// Calls come in the same order in every step: the entry after the last one is nearly always the right one.
void Communicator::record(const Call& call, const CallTag& why, CallTime spent) {
  const std::string& name = mesh().axes[static_cast<size_t>(call.axis)].name;
  const auto is_it = [&](const CollectiveTraffic& t) {
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
  CollectiveTraffic& t = traffic_[found];
  ++t.what.calls;
  t.seconds += spent.seconds, t.waited += spent.waited;
  next_ = found + 1;
}

}  // namespace mw::engine
