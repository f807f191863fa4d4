// SPDX-License-Identifier: Apache-2.0
// The devices' threads: how work starts on all of them and ends, whatever happens to one.
#include "core/engine/distributed/fabric.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/distributed/fabric_impl.h"
#include "core/engine/runtime/thread_pool.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

size_t checked_devices(const mesh::Mesh& mesh) {
  const int devices = mesh.devices();
  if (devices > mesh::kMostVirtualDevices)
    throw Error({.id = "MESH-SIZE",
                 .message = "too many virtual devices",
                 .place = "mesh",
                 .found = std::to_string(devices) + " (" + mesh::to_text(mesh) + ")",
                 .expected = "at most " + std::to_string(mesh::kMostVirtualDevices),
                 .fix = "make an axis smaller"});
  return static_cast<size_t>(devices);
}

}  // namespace

Fabric::Impl::Impl(const mesh::Mesh& m)
    : mesh(m), everybody(checked_devices(m)), errors(checked_devices(m)), let_go(checked_devices(m)) {
  strides.resize(mesh.axes.size());
  int stride = 1;
  for (size_t a = mesh.axes.size(); a-- > 0;) {
    strides[a] = stride;
    stride *= std::max(1, mesh.axes[a].size);
  }
}

Fabric::Impl::~Impl() {
  for (std::jthread& t : threads) t.request_stop();
}

Meeting& Fabric::Impl::meeting(int axis, int first_device, int members) {
  const std::lock_guard lock(meetings_mutex);
  return meetings.try_emplace({axis, first_device, members}, static_cast<size_t>(members)).first->second;
}

void Fabric::Impl::break_off() {
  broken = true;
  everybody.wake();
  const std::lock_guard lock(meetings_mutex);
  for (auto& [key, meeting] : meetings) meeting.wake();
}

void Fabric::Impl::run_one(size_t device) {
  try {
    (*body)(ports[device]);
  } catch (const Disconnected&) {
    let_go[device] = true;
  } catch (...) {
    errors[device] = std::current_exception();
    break_off();
  }
}

void Fabric::Impl::work(size_t device, std::stop_token quit) {
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

Fabric::Fabric(const mesh::Mesh& mesh) : impl_(std::make_unique<Impl>(mesh)) {
  const size_t devices = impl_->errors.size();
  for (size_t d = 0; d < devices; ++d) impl_->ports.push_back(Port(*this, static_cast<int>(d)));
  if (devices == 1) return;  // works on the calling thread
  for (size_t d = 0; d < devices; ++d)
    impl_->threads.emplace_back([impl = impl_.get(), d](std::stop_token quit) { impl->work(d, std::move(quit)); });
}

Fabric::~Fabric() = default;

const mesh::Mesh& Fabric::mesh() const {
  return impl_->mesh;
}
int Fabric::devices() const {
  return static_cast<int>(impl_->ports.size());
}
Port& Fabric::port(int device) {
  return impl_->ports.at(static_cast<size_t>(device));
}

void Fabric::each(const std::function<void(Port&)>& work, std::stop_token stop) {
  Impl& f = *impl_;
  f.broken = false;
  std::fill(f.errors.begin(), f.errors.end(), nullptr);
  std::fill(f.let_go.begin(), f.let_go.end(), char{false});
  f.body = &work;
  {
    const std::stop_callback on_stop(stop, [&] { f.break_off(); });
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
  if (std::any_of(f.let_go.begin(), f.let_go.end(), [](char gone) { return gone != 0; }))
    throw cancelled("the step on the mesh");
}

}  // namespace mw::engine
