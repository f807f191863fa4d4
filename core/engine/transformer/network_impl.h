// SPDX-License-Identifier: Apache-2.0
// Inside the engine room only: lets the sampler reach the core of a Network.
#pragma once
#include "core/engine/transformer/core.h"

namespace mw::engine {

struct Network::Impl {
  Impl(const model::Config& config, Device& device, model::WeightType type, CollectiveHooks* part, Use use)
      : core(config, device, type, part, use) {}
  Core core;
};

}  // namespace mw::engine
