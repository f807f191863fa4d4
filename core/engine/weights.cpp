// SPDX-License-Identifier: Apache-2.0
// Core's weights: allocation, loading, initialisation and reading back.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/checks.h"
#include "core/engine/core.h"

namespace mw::engine {
namespace {

using model::Role;

constexpr std::int64_t kLoadChunk = 1 << 22;  // elements: progress, and the size of a loader's reads

// Norms and scalars: few numbers, always f32.
bool is_vector(const model::Tensor& tensor) {
  return tensor.hf_shape.size() == 1;
}

const model::Config& checked(const model::Config& config) {
  check_model(config);
  return config;
}

float rounded_to_bf16(const VectorKernels& kernels, float x) {
  std::uint16_t half;
  kernels.narrow(1, &x, &half);
  kernels.widen(1, &half, &x);
  return x;
}

RopeSpec rope_of(const model::Layer& l) {
  const float share = l.rope == model::Rope::proportional ? l.rope_factor : 1.0f;
  return {.theta = l.rope_theta,
          .divisor = l.rope == model::Rope::linear ? l.rope_factor : 1.0f,
          .head_dim = l.head_dim,
          .pairs = static_cast<int>(share * static_cast<float>(l.head_dim)) / 2};
}

int widest_head(const model::Config& config) {
  int widest = 0;
  for (const model::Layer& l : config.layers) widest = std::max(widest, l.head_dim);
  return widest;
}

std::int64_t rounded_up(std::int64_t n) {
  return (n + 15) / 16 * 16;
}

}  // namespace

Core::Core(const model::Config& c, Device& d, WeightType t)
    : config(checked(c)), inventory(config), device(d), type(t), gemm(d, t) {
  const std::span<const model::Tensor> tensors = inventory.tensors();
  std::int64_t norm_floats = 0;
  for (const model::Tensor& tensor : tensors)
    if (is_vector(tensor)) norm_floats += rounded_up(tensor.elements());
  const std::int64_t unit = config.v_norm ? rounded_up(widest_head(config)) : 0;
  norm_floats += unit;
  norms = Buffer<float>(device.arena, MemoryCategory::weights, static_cast<size_t>(norm_floats), "norms");
  weights.resize(tensors.size());
  float* next_norm = norms.data();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Weight& w = weights[i];
    const auto count = static_cast<size_t>(tensors[i].elements());
    w.cols = tensors[i].hf_shape.back();
    w.rows = tensors[i].elements() / w.cols;
    const bool panels = packable(tensors[i].matrix_rows(), w.cols);
    if (is_vector(tensors[i])) {
      w.f32 = w.norm = next_norm;
      w.offset = config.norm_form == model::NormForm::one_plus_w ? 1.0f : 0.0f;
      next_norm += rounded_up(w.cols);
    } else if (type == WeightType::f32) {
      w.f32 =
          weight_f32_buffers.emplace_back(device.arena, MemoryCategory::weights, count, tensors[i].name.c_str()).data();
    } else if (type == WeightType::int8 && panels) {
      const auto scales = static_cast<size_t>(w.rows * groups_of(w.cols));
      const char* label = tensors[i].name.c_str();
      w.int8 = weight_int8_buffers.emplace_back(device.arena, MemoryCategory::weights, count, label).data();
      w.scales = weight_bf16_buffers.emplace_back(device.arena, MemoryCategory::weights, scales, label).data();
    } else {
      w.bf16 = weight_bf16_buffers.emplace_back(device.arena, MemoryCategory::weights, count, tensors[i].name.c_str())
                   .data();
    }
    const bool packed = w.bf16 && gemm.packs() && panels;
    w.at = {.f32 = w.f32,
            .bf16 = packed ? nullptr : w.bf16,
            .packed = packed ? w.bf16 : nullptr,
            .int8 = {w.int8, w.scales}};
  }
  if (unit > 0) unit_norm.f32 = next_norm, unit_norm.cols = unit, unit_norm.offset = 1.0f;
  unit_norm.at.f32 = unit_norm.f32;
  const auto optional_part = [&](Role role, int layer) -> Weight* {
    const model::Tensor* tensor = inventory.find(role, layer);
    return tensor ? &weights[static_cast<size_t>(tensor - tensors.data())] : nullptr;
  };
  const auto part = [&](Role role, int layer) {
    Weight* weight = optional_part(role, layer);
    if (!weight)
      throw Error({.id = "ARCH",
                   .message = "the model's inventory lacks a tensor",
                   .file = config.id,
                   .place = "layer " + std::to_string(layer)});
    return weight;
  };
  embedding = part(Role::embed, -1);
  final_norm = part(Role::final_norm, -1);
  embed_scale = std::sqrt(static_cast<float>(config.dim));
  ple_embedding = optional_part(Role::ple_embed, -1);
  ple_model_proj = optional_part(Role::ple_model_proj, -1);
  ple_model_norm = optional_part(Role::ple_model_norm, -1);
  ple_scale = std::sqrt(static_cast<float>(config.ple_dim));
  if (type != WeightType::f32)
    for (float* scale : {&embed_scale, &ple_scale}) *scale = rounded_to_bf16(kernels, *scale);
  for (int layer = 0; layer < static_cast<int>(config.layers.size()); ++layer) {
    LayerParts& p = layers.emplace_back();
    p.input_norm = part(Role::input_norm, layer);
    p.post_attention_norm = part(Role::post_attention_norm, layer);
    p.pre_ffw_norm = part(Role::pre_ffw_norm, layer);
    p.post_ffw_norm = part(Role::post_ffw_norm, layer);
    p.q_norm = optional_part(Role::q_norm, layer);
    p.k_norm = optional_part(Role::k_norm, layer);
    p.ple_gate = optional_part(Role::ple_gate, layer);
    p.ple_proj = optional_part(Role::ple_proj, layer);
    p.post_ple_norm = optional_part(Role::post_ple_norm, layer);
    p.layer_scalar = optional_part(Role::layer_scalar, layer);
    p.router = optional_part(Role::router_proj, layer);
    p.router_scale = optional_part(Role::router_scale, layer);
    p.per_expert_scale = optional_part(Role::per_expert_scale, layer);
    p.experts_gate_up = optional_part(Role::experts_gate_up, layer);
    p.experts_down = optional_part(Role::experts_down, layer);
    p.moe_pre_norm = optional_part(Role::moe_pre_ffw_norm, layer);
    p.dense_post_norm = optional_part(Role::dense_post_ffw_norm, layer);
    p.moe_post_norm = optional_part(Role::moe_post_ffw_norm, layer);
    static constexpr Role kRoles[kProjections] = {Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                                                  Role::gate_proj, Role::up_proj, Role::down_proj};
    for (int i = 0; i < kProjections; ++i) p.projection[i] = optional_part(kRoles[i], layer);
    const model::Layer& l = config.layers[static_cast<size_t>(layer)];
    if (config.v_norm && l.has_k) p.v_norm = &unit_norm;
    if (l.kv_donor >= 0) layers[static_cast<size_t>(l.kv_donor)].lends = true;
    const RopeSpec spec = rope_of(l);
    const auto found = std::find(rope_specs.begin(), rope_specs.end(), spec);
    p.rope = static_cast<int>(found - rope_specs.begin());
    if (found == rope_specs.end()) rope_specs.push_back(spec);
  }
}

void Core::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  std::int64_t total = 0, done = 0;
  for (const Weight& w : weights) total += w.elements();
  std::vector<float> wide;
  std::vector<std::uint16_t> bits;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    const model::Tensor& tensor = inventory.tensors()[i];
    const std::int64_t chunk = std::max<std::int64_t>(1, kLoadChunk / w.cols) * w.cols;  // whole rows
    for (std::int64_t first = 0; first < w.elements(); first += chunk) {
      const std::int64_t n = std::min(chunk, w.elements() - first);
      const auto count = static_cast<size_t>(n);
      if (type == WeightType::f32) {
        source.f32(i, first, {w.f32 + first, count});
        check_finite(tensor, first, std::span<const float>(w.f32 + first, count));
      } else {
        bits.resize(count);
        if (source.bf16) {
          source.bf16(i, first, bits);
        } else {
          wide.resize(count);
          source.f32(i, first, wide);
          kernels.narrow(n, wide.data(), bits.data());
        }
        check_finite(tensor, first, bits);
        if (w.norm)
          kernels.widen(n, bits.data(), w.norm + first);
        else
          write_rows(kernels, w, first / w.cols, std::span<const std::uint16_t>(bits));
        if (w.f32 && w.f32 != w.norm) kernels.widen(n, bits.data(), w.f32 + first);
      }
      done += n;
      if (progress) progress(static_cast<long>(done), static_cast<long>(total));
    }
  }
}

void Core::init_random(std::uint64_t seed) {
  constexpr float kStd = 0.02f;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    if (is_vector(inventory.tensors()[i])) {
      std::fill_n(w.f32, w.cols, 1.0f - w.offset);
      std::fill_n(w.norm, w.cols, 1.0f - w.offset);
      continue;
    }
    const Rng rng{seed, i};
    device.pool.parallel_for(w.rows, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> row(static_cast<size_t>(w.cols));
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t j = 0; j < w.cols; ++j)
          row[static_cast<size_t>(j)] = kStd * rng.normal_at(static_cast<std::uint64_t>(r * w.cols + j));
        write_rows(kernels, w, r, std::span<const float>(row));
        if (w.f32) std::copy(row.begin(), row.end(), w.f32 + r * w.cols);
      }
    });
  }
}

void Core::set_trainable(Method method) {
  if (type == WeightType::int8)
    throw Error({.id = "DTYPE",
                 .message = "int8 weights are for inference only",
                 .found = "int8",
                 .expected = "f32 or bf16",
                 .fix = "load the model as bf16 to train it"});
  if (method == Method::lora && adapters.empty())
    throw Error({.id = "LORA", .message = "LoRA training needs adapters", .fix = "add adapters first"});
  if (method == Method::full && !adapters.empty())
    throw Error(
        {.id = "LORA", .message = "full training of a model with adapters", .fix = "merge or drop the adapters first"});
  memory = {};
  parameters.clear();
  full = method == Method::full;
  trainable = true;
  if (full) {
    masters = {};
    std::int64_t total = 0, master_total = 0;
    for (size_t i = 0; i < weights.size(); ++i)
      if (!inventory.tensors()[i].is_buffer) total += rounded_up(weights[i].elements());
    if (type == WeightType::bf16) master_total = total;
    gradients = Buffer<float>(device.arena, MemoryCategory::gradients, static_cast<size_t>(total), "gradients");
    if (master_total > 0)
      masters = Buffer<float>(device.arena, MemoryCategory::optimizer, static_cast<size_t>(master_total),
                              "f32 master weights");
    float *gradient = gradients.data(), *master = masters.data();
    for (size_t i = 0; i < weights.size(); ++i) {
      if (inventory.tensors()[i].is_buffer) continue;
      Weight& w = weights[i];
      const auto count = static_cast<size_t>(w.elements());
      if (type == WeightType::bf16) {
        w.f32 = master;
        read_rows(w, 0, {master, count});
        master += rounded_up(w.elements());
      }
      w.gradient = gradient;
      gradient += rounded_up(w.elements());
      parameters.push_back(
          {inventory.tensors()[i].name, {w.f32, count}, {w.gradient, count}, !is_vector(inventory.tensors()[i])});
    }
    return;
  }
  std::int64_t total = 0;
  for (const Adapter& a : adapters) total += rounded_up(a.rank * a.in) + rounded_up(a.out * a.rank);
  gradients = Buffer<float>(device.arena, MemoryCategory::gradients, static_cast<size_t>(total), "adapter gradients");
  float* next = gradients.data();
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    const std::string name =
        "layers." + std::to_string(a.layer) + "." + std::string(model::hf_module_name(modules[i].target.role));
    const auto place = [&](float*& grad, const char* suffix, std::span<float> value) {
      grad = next;
      next += rounded_up(static_cast<std::int64_t>(value.size()));
      parameters.push_back({name + suffix, value, {grad, value.size()}, true});
    };
    place(a.da, ".lora_a", modules[i].a);
    place(a.db, ".lora_b", modules[i].b);
  }
}

void Core::parameters_changed() {
  if (!full || type == WeightType::f32) return;
  std::vector<std::uint16_t> bits;
  for (const Weight& w : weights) {
    if (!w.gradient) continue;
    if (w.norm) {
      bits.resize(static_cast<size_t>(w.cols));
      kernels.narrow(w.cols, w.f32, bits.data());
      kernels.widen(w.cols, bits.data(), w.norm);
      continue;
    }
    device.pool.parallel_for(w.rows, kPanelRows, [&](std::int64_t begin, std::int64_t end) {
      write_rows(kernels, w, begin,
                 std::span<const float>(w.f32 + begin * w.cols, static_cast<size_t>((end - begin) * w.cols)));
    });
  }
}

std::span<const float> Core::weight_f32(size_t index) {
  const Weight& w = weights.at(index);
  const auto count = static_cast<size_t>(w.elements());
  if (w.f32) return {w.f32, count};
  if (widened.size() < count) {
    widened = {};
    widened = Buffer<float>(device.arena, MemoryCategory::workspace, count, "widened weight");
  }
  read_rows(w, 0, {widened.data(), count});
  return {widened.data(), count};
}

}  // namespace mw::engine
