// SPDX-License-Identifier: Apache-2.0
// The memory of a step besides weights: activations and scratch, logits, RoPE tables and attention scores. Buffers are
// kept while a later step fits into them. n: tokens of the step without padding.
#pragma once
#include <vector>

#include "core/engine/transformer/model_weights.h"

namespace mw::engine {

// Which experts each token goes to, k of them. An assignment is token * k + place.
struct Routing {
  int* expert = nullptr;   // [n*k] by assignment
  float* share = nullptr;  // [n*k] softmax over the chosen
  int* order = nullptr;    // [n*k] assignments by expert, then token
  int* first = nullptr;    // [experts+1] where each expert's begin in `order`
};

// What the forward of a layer keeps for its backward. Pointers into StepActivations; null where recomputed.
struct LayerActivations {
  float* x = nullptr;  // [n,D] input of the layer
  float* h = nullptr;  // [n,D] input of the MLP block
  float *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr,
        *a = nullptr;  // raw projections (without v_proj v is k), attention, o_proj output
  float *kh = nullptr, *vh = nullptr, *dkh = nullptr, *dvh = nullptr;  // what attention reads: its own or its donor's
  float *pg = nullptr, *p = nullptr;                                   // per-layer gate [n,P] and projection [n,D]
  float *g = nullptr, *u = nullptr, *f = nullptr;                      // gate, up, down outputs
  Routing routing;
  float *eg = nullptr, *eu = nullptr;          // [n*k,Fe] experts' gate and up outputs, in routing order
  float *dense = nullptr, *experts = nullptr;  // [n,D] the two branches that make f; without experts dense is f
  float *inv_router = nullptr, *inv_moe_pre = nullptr, *inv_dense_post = nullptr, *inv_moe_post = nullptr;
  float* lse = nullptr;  // [n,heads]
  float *inv_v = nullptr, *inv_post_ple = nullptr;
  float *inv_input = nullptr, *inv_q = nullptr, *inv_k = nullptr, *inv_post_attention = nullptr, *inv_pre_ffw = nullptr,
        *inv_post_ffw = nullptr;
  float* z[kProjections] = {};  // [n,r] A x of each adapter
};

struct Scratch {
  float *norm = nullptr, *t = nullptr, *h = nullptr, *dx = nullptr;  // [n,D]; h, dx for the backward and remat
  float *qh = nullptr, *kh = nullptr, *vh = nullptr;                 // after norm and RoPE
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float* m = nullptr;  // [n,F]
  // Experts: their input and output rows [n,D], the gated activation and its gradient [n,Fe], scores [n,experts];
  // gradients of the experts' sum, of a norm and of the routing shares.
  float *xs = nullptr, *ys = nullptr, *em = nullptr, *dm = nullptr, *scores = nullptr;
  float *d_experts = nullptr, *ds = nullptr, *d_share = nullptr;
  float *ple = nullptr, *pm = nullptr;  // [n,layers*P] projected embeddings of the per-layer inputs, [n,P]
  float* dz = nullptr;                  // [n,max rank] gradient of A x of one adapter
  const Adapter* dz_of = nullptr;       // the adapter whose gradient dz holds, null: none
  float* drop = nullptr;                // [n,max in], only with dropout
  float* inv = nullptr;                 // [n], of the final norm
};

// Which tensors a step needs.
struct StepShape {
  int tokens = 0, lowest = 0;  // layers from `lowest` on have a backward; == layers: none
  bool backward = false, full = false, dropout = false;
  model::Remat remat = model::Remat::none;
  bool holds(const StepShape& need) const;
};

struct StepActivations {
  StepShape shape;
  std::vector<Buffer<float>> buffers;
  std::vector<LayerActivations> layers;
  float *ple = nullptr, *ple_inv = nullptr;  // [n,layers,P] per-layer inputs, later their gradients; [n,layers]
  Scratch scratch;
};

struct StepBuffers {
  StepBuffers(Device& step_device, const ModelWeights& model_weights) : device(step_device), weights(model_weights) {}

  void prepare(const StepShape& need);
  void prepare_rope(int last_position);
  // [rows, vocab]. The f16 ones come with logit_maxima, [stripes of the vocabulary, rows].
  float* logit_rows(std::int64_t rows);
  std::uint16_t* f16_logit_rows(std::int64_t rows);
  void release();  // everything that is kept for a later step

  Device& device;
  const ModelWeights& weights;
  StepActivations step;
  std::vector<Buffer<float>> rope_tables;  // by ModelWeights::rope_specs
  int rope_positions = 0;
  Buffer<float> attention_workspace, logit_chunk, logit_maxima;
  Buffer<std::uint16_t> f16_logits;
  std::int64_t attention_block_keys = 0;
};

}  // namespace mw::engine
