// SPDX-License-Identifier: GPL-3.0-or-later
// Targets by shape, without the catalogue; the mesh of two axes.
#pragma once
#include "core/hardware/target.h"
#include "core/mesh/layout/layout.h"

namespace mw::mesh {

inline hardware::Target tpu(std::vector<int> shape, std::vector<bool> wrap = {}, int devices_per_chip = 1) {
  hardware::Target t;
  t.chip.vendor = hardware::Vendor::tpu;
  t.chip.devices_per_chip = devices_per_chip;
  t.wrap = wrap.empty() ? std::vector<bool>(shape.size(), false) : std::move(wrap);
  t.shape = std::move(shape);
  return t;
}

inline hardware::Target slices(int count, hardware::Target slice) {
  slice.slices = count;
  slice.shape.insert(slice.shape.begin(), count);
  slice.wrap.insert(slice.wrap.begin(), true);
  return slice;
}

inline hardware::Target gpus(std::vector<int> shape) {
  hardware::Target t = tpu(std::move(shape));
  t.chip.vendor = hardware::Vendor::gpu;
  t.wrap.assign(t.shape.size(), true);
  return t;
}

inline hardware::Target cpu() {
  hardware::Target t = tpu({1});
  t.chip.vendor = hardware::Vendor::cpu;
  return t;
}

inline Mesh two(int fsdp, int tp) {
  return {{{"fsdp", fsdp}, {"tp", tp}}};
}

}  // namespace mw::mesh
