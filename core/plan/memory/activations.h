// SPDX-License-Identifier: Apache-2.0
// What one layer keeps and needs while it is computed, from the buffers that its stack really makes: bytes and passes
// over memory per token of a device. Checked against published figures by tests. Plain values; any thread.
#pragma once
#include "core/plan/request/local_model.h"

namespace mw::plan {

struct LayerMemory {                                // bytes per token of a device; rows of `len` tokens
  double attention = 0, mlp = 0;                    // kept for the backward
  double attention_backward = 0, mlp_backward = 0;  // besides, while their backward runs
  double forward = 0;                               // at the widest instant of a forward that keeps nothing
  double kept() const { return attention + mlp; }
  // One layer recomputed and differentiated; one block of it.
  double live_layer() const;
  double live_block() const;
};
LayerMemory layer_memory(const LocalModel& model, const LayerKind& kind, double len);

// Bytes read and written by everything that is no product, per token; kernels per layer.
struct LayerTraffic {
  double forward = 0;  // that keeps nothing
  double keeping = 0;  // a forward for the backward
  double backward = 0;
  double kernels = 0;  // of a forward; a backward has twice as many
};
LayerTraffic layer_traffic(const LocalModel& model, const LayerKind& kind, double len);

// Pairs of query and key per token that attention multiplies: all of the row where scores are materialised, else those
// within causality and the window.
double attended_keys(const LocalModel& model, const LayerKind& kind, double len);

// Bytes read and written per logit of a training step, besides the products.
double logit_traffic(const StackProfile& profile);

}  // namespace mw::plan
