// SPDX-License-Identifier: Apache-2.0
// What a Fabric is made of. Inside the engine room only.
#pragma once
#include <map>
#include <thread>
#include <tuple>

#include "core/engine/distributed/fabric.h"
#include "core/engine/distributed/meeting.h"

namespace mw::engine {

struct Fabric::Impl {
  explicit Impl(const mesh::Mesh& mesh);
  ~Impl();

  Meeting& meeting(int axis, int first_device, int members);
  void break_off();  // lets go everybody who waits
  void work(size_t device, std::stop_token quit);
  void run_one(size_t device);

  mesh::Mesh mesh;
  std::vector<int> strides;  // of mesh axes in the row-major device index
  std::vector<Port> ports;
  Meeting everybody;
  std::mutex meetings_mutex;
  std::map<std::tuple<int, int, int>, Meeting> meetings;  // axis, first device, members
  std::atomic<bool> broken{false};

  // The work at hand; behind `mutex`.
  std::mutex mutex;
  std::condition_variable_any begun;
  std::condition_variable ended;
  const std::function<void(Port&)>* body = nullptr;
  unsigned round = 0;
  size_t running = 0;
  std::vector<std::exception_ptr> errors;
  std::vector<char> let_go;  // by device: left because `broken` was set

  std::vector<std::jthread> threads;  // last: they end first
};

}  // namespace mw::engine
