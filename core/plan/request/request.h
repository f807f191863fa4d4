// SPDX-License-Identifier: Apache-2.0
// The input of a prediction: model, target, mesh, software stack and workload. Plain values; any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/layout/phases.h"
#include "core/hardware/target.h"
#include "core/mesh/layout/layout.h"
#include "core/mesh/layout/placement.h"
#include "core/model/config.h"
#include "core/options/adapters.h"
#include "core/options/serving.h"
#include "core/options/training.h"
#include "core/plan/request/efficiencies.h"
#include "core/plan/request/stack_profiles.h"

namespace mw::plan {

enum class Work {
  train,
  forward,  // log-probabilities of whole rows
  rollout,  // prompt, then token by token, all rows at once
  serve     // continuous batching
};

// padded: every row to max_len; ragged: to the longest row of its micro-batch; packed: several examples per row.
enum class RowLayout { padded, ragged, packed };
struct Lengths {
  std::vector<std::pair<int, std::int64_t>> histogram{};  // tokens of a row, rows; ascending; empty: `mean` of max_len
  int max_len = 512;
  double mean = 0;               // tokens of a row, without a histogram; 0: every row has max_len
  std::int64_t count = 0;        // rows, without a histogram
  std::int64_t packed_rows = 0;  // rows of max_len that hold them all; 0: estimated
  RowLayout rows = RowLayout::padded;
  bool computes_padding = true;  // false: the engine, which computes real tokens only, whatever the layout
};

struct TrainWork : options::KeptActivations {
  std::int64_t batch = 1;  // rows of one micro-batch over the whole mesh
  int accumulation = 1;
  std::int64_t steps = 0;  // optimizer steps; 0: from epochs
  double epochs = 0;
  double epoch_rows = 0;  // rows of an epoch, packed, without held-out ones; 0: from the lengths
  double loss_share =
      1;  // of the tokens whose logits are computed; below 1 only where the engine runs and has the data
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
// When a server's host schedules a step: after the previous one, or while it runs (vLLM's async scheduling).
enum class Scheduling { between_steps, ahead };
struct ServeWork : options::ServerLimits {
  std::optional<Bytes>
      kv_cache{};  // per device, if the server reserves a fixed size; else derived from memory_utilisation
  Scheduling scheduling = Scheduling::between_steps;
  int replicas = 1;  // equal servers behind a router; a plan is of one of them
};

// The largest micro-batch of a device of the engine.
struct EngineRows {
  std::int64_t tokens = 0;  // that it holds
  std::int64_t loss_tokens = 0;
  int longest = 0;               // tokens of the longest example
  std::int64_t real_tokens = 0;  // without padding
};
struct Request;
// Work of the engine on this machine: what its exact memory follows from beside the rest of the request.
struct EngineWork {
  int threads = 1;                               // of a run on one device; each of several devices has one
  std::vector<mesh::AdapterShape> lora{};        // with a rank for each
  std::vector<EngineRows> rows{}, evaluation{};  // of each share of the batch, if the data was read
  std::string read{};                            // where they are from; empty: every row has lengths.max_len tokens
  std::int64_t eval_rows = 0;                    // held-out rows of an evaluation; 0: none
  int prompt_tokens = 0, generate_tokens = 0;    // longest sampled prompt, and with its answer; 0: no sampling
  engine::ServingWork server{};
  // Sets what follows from the data and the server's settings, after batch, rows, mesh or sequences of the request have
  // changed. Empty: nothing does. Any thread. Throws what makes the settings impossible.
  std::function<void(Request&)> update{};
};

struct Request {
  model::Config model;
  hardware::Target target;
  hardware::Price price{};          // usd_per_chip_hour 0: unknown, or with a source: not published
  std::optional<int> price_days{};  // age of the price; empty: not dated
  mesh::Mesh mesh;
  mesh::ShardingRules rules{};
  std::vector<mesh::RequestedPlacement> places{};
  model::Stack stack = model::Stack::tunix;
  StackProfile profile{};
  Efficiencies efficiencies{};
  std::string calibrated{};  // source of a user's calibration: "calibrated by you, 2026-11-21, steps.json"
  Work work = Work::train;
  model::TrainMethod method = model::TrainMethod::lora;
  options::Lora lora{};
  // Adapted projections, in every layer; empty and lora: none (a base model that only infers).
  std::vector<model::Role> targets{};
  // Replaces `targets`: the projections that an expression matches, by layer.
  std::optional<std::vector<std::vector<model::Role>>> adapted{};
  model::DType weights = model::DType::bf16, kv = model::DType::bf16;
  model::DType products = model::DType::bf16;  // type of the matrix products: bf16, or fp8 if the chip supports it
  bool sliding_window_kv = true;               // sliding layers keep only their window
  int other_models = 0;  // further copies of the base weights on the devices, such as a reference model
  Lengths lengths{};
  TrainWork train{};
  ForwardWork forward{};
  RolloutWork rollout{};
  ServeWork serve{};
  std::optional<EngineWork> engine{};  // if the engine does the work on this machine
};

model::WeightType weight_type(model::DType type);  // of the engine
model::DType dtype_of(model::WeightType weights);
// Bytes of an element of the activations: of f32 weights 4, of all others 2.
int activation_bytes(const Request& request);
// FLOP/s of a chip in products of the type of the weights, bf16 or f32. XLA multiplies f32 on TPUs in one bf16 pass
// unless told otherwise (jax_default_matmul_precision); PyTorch multiplies it without TF32
// (torch.backends.cuda.matmul.allow_tf32).
double products_peak(const Request& request);
Efficiency fp8_share(const Request& request);  // of the fp8 peak: that of bf16 products, scaled
// The type in which a trained base is stored: the stack's, or f32 if the weights are f32.
model::DType full_weights(const Request& request);
// Sets the type of the weights; adapters, gradients and moments that a stack keeps in the base's type follow it.
void set_weights(Request& request, model::DType weights);

// Fills in profile and efficiencies for stack, model and target.
void set_stack(Request& request, model::Stack stack);
// The devices over which the experts of a layer are shared out whole (mesh axis "ep").
int expert_ways(const Request& request);
// Sets Scheduling::ahead and the step overhead that goes with it. Call after set_stack().
void enable_async_scheduling(Request& request);
// The default stack for a vendor and workload: to train, tunix on TPUs, trl-fsdp on GPUs and the engine on CPUs.
model::Stack default_stack(hardware::Vendor vendor, Work work);

// Throws Error PLAN-SIZE for a request that has no answer on any mesh: no model, an unknown chip, a size beyond its
// limit; PLAN-OPTION for what the stack or the chip does not offer, such as products in fp8.
void check_request(const Request& request);

}  // namespace mw::plan
