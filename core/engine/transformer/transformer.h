// SPDX-License-Identifier: Apache-2.0
// A transformer with the state that its operations share, and its passes: forward, loss and backward. Each operation
// has a header of its own (attention.h, mlp.h, experts.h, loss.h, ...).
#pragma once
#include <span>

#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/runtime/profile.h"
#include "core/engine/transformer/model_weights.h"
#include "core/engine/transformer/step_buffers.h"
#include "core/engine/transformer/tokens.h"

namespace mw::engine {

struct PagedBatch;

enum class StepGoal { loss, gradients };

// The inputs of a pass, which are constant while it runs.
struct PassContext {
  const Tokens* tokens = nullptr;
  float dropout = 0;  // 0 in evaluation
  std::uint64_t dropout_seed = 0, step = 0, micro_batch = 0;
  std::uint64_t first_cell = 0;       // index of the batch's first token in the whole batch: row * len
  const float* from = nullptr;        // hidden states [n,D] in place of embeddings
  const PagedBatch* paged = nullptr;  // rows of a paged KV cache, with adapters of their own
  // Tokens whose outputs are needed, ascending, each the last of its run; null: all. For them the last layer computes
  // keys and values of all tokens, and everything else of these tokens only. See can_select_outputs().
  const std::vector<int>* outputs = nullptr;
};

struct Transformer {
  // With hooks: a device's part of a model on a mesh; `whole` is not read then.
  Transformer(const model::Config& whole, Device& its_device, model::WeightType type, NetworkUse use,
              CollectiveHooks* its_hooks = nullptr)
      : hooks(its_hooks), device(its_device), weights(whole, device, type, use, hooks), gemm(device, type) {}

  int vocab() const { return hooks ? hooks->whole_config().vocab : config.vocab; }  // of the whole model
  // Rows of the embedding tables that the device holds.
  mesh::IndexInterval vocab_rows() const { return hooks ? hooks->local().vocab : mesh::IndexInterval{0, config.vocab}; }
  mesh::IndexInterval ple_vocab_rows() const {
    return hooks ? hooks->local().ple_vocab : mesh::IndexInterval{0, config.vocab};
  }
  bool splits_vocab() const { return hooks && hooks->splits_vocab(); }
  LayerActivations& activations(int layer) { return buffers.step.layers[static_cast<size_t>(layer)]; }

  void add_lora(const options::Lora& options, std::uint64_t seed);
  void set_trainable(model::TrainMethod method);

  CollectiveHooks* const hooks;
  Device& device;
  ModelWeights weights;
  const model::Config& config = weights.config;
  Gemm gemm;
  const VectorKernels& kernels = vector_kernels();
  Profile profile;
  StepBuffers buffers{device, weights};
};

// Whether passes over a paged cache support PassContext::outputs.
bool can_select_outputs(const Transformer& net);
// Returns the last layer's output [n,D], or that of pass.outputs.
const float* forward(Transformer& net, const PassContext& pass);
// From scratch.dx. What is cheap to recompute (norms, RoPE, GeGLU) always is; whole blocks are if remat says so, with
// the forward's own code and hence the same bits.
void backward(Transformer& net, const PassContext& pass);

// A step over a batch: the sum of its losses, and with StepGoal::gradients also the gradients.
LossSum run_step(Transformer& net, const TokenBatch& batch, const StepOptions& options, StepGoal goal);
// Hidden states behind the layers, from embeddings or (not empty) from the hidden states `from`; no padding then.
void hidden_states(Transformer& net, const TokenBatch& batch, std::span<const float> from, std::span<float> out);
void all_logits(Transformer& net, const TokenBatch& batch, std::span<const float> from, std::span<float> out);

// x [n] *= factor
void scale_values(Transformer& net, std::int64_t n, float factor, float* x);

// --- The calls to the other devices; without effect on one device ---

void sum_block(Transformer& net, mesh::Block block, int layer, std::int64_t n, float* values);
void set_phase(Transformer& net, mesh::Phase phase);
void gather_weights(Transformer& net, int layer, mesh::Phase phase);
void reduce_gradients(Transformer& net, int layer);

}  // namespace mw::engine
