// SPDX-License-Identifier: Apache-2.0
// What a layer under remat computes again and what it keeps. Plain values; any thread.
#pragma once
#include "core/plan/request/local_model.h"

namespace mw::plan {

// Whether the backward has to compute this product of a layer again. Nothing reads the last product of what is
// recomputed, unless a norm follows it, nor what was saved.
bool recomputes_product(const Request& request, const Product& product);
bool recomputes_attention(const Request& request);

// Bytes per token of a device that a layer keeps beside its input; none where they lie on the host.
double saved_bytes(const Request& request, const LayerKind& kind);

}  // namespace mw::plan
