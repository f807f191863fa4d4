// SPDX-License-Identifier: Apache-2.0
// What a layer under remat recomputes and what it keeps. Pure functions; any thread.
#pragma once
#include "core/plan/request/local_model.h"

namespace mw::plan {

// Whether the backward recomputes this product. It skips saved products, and the last product of the recomputed part
// unless a norm follows it, because nothing reads that.
bool recomputes_product(const Request& request, const Product& product);
bool recomputes_attention(const Request& request);

// Bytes per token that a layer keeps on a device in addition to its input; 0 if they are offloaded to the host.
double saved_bytes(const Request& request, const LayerKind& kind);

}  // namespace mw::plan
