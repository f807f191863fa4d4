// SPDX-License-Identifier: Apache-2.0
// The activations and scratch memory of a step as allocations and fields. n: tokens of the step without padding. Plain
// values; any thread.
#pragma once
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

// The properties of a step that determine which tensors it needs.
struct ActivationShape {
  std::int64_t tokens = 0;
  int lowest = 0;  // layers from `lowest` on have a backward; == layers: none
  bool backward = false, full = false, dropout = false;
  model::Remat remat = model::Remat::none;
  bool holds(const ActivationShape& need) const;
};
ActivationShape forward_shape(const ModelShape& model, std::int64_t tokens);  // without a backward

// The k experts that each token goes to. Assignment token * k + i is the i-th expert of the token.
template <template <class> class At>
struct RoutingAt {
  At<int> expert{};   // [n*k] by assignment
  At<float> share{};  // [n*k] softmax over the chosen
  At<int> order{};    // [n*k] assignments by expert, then token
  At<int> first{};    // [experts+1] where each expert's begin in `order`
};

// The tensors that the forward of a layer keeps for its backward; those that are recomputed are absent (null).
template <template <class> class At>
struct LayerActivationsAt {
  At<float> x{};                       // [n,D] input of the layer
  At<float> h{};                       // [n,D] input of the MLP block
  At<float> q{}, k{}, v{}, o{}, a{};   // raw projections (without v_proj v is k), attention, o_proj output
  At<float> kh{}, vh{}, dkh{}, dvh{};  // what attention reads: its own or its donor's
  At<float> pg{}, p{};                 // per-layer gate [n,P] and projection [n,D]
  At<float> g{}, u{}, f{};             // gate, up, down outputs
  RoutingAt<At> routing{};
  At<float> eg{}, eu{};          // [n*k,Fe] experts' gate and up outputs, in routing order
  At<float> dense{}, experts{};  // [n,D] the two branches that make f; without experts dense is f
  At<float> inv_router{}, inv_moe_pre{}, inv_dense_post{}, inv_moe_post{};
  At<float> lse{};  // [n,heads]
  At<float> inv_v{}, inv_post_ple{};
  At<float> inv_input{}, inv_q{}, inv_k{}, inv_post_attention{}, inv_pre_ffw{}, inv_post_ffw{};
  At<float> z[kProjections]{};  // [n,r] A x of each adapter
};

template <template <class> class At>
struct ScratchAt {
  At<float> norm{}, t{}, h{}, dx{};  // [n,D]; h, dx for the backward and remat
  At<float> qh{}, kh{}, vh{};        // after norm and RoPE
  At<float> dq{}, dk{}, dv{};
  At<float> m{};  // [n,F]
  // Experts: their input and output rows [n,D], the gated activation and its gradient [n,Fe], scores [n,experts];
  // gradients of the experts' sum, of a norm and of the routing shares.
  At<float> xs{}, ys{}, em{}, dm{}, scores{};
  At<float> d_experts{}, ds{}, d_share{};
  At<float> ple{}, pm{};  // [n,layers*P] projected embeddings of the per-layer inputs, [n,P]
  At<float> dz{};         // [n,max rank] gradient of A x of one adapter
  At<float> drop{};       // [n,max in], only with dropout
  At<float> dora{};       // [n,max out] of adapters with magnitudes: their output, then its gradient
  At<float> inv{};        // [n], of the final norm
};

struct StepLayout {
  std::vector<Allocation> allocations;
  std::vector<LayerActivationsAt<FieldOf>> layers;  // the last one has only x: the output of the model's last layer
  ScratchAt<FieldOf> scratch;
  BufferField ple, ple_inv;  // [n,layers,P] per-layer inputs, later their gradients; [n,layers]
};
StepLayout lay_out_step(const ModelShape& model, const ActivationShape& shape);

}  // namespace mw::engine
