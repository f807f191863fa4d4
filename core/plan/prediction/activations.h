// SPDX-License-Identifier: Apache-2.0
// Activation memory and memory traffic of a layer per token of a device, from the buffers that its stack allocates.
// Tests compare it with published figures. Plain values; any thread.
#pragma once
#include "core/plan/request/local_model.h"

namespace mw::plan {

struct LayerMemory {                                // bytes per token of a device; rows of `len` tokens
  double attention = 0, mlp = 0;                    // kept for the backward
  double attention_backward = 0, mlp_backward = 0;  // additional while their backward runs
  double forward = 0;                               // peak of a forward that keeps nothing
  double kept() const { return attention + mlp; }
  // The peak while one layer, or one block of it, is recomputed and differentiated.
  double live_layer() const;
  double live_block() const;
};
LayerMemory layer_memory(const LocalModel& model, const LayerKind& kind, double len);

// Bytes read and written per token by all operations except matrix products, and kernel launches per layer.
struct LayerTraffic {
  double forward = 0;  // a forward that keeps nothing
  double keeping = 0;  // a forward for the backward
  double backward = 0;
  double kernels = 0;  // of a forward; a backward launches twice as many
};
LayerTraffic layer_traffic(const LocalModel& model, const LayerKind& kind, double len);

// The norms of DoRA's rows, which each pass computes from W + scaling B A of every adapted projection of the layer,
// whatever the number of tokens. All zero without DoRA.
struct RowNorms {
  double held = 0;     // bytes at once, of the largest projection
  double moved = 0;    // bytes read and written besides the products
  double kernels = 0;  // launched in a forward
};
RowNorms row_norms(const LocalModel& model, const LayerKind& kind);
// Whether the base product of an adapted projection is computed again, of the input that is left by dropout (PEFT).
bool repeats_dropped_product(const Request& request);

// Keys per query that attention multiplies: the whole row if scores are materialised, else the keys that causality and
// the sliding window allow.
double attended_keys(const LocalModel& model, const LayerKind& kind, double len);

// Bytes read and written per logit of a training step, besides the products.
double logit_traffic(const StackProfile& profile);

// The values that a layer under remat recomputes, and those that it keeps. Pure functions; any thread.

// Whether the backward recomputes this product. It skips saved products, and the last product of the recomputed part
// unless a norm follows it, because nothing reads that.
bool recomputes_product(const Request& request, const Product& product);
bool recomputes_attention(const Request& request);

// Bytes per token that a layer keeps on a device in addition to its input; 0 if they are offloaded to the host.
double saved_bytes(const Request& request, const LayerKind& kind);

}  // namespace mw::plan
