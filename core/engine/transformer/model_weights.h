// SPDX-License-Identifier: Apache-2.0
// The weights and adapters of a model, or of one device's part of it: storage, loading, initialisation and training
// state. The tensors of a layer depend on its model::Layer.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "core/engine/layout/weights_layout.h"
#include "core/engine/runtime/device.h"
#include "core/engine/transformer/collective_hooks.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/weight.h"

namespace mw::engine {

inline constexpr float kInitialDeviation = 0.02f;  // standard deviation of randomly initialised matrices

struct LayerWeights {  // null: the layer has no such tensor
  Weight *input_norm = nullptr, *post_attention_norm = nullptr, *pre_ffw_norm = nullptr, *post_ffw_norm = nullptr;
  Weight *q_norm = nullptr, *k_norm = nullptr, *v_norm = nullptr;
  Weight *ple_gate = nullptr, *ple_proj = nullptr, *post_ple_norm = nullptr;
  Weight* layer_scalar = nullptr;
  Weight *router = nullptr, *router_scale = nullptr, *per_expert_scale = nullptr;
  Weight *experts_gate_up = nullptr, *experts_down = nullptr;
  Weight *moe_pre_norm = nullptr, *dense_post_norm = nullptr, *moe_post_norm = nullptr;
  Weight* projection[kProjections] = {};
  Adapter* adapter[kProjections] = {};
};

struct ModelWeights : ModelShape {
  // With hooks: the device's part of a model on a mesh; `whole` is not read then. Throws what check_model() throws.
  ModelWeights(const model::Config& whole, Device& device, model::WeightType type, NetworkUse use,
               CollectiveHooks* hooks);

  // Throws Error WEIGHTS for NaN or infinity, with the tensor and the element.
  void load(const WeightSource& source, const std::function<void(long, long)>& progress);
  void init_random(std::uint64_t seed);
  void define_adapters(const options::Lora& options);  // without memory for their values
  void add_lora(const options::Lora& options, std::uint64_t seed);
  void check_trainable(model::TrainMethod method) const;
  void set_trainable(model::TrainMethod method);
  void parameters_changed();
  // An f32 view or copy of a weight; a copy is valid until the next call.
  std::span<const float> weight_f32(size_t index);

  // Points the weight at its memory. matrix_rows: rows of one of the matrices that the tensor stacks.
  void place_matrix(Weight& w, std::int64_t matrix_rows, std::byte* at);
  // The first column of its per-layer inputs that a layer gates on this device.
  std::int64_t first_ple() const { return hooks ? hooks->local().ple.begin : 0; }

  CollectiveHooks* const hooks;
  Device& device;
  const VectorKernels& kernels = vector_kernels();

  std::vector<Weight> weights;  // by inventory index
  DeviceBuffer<std::byte> matrices;
  OverflowTable bf16x12_overflow{device.arena};
  DeviceBuffer<float> norms, masters, gradients, adapter_values, widened;
  std::vector<LayerWeights> layers;
  Weight *embedding = nullptr, *final_norm = nullptr;
  Weight *ple_embedding = nullptr, *ple_model_proj = nullptr, *ple_model_norm = nullptr;
  Weight unit_norm;  // the gain of norms without weights
  float embed_scale = 1, ple_scale = 1;

  std::vector<Adapter> adapters;
  std::vector<LoraTensors> modules;
  float lora_dropout = 0, lora_b_rate = 1;
  bool has_magnitudes = false;  // the adapters are DoRA's
  bool trainable = false;
  std::vector<TrainableTensor> parameters;

 private:
  void allocate_weights();
  Touch touch_by_readers(const WeightsLayout& layout);  // valid as long as the layout
  // Lists the adapters as parameters; without `fields`, by adapter_tensors(), they have no gradients.
  void list_adapter_parameters(std::span<const BufferField> fields);
  void change_f32_format();
  void update_adapter_norms();
  Weight* find_weight(model::Role role, int layer);  // null: the model has none
  Weight* required_weight(model::Role role, int layer);
  void connect_layer(int layer);
};

}  // namespace mw::engine
