// SPDX-License-Identifier: Apache-2.0
// Lookups in embedding tables of which the device may hold a range of rows.
#pragma once
#include "core/engine/transformer/tokens.h"
#include "core/engine/transformer/weight.h"
#include "core/mesh/collectives/local_config.h"

namespace mw::engine {

struct Transformer;

// The row of a token in a table of which the device holds the rows `own`; zeros for other tokens.
void look_up_row(const Weight& table, const mesh::Range& own, int id, float* out);
// x [tokens, dim]: scaled embeddings.
void embed(Transformer& net, const Tokens& tokens, float* x);
// Adds the gradient of a lookup to the table's gradient.
void add_embedding_gradient(Transformer& net, const Tokens& tokens, const float* dx, float factor, Weight& table,
                            const mesh::Range& own);

}  // namespace mw::engine
