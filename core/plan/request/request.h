// SPDX-License-Identifier: Apache-2.0
// Everything a plan depends on, as plain values: model, target, mesh, stack, work. Any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/hardware/target.h"
#include "core/mesh/layout/mesh.h"
#include "core/mesh/layout/sharding.h"
#include "core/model/config.h"
#include "core/plan/memory/memory.h"
#include "core/plan/request/efficiencies.h"

namespace mw::plan {

enum class Work {
  train,
  forward,  // log-probabilities of whole rows
  rollout,  // prompt, then token by token, all rows at once
  serve     // continuous batching
};

enum class DType { f32, bf16, fp8, int8 };
int bytes_of(DType type);

// How a stack writes the same network: what it keeps, copies and fuses. Values of a stack: stack_profile().
struct StackProfile {
  enum class Attention { materialised, fused };  // scores in memory, or in blocks that never leave the chip
  enum class Elementwise { eager, fused };       // one kernel and one buffer per operation, or what a compiler leaves
  enum class Residual { replicated, sharded };   // the stream between blocks over tp: whole, or split (Tunix, Megatron)
  enum class Parameters { stay, gathered };      // split weights are used in place, or gathered layer by layer (FSDP)
  enum class Caches { one, copied };             // decode writes the cache in place, or keeps argument and result
  enum class Forward { compiled, op_by_op };     // log-probabilities in one program, or one program per operation
  enum class OptimizerState { beside_weights, over_batch };  // as the trainables, or split over batch axes, too
  // Of a layer under remat: what its backward reads (XLA, PyTorch's checkpoints stop there), or all of it (reentrant).
  enum class Recomputation { needed, whole };
  // When gradients take their place: as the backward makes them, or from the start (XLA, contiguous buffers).
  enum class GradientBuffers { late, from_start };
  Attention attention = Attention::fused;
  Elementwise elementwise = Elementwise::fused;
  Residual residual = Residual::replicated;
  Parameters parameters = Parameters::stay;
  Caches caches = Caches::one;
  Forward forward = Forward::compiled;
  Recomputation recomputation = Recomputation::needed;
  GradientBuffers gradient_buffers = GradientBuffers::late;
  int prefetched_layers = 1;       // gathered ahead of the one in use
  double logit_bytes = 8;          // per logit of a training step at its peak, all copies
  double forward_logit_bytes = 4;  // the same without a backward
  DType scores = DType::bf16;      // that a compiled backward finds of materialised attention
  DType adapters = DType::bf16, gradients = DType::bf16, moments = DType::f32;
  DType full_weights = DType::bf16;  // stored, in full training
  bool master_weights = false;       // f32 copies beside them
  OptimizerState optimizer = OptimizerState::beside_weights;
  bool static_shapes = false;  // XLA: every row is padded to data.max_len
  std::string source{};
};
StackProfile stack_profile(Stack stack, model::Family family);

// Each row alone, padded to max_len or to the longest of its micro-batch; or several in one row of max_len.
enum class RowLayout { padded, ragged, packed };
struct Lengths {
  std::vector<std::pair<int, std::int64_t>> histogram{};  // tokens of a row, rows; ascending; empty: `mean` of max_len
  int max_len = 512;
  double mean = 0;               // of the rows that stay, where there is no histogram; 0: every row is max_len long
  std::int64_t count = 0;        // rows where there is no histogram
  std::int64_t packed_rows = 0;  // rows of max_len that hold them all; 0: estimated
  RowLayout rows = RowLayout::padded;
  double loss_share = 1;  // tokens that carry loss, of real ones
};

// What a layer under remat keeps beside its input instead of computing it again.
enum class SavedActivation { attention, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj };
enum class Offload { none, host };  // where what remat keeps lies
struct TrainWork {
  std::int64_t batch = 1;  // rows of one micro-batch over the whole mesh
  int accumulation = 1;
  std::int64_t steps = 0;  // optimizer steps; 0: from epochs
  double epochs = 0;
  double epoch_rows = 0;  // of one pass, held-out rows left out and packed; 0: as the lengths count them
  model::Remat remat = model::Remat::none;
  std::vector<SavedActivation> saved{};  // of a layer under remat
  Offload offload = Offload::none;
  int loss_chunk = 0;    // rows of logits at once on a device; 0: all
  bool dropout = false;  // of the adapters
};
struct ForwardWork {
  std::int64_t batch = 1;
  int len = 1024;
  int chunk = 0;  // rows of logits at once on a device; 0: all
  int top_k = 0;
};
struct RolloutWork {
  std::int64_t batch = 1;
  int prompt = 256, new_tokens = 1024;
  int cache_len = 0;  // tokens of cache per row; 0: prompt and new tokens
};
// When a server's host works out the next step: after the last one, or while it runs (vLLM's async scheduling).
enum class Scheduling { between_steps, ahead };
struct ServeWork {
  int max_num_seqs = 64, max_model_len = 4096, max_num_batched_tokens = 2048;
  double memory_utilisation = 0.9;
  std::optional<Bytes> kv_cache{};  // of a device, as the server sets it aside; else what memory_utilisation leaves
  int input_len = 1024, output_len = 512;  // of the requests that times are given for
  Scheduling scheduling = Scheduling::between_steps;
};

struct Request {
  model::Config model;
  hardware::Target target;
  hardware::Price price{};  // usd_per_chip_hour 0: unknown
  mesh::Mesh mesh;
  mesh::ShardingRules rules{};
  std::vector<mesh::RequestedPlacement> places{};
  Stack stack = Stack::tunix;
  StackProfile profile{};
  Efficiencies efficiencies{};
  std::string calibrated{};  // by the user: "calibrated by you, 2026-11-21, steps.json"; empty: as the program has them
  Work work = Work::train;
  model::TrainMethod method = model::TrainMethod::lora;
  int rank = 16;
  double alpha = 16;
  std::vector<model::Role>
      targets{};  // adapted projections, in every layer; empty and lora: none (a base model that only infers)
  // In place of `targets`: the projections that an expression matches, by layer.
  std::optional<std::vector<std::vector<model::Role>>> adapted{};
  DType weights = DType::bf16, kv = DType::bf16;
  DType products = DType::bf16;   // type that the layers multiply in: bf16, or fp8 where the chip has it
  bool sliding_window_kv = true;  // sliding layers keep their window only
  int other_models = 0;           // further copies of the base weights that stay on the devices (a reference model)
  Lengths lengths{};
  TrainWork train{};
  ForwardWork forward{};
  RolloutWork rollout{};
  ServeWork serve{};
};

// StackProfile and efficiencies filled in for stack, model and target.
void set_stack(Request& request, Stack stack);
// After set_stack(): Scheduling::ahead, and the share of the host in a step that goes with it.
void enable_async_scheduling(Request& request);
// What trains such a target when nothing is said: tunix on TPU, trl-fsdp on GPU, the engine on this machine.
Stack default_stack(hardware::Vendor vendor, Work work);

}  // namespace mw::plan
