// SPDX-License-Identifier: Apache-2.0
// A Gemma text model on one device: weights, LoRA adapters, exact forward and backward (reference: transformers
// modeling_gemma{2,3,4}.py with eager attention). Not thread-safe: one thread drives a Network; it uses the device's
// pool inside.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/runtime/device.h"
#include "core/engine/runtime/profile.h"
#include "core/engine/transformer/lora.h"
#include "core/model/inventory.h"
#include "core/model/types.h"

namespace mw::engine {

class CollectiveHooks;
struct Transformer;

// Row-major [rows, len]; see data::Batch. targets -1: no loss. segments -1: padding.
struct TokenBatch {
  int rows = 0, len = 0;
  std::span<const int> ids, targets, positions, segments;
};

struct StepOptions {
  model::Remat remat = model::Remat::none;
  int loss_chunk =
      256;  // rows of logits at once, fewer where they would need over 64 MiB; 0: all rows with loss at once
  // Share of the target that is spread evenly over the vocabulary (torch.nn.CrossEntropyLoss).
  float label_smoothing = 0;
  float gradient_scale = 1;        // multiplies d(sum of token losses): 1/number of loss tokens of the whole step
  std::uint64_t dropout_seed = 0;  // mixed with step, micro-batch, layer, module, element; remat redraws the same
  std::uint64_t step = 0, micro_batch = 0;
  int first_row = 0;  // of the whole batch, where these rows are a part of it
};

struct LossSum {
  double sum = 0;  // of -log p over tokens with loss, nats
  std::int64_t tokens = 0;
};

// A trainable tensor as the optimizer and checkpoints see it. value/grad are f32, same length.
struct TrainableTensor {
  std::string name;  // LoRA: "layers.0.q_proj.lora_a", or .lora_b, .lora_m; full: inventory name
  std::span<float> value, grad;
  bool decays = true;  // weight decay applies (not to norms)
  float rate = 1;      // its learning rate as a multiple of that of the step
};

// Fills elements [first, first+out.size()) of inventory tensor `index`.
struct WeightSource {
  std::function<void(size_t index, std::int64_t first, std::span<float> out)> f32;
  std::function<void(size_t index, std::int64_t first, std::span<std::uint16_t> out)> bf16;
  bool is_update = false;  // f32 changes the present values, which it is given; of f32 weights on one device
};

class Network {
 public:
  // Allocates the weights. Throws Error (ARCH) before that for sizes that cannot be or untied output heads.
  Network(const model::Config& config, Device& device, model::WeightType type, NetworkUse use = NetworkUse::training);
  // One device's part of a model; the hooks must outlive it. Every device of its group must make the same calls.
  Network(CollectiveHooks& part, Device& device, model::WeightType type);
  ~Network();
  // Throws Error (WEIGHTS) for NaN or infinity, naming tensor and element.
  void load(const WeightSource& source, const std::function<void(long done, long total)>& progress = {});
  void init_random(std::uint64_t seed);  // normal std 0.02; norms and scalars the identity

  void add_lora(const options::Lora& options, std::uint64_t seed);  // A kaiming_uniform(a=sqrt 5), B zero, as PEFT
  std::span<const LoraTensors> lora() const;
  void set_trainable(model::TrainMethod method);        // allocates gradients: of the adapters, or of every weight
  std::span<const TrainableTensor> parameters() const;  // trainable ones, fixed order
  void zero_gradients();
  void parameters_changed();  // after values were written: refreshes bf16 copies of f32 masters, and norms of DoRA

  // Adds gradients of gradient_scale * sum of losses; returns the unscaled sum.
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& options);
  LossSum evaluate(const TokenBatch& batch, const StepOptions& options);  // no dropout, no gradients
  // Last-position logits or all logits, for tests and inspection. out: [rows*len, vocab].
  void logits(const TokenBatch& batch, std::span<float> out);
  // For a model that is run some layers at a time, without padding: hidden states [rows*len, dim] behind the layers,
  // and logits, from hidden states before them. Empty `from`: from the ids, which are not read else. Not with PLE.
  void hidden(const TokenBatch& batch, std::span<const float> from, std::span<float> out);
  void logits_from(const TokenBatch& batch, std::span<const float> from, std::span<float> out);

  // Frees the buffers that steps, scoring and sampling keep for the next call.
  void release_step_memory();

  const model::Config& config() const;
  const model::TensorInventory& inventory() const;
  Device& device();
  std::span<const float> weight_f32(size_t inventory_index);  // f32 copy or view of a weight (for saving)
  // Time and calls of each kind of kernel since the last call.
  std::vector<KernelTime> take_profile();

  Transformer& transformer() { return *transformer_; }  // for the rooms of the engine

 private:
  std::unique_ptr<Transformer> transformer_;
};

}  // namespace mw::engine
