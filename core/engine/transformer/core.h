// SPDX-License-Identifier: Apache-2.0
// What a Network is made of: weights, adapters, the memory of one step, and the forward and backward over them.
// Inside the engine room only. model::Layer drives everything layer by layer. n: tokens of the step without padding.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/base/rng.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/slim.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/runtime/profile.h"
#include "core/engine/transformer/collective_hooks.h"
#include "core/engine/transformer/tokens.h"

namespace mw::engine {

inline constexpr int kProjections = 7;
enum class Projection { q, k, v, o, gate, up, down };
Projection projection_of(model::Role role);  // of one that LoRA adapts

using sizes::aligned_floats;

struct Weight {  // one inventory tensor
  std::int64_t rows = 0, cols = 0;
  bool vector = false;            // norms and scalars: few numbers, always f32
  WeightRef at;                   // what kernels read; norms are always f32, with bf16 values if the weights are bf16
  float* f32 = nullptr;           // writable; the f32 master where there is one; null for a bf16 weight without
  float* norm = nullptr;          // norms: at.f32, writable
  std::uint16_t* bf16 = nullptr;  // writable; row-major or packed, as `at` says
  std::int8_t* int8 = nullptr;    // writable, with its scales
  std::uint16_t* scales = nullptr;
  std::byte* slim = nullptr;  // writable, whole panels at a time
  SlimRests* rests = nullptr;
  float* gradient = nullptr;  // full training only
  float offset = 0;           // norms: what their values are added to
  NormGain gain() const { return {at.f32, offset}; }
  std::int64_t elements() const { return rows * cols; }
};

// weight_rows.cpp. Not for norms. `bits` or f32 values of rows [first, first + values / cols), however they are stored;
// whole panels of slim ones. Threads may write rows of different panels.
void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<const std::uint16_t> bits);
void write_rows(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<const float> values);
// What the kernels read (not the f32 master), as f32.
void read_rows(const Weight& w, std::int64_t first, std::span<float> values);

struct Adapter {  // y += scaling * B (A dropout(x))
  int layer = 0;
  Projection projection{};
  std::int64_t in = 0, out = 0;
  int rank = 0;
  float scaling = 0;
  std::int64_t whole_in = 0, first_in = 0;  // of the whole projection's inputs, where a device has a part of them
  float *a = nullptr, *b = nullptr;         // [r,in], [out,r]
  float *da = nullptr, *db = nullptr;       // gradients, null until trainable
};

struct LoraStart {  // of A [r, whole_in]; B starts with zeros
  LoraStart(std::uint64_t seed, int layer, Projection projection, std::int64_t whole_in);
  float at(std::int64_t element) const {
    return bound * (2.0f * rng.uniform_at(static_cast<std::uint64_t>(element)) - 1.0f);
  }
  Rng rng;
  float bound;
};
inline constexpr float kInitialDeviation = 0.02f;  // of matrices that start at random

struct LayerParts {  // null where the layer has no such part
  Weight *input_norm = nullptr, *post_attention_norm = nullptr, *pre_ffw_norm = nullptr, *post_ffw_norm = nullptr;
  Weight *q_norm = nullptr, *k_norm = nullptr, *v_norm = nullptr;
  Weight *ple_gate = nullptr, *ple_proj = nullptr, *post_ple_norm = nullptr;
  Weight* layer_scalar = nullptr;
  Weight *router = nullptr, *router_scale = nullptr, *per_expert_scale = nullptr;
  Weight *experts_gate_up = nullptr, *experts_down = nullptr;
  Weight *moe_pre_norm = nullptr, *dense_post_norm = nullptr, *moe_post_norm = nullptr;
  Weight* projection[kProjections] = {};
  Adapter* adapter[kProjections] = {};
  int rope = 0;        // index of its table
  bool lends = false;  // later layers attend with its keys and values
};

// Which experts each token goes to, k of them. An assignment is token * k + place.
struct Routing {
  int* expert = nullptr;   // [n*k] by assignment
  float* share = nullptr;  // [n*k] softmax over the chosen
  int* order = nullptr;    // [n*k] assignments by expert, then token
  int* first = nullptr;    // [experts+1] where each expert's begin in `order`
};

// What the forward leaves for the backward of one layer. Pointers into StepMemory; null where recomputed.
struct LayerState {
  float* x = nullptr;  // [n,D] input of the layer
  float* h = nullptr;  // [n,D] input of the MLP block
  float *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr,
        *a = nullptr;  // raw projections (without v_proj v is k), attention, o_proj output
  float *kh = nullptr, *vh = nullptr, *dkh = nullptr, *dvh = nullptr;  // what attention reads: a donor's for borrowers
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
  float *qh = nullptr, *kh = nullptr, *vh = nullptr;                 // normed, roped
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float* m = nullptr;  // [n,F]
  // Experts: rows in and out [n,D], their m and d m [n,Fe], scores [n,experts], d of their sum, of a norm, of shares
  float *xs = nullptr, *ys = nullptr, *em = nullptr, *dm = nullptr, *scores = nullptr;
  float *d_experts = nullptr, *ds = nullptr, *d_share = nullptr;
  float *ple = nullptr, *pm = nullptr;  // [n,layers*P] the context's part of per-layer inputs, [n,P]
  float* dz = nullptr;                  // [n,max rank] d(A x) of one adapter
  const Adapter* dz_of = nullptr;       // the adapter it holds, null: none
  float* drop = nullptr;                // [n,max in], only with dropout
  float* inv = nullptr;                 // [n], of the final norm
};

struct RopeSpec {
  float theta = 0, divisor = 1;  // of positions
  int head_dim = 0, pairs = 0;   // the first of head_dim / 2 pairs rotate
  bool operator==(const RopeSpec&) const = default;
};

// Which tensors a step needs; buffers are kept while a later step fits into them.
struct StepShape {
  int tokens = 0, lowest = 0;  // layers from `lowest` on have a backward; == layers: none
  bool backward = false, full = false, dropout = false;
  model::Remat remat = model::Remat::none;
  bool holds(const StepShape& need) const;
};

struct StepMemory {
  StepShape shape;
  std::vector<Buffer<float>> buffers;
  std::vector<LayerState> layers;
  float *ple = nullptr, *ple_inv = nullptr;  // [n,layers,P] per-layer inputs, later their gradient; [n,layers]
  Scratch scratch;
};

// A layer's keys (roped) and values of earlier tokens: per row [kv_heads, capacity, head_dim], where token t is in slot
// t % capacity. Sliding layers keep a ring of their window.
struct LayerCache {
  struct Row {
    std::int64_t first = 0;  // element of k and v
    int capacity = 0;        // tokens
  };
  Buffer<float> k, v;
  std::vector<Row> rows;
};
struct KvCache {
  std::vector<LayerCache> layers;
  std::vector<int> lengths;  // tokens that each row has seen
};

struct ServedPass;  // paged_batch.h

// Per-call constants of a pass.
struct Pass {
  const Tokens* tokens = nullptr;
  float dropout = 0;  // 0 in evaluation
  std::uint64_t dropout_seed = 0, step = 0, micro_batch = 0;
  std::uint64_t first_cell = 0;        // of the whole batch, row * len
  KvCache* cache = nullptr;            // filled and read when generating
  std::span<const int> cache_rows{};   // of each run
  const float* from = nullptr;         // hidden states [n,D] in place of embeddings
  const ServedPass* served = nullptr;  // instead of cache: rows in blocks, with adapters of their own
};

// What projections read: x [n,K], or the norm of x, whose statistics the forward leaves in inv.
struct Input {
  const float* x = nullptr;
  Weight* norm = nullptr;
  float* inv = nullptr;
};

enum class Want { loss, gradients };

struct Core {
  // With `part` the device's part of a model on a mesh; `config` is not read then.
  Core(const model::Config& config, Device& device, model::WeightType type, CollectiveHooks* part = nullptr,
       Use use = Use::training);

  // core.cpp
  void allocate_weights();
  std::int64_t place(Weight& w, std::int64_t matrix_rows, std::byte* at);
  bool stores(size_t weight) const;
  Weight* find(model::Role role, int layer);  // null where the model has none
  Weight* need(model::Role role, int layer);
  void connect(int layer);

  // weights.cpp
  void load(const WeightSource& source, const std::function<void(long, long)>& progress);
  void init_random(std::uint64_t seed);
  void make_adapters(const LoraOptions& options);  // without room for their values
  void add_lora(const LoraOptions& options, std::uint64_t seed);
  void list_adapters(std::span<float> sums);  // as parameters; empty: without
  void set_trainable(model::TrainMethod method);
  void check_trainable(model::TrainMethod method) const;
  void parameters_changed();
  std::span<const float> weight_f32(size_t index);

  // step_memory.cpp
  void prepare(const StepShape& need);
  void prepare_rope(int last_position);
  void release_step_memory();
  int lowest_trained_layer() const;
  // The columns of its per-layer inputs that a layer gates here.
  std::int64_t ple_width() const;
  std::int64_t first_ple() const { return part ? part->local().ple.begin : 0; }

  // linear.cpp
  float* adapter_dz(std::int64_t n, const Adapter& a, const float* dy);
  // Projections of one input; to LayerState, and of gate and up gelu(gate) * up to `gated`. Where kernels can, in one
  // dispatch that normalises on the way; elsewhere through scratch.norm.
  void project(const Pass& pass, int layer, std::span<const Projection> which, const Input& in, LayerState& s,
               float* gated = nullptr);
  bool fuses(const Pass& pass, const Weight& w, const Adapter* a) const;  // for kernels of many or few rows
  // Adds the low-rank products of the rows' own adapters to projections of x.
  void add_served_adapters(const Pass& pass, int layer, std::span<const Projection> which, const float* x,
                           LayerState& s);
  void linear(const Pass& pass, int layer, Projection p, const float* x, float* y, float* z);
  // dx = keep * dx + dy W + the adapter's part.
  void linear_backward_input(const Pass& pass, int layer, Projection p, const float* dy, float keep, float* dx);
  // Adds weight or adapter gradients.
  void linear_backward_weights(const Pass& pass, int layer, Projection p, const Input& in, const float* dy,
                               const float* z);
  // Makes in.x the norm itself unless linear_backward_weights() does so on the way.
  Input input_again(const Pass& pass, const Input& in);

  // attention.cpp
  enum class Into { overwrite, add };
  void attention(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o, float* lse);
  // Runs that continue rows of pass.cache, which takes up their keys and values.
  void attention_cached(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o,
                        float* lse);
  // attention_served.cpp: runs of pass.served, whose blocks take up their keys and values.
  void attention_served(const Pass& pass, int layer, const float* q, const float* k, const float* v, float* o,
                        float* lse);
  // d_o is overwritten with d_q.
  void attention_backward(const Pass& pass, int layer, const float* q, const float* k, const float* v, const float* o,
                          const float* lse, float* d_o, Into how, float* dk, float* dv);

  // forward.cpp
  // One row of a matrix as f32: the only way to read a weight besides gemm and norms.
  void weight_row(const Weight& w, std::int64_t row, float* out);
  // Row `id` of a table of which the device has these rows; zeros elsewhere.
  void look_up(const Weight& table, const mesh::Range& own, int id, float* out);
  void embed(const Tokens& tokens, float* x);
  void attention_block(const Pass& pass, int layer, LayerState& s, float* h);
  void keys_and_values(const Pass& pass, int layer, LayerState& s);
  void gate(std::int64_t count, const LayerState& s, float* gated);
  void mlp_block(const Pass& pass, int layer, LayerState& s, const float* h, float* out);
  const float* forward(const Pass& pass);  // returns the last layer's output [n,D]
  void norm(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, float* y, float* inv);
  // y = residual + the norm of x; y may be residual.
  void norm_add(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, const float* residual, float* y,
                float* inv);
  // The norm of every head; without one (Gemma 2) a copy.
  void head_norm(std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, float* y, float* inv);
  void rotate(const Tokens& tokens, int layer, int heads, float sign, float* x);
  void scale(std::int64_t n, float factor, float* x);

  // per_layer.cpp: Gemma 4's per-layer inputs (PLE)
  void per_layer_inputs(const Tokens& tokens, const float* embedded);
  void per_layer_block(const Pass& pass, int layer, LayerState& s, float* x);  // x += its part
  void per_layer_block_backward(const Pass& pass, int layer, LayerState& s, const float* h);
  void sum_per_layer_gradients(std::int64_t n);
  void per_layer_inputs_backward(const Tokens& tokens, const float* embedded, float* dx);

  // experts.cpp: the router and its experts
  void experts_block(const Pass& pass, int layer, LayerState& s, const float* h);  // to s.experts
  void route(std::int64_t n, const float* scores, const Routing& r);
  void gather_rows(const Routing& r, std::int64_t first, std::int64_t count, const float* from, float* to);
  // Adds to scratch.dx what goes through s.experts, whose gradient is scratch.d_experts.
  void experts_backward(const Pass& pass, int layer, LayerState& s, const float* h);
  void router_backward(const Pass& pass, int layer, LayerState& s, const float* h);

  // backward.cpp
  void backward(const Pass& pass);  // from scratch.dx
  void mlp_backward(const Pass& pass, int layer, LayerState& s, const float* h);
  void keys_and_values_again(const Pass& pass, int layer, LayerState& s);
  void keys_and_values_backward(const Pass& pass, int layer, LayerState& s);
  void add_rows(const Tokens& tokens, const float* dx, float factor, Weight& table, const mesh::Range& own);
  void attention_block_backward(const Pass& pass, int layer, LayerState& s, bool wants_dx);
  void residual_again(std::int64_t n, int layer, const LayerState& s, float* h);
  void norm_again(std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, const float* inv, float* y);
  void head_norm_again(std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, const float* inv,
                       float* y);
  void head_norm_backward(std::int64_t rows, std::int64_t dim, const float* x, Weight* w, const float* inv, float* d);
  void norm_backward(std::int64_t rows, std::int64_t dim, const float* x, Weight& w, const float* inv, const float* dy,
                     float keep, float* dx);

  // loss.cpp
  float* logit_rows(std::int64_t rows);
  std::uint16_t* half_logit_rows(std::int64_t rows);
  void gather_for_head(const float* x, std::span<const int> rows);
  void cap_logits(std::int64_t rows, float* logits);
  void head_logits(const float* x, std::span<const int> rows, float* logits);
  LossSum loss(const Tokens& tokens, const float* x, int chunk, float gradient_scale, Want want);
  std::int64_t loss_rows(std::int64_t total, int chunk) const;
  bool streams_loss() const;
  void losses_of_parts(const Tokens& tokens, std::span<const int> rows, float* logits, float gradient_scale,
                       std::span<double> losses);
  void add_other_parts(std::span<float> highest, std::span<double> totals, std::span<float> of_target);
  double plain_loss(const Tokens& tokens, std::span<const int> rows, std::int64_t most, float gradient_scale);
  double streamed_loss(const Tokens& tokens, std::span<const int> rows, std::int64_t most, float gradient_scale);

  LossSum run(const TokenBatch& batch, const StepOptions& options, Want want);
  void hidden(const TokenBatch& batch, std::span<const float> from, std::span<float> out);
  void logits(const TokenBatch& batch, std::span<const float> from, std::span<float> out);  // empty: from the ids

  // Without effect on one device
  int vocab() const { return part ? part->whole_config().vocab : config.vocab; }  // of the whole model
  mesh::Range vocab_rows() const;  // that the device has of the embedding
  mesh::Range ple_vocab_rows() const;
  bool splits_vocab() const { return part && part->splits_vocab(); }
  void sum_parts(mesh::Block block, int layer, std::int64_t n, float* values);
  void enter_phase(mesh::Phase phase);
  void enter_storage(int what, mesh::Phase phase);
  void leave_storage(int what);
  void pass_storage(Want want);  // a step without tokens

  CollectiveHooks* const part;
  model::Config config;  // with a part: the device's own sizes
  model::TensorInventory inventory;
  Device& device;
  model::WeightType type;
  Use use;
  Gemm gemm;
  const VectorKernels& kernels = vector_kernels();
  Profile profile;

  std::vector<Weight> weights;  // by inventory index
  Buffer<std::byte> matrices;
  SlimRests slim_rests{device.arena};
  Buffer<float> norms, masters, gradients, adapter_values, widened;
  std::vector<LayerParts> layers;
  Weight *embedding = nullptr, *final_norm = nullptr;
  Weight *ple_embedding = nullptr, *ple_model_proj = nullptr, *ple_model_norm = nullptr;
  Weight unit_norm;  // the norm without weights
  float embed_scale = 1, ple_scale = 1;

  std::vector<Adapter> adapters;
  std::vector<LoraModule> modules;
  float lora_dropout = 0;
  bool full = false, trainable = false;
  std::vector<Parameter> parameters;

  std::vector<RopeSpec> rope_specs;
  std::vector<Buffer<float>> rope_tables;  // cos then sin, [positions, head_dim/2] each
  int rope_positions = 0;
  Buffer<float> attention_workspace, logit_chunk, logit_tops;
  Buffer<std::uint16_t> half_logits;
  std::int64_t attention_block_keys = 0;
  StepMemory memory;
};

}  // namespace mw::engine
