// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/model_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {
namespace {

using model::Role;

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

constexpr std::int64_t kLoadChunk = 1 << 22;  // elements: progress, and the size of a loader's reads

// The inputs of a projection: of the whole model, and the device's first one.
struct Inputs {
  std::int64_t whole, first;
};

Inputs inputs_of(const CollectiveHooks* hooks, const model::LoraTarget& t) {
  if (!hooks) return {t.in, 0};
  const model::Layer& l = hooks->whole_config().layers[static_cast<size_t>(t.layer)];
  const mesh::LocalLayer& own = hooks->local().layers[static_cast<size_t>(t.layer)];
  if (t.role == model::Role::o_proj) return {std::int64_t{l.heads} * l.head_dim, own.heads.begin * l.head_dim};
  if (t.role == model::Role::down_proj) return {l.mlp_dim, own.mlp.begin};
  return {t.in, 0};
}

}  // namespace

ModelWeights::ModelWeights(const model::Config& whole, Device& its_device, model::WeightType weight_type,
                           NetworkUse network_use, CollectiveHooks* its_hooks)
    : ModelShape(its_hooks ? whole : checked(whole), {weight_type, network_use},
                 its_hooks ? &its_hooks->local() : nullptr),
      hooks(its_hooks),
      device(its_device) {
  allocate_weights();
  embedding = required_weight(Role::embed, -1);
  final_norm = required_weight(Role::final_norm, -1);
  embed_scale = std::sqrt(static_cast<float>(config.dim));
  ple_embedding = find_weight(Role::ple_embed, -1);
  ple_model_proj = find_weight(Role::ple_model_proj, -1);
  ple_model_norm = find_weight(Role::ple_model_norm, -1);
  ple_scale = std::sqrt(static_cast<float>(config.ple_dim));
  if (type != model::WeightType::f32)
    for (float* scale : {&embed_scale, &ple_scale}) *scale = rounded_to_bf16(kernels, *scale);
  for (int layer = 0; layer < static_cast<int>(config.layers.size()); ++layer) connect_layer(layer);
}

void ModelWeights::allocate_weights() {
  const std::span<const model::Tensor> tensors = inventory.tensors();
  const WeightsLayout layout =
      lay_out_weights(*this, [&](size_t i) { return !hooks || !hooks->storage() || hooks->storage()->is_direct(i); });
  norms = DeviceBuffer<float>(device.arena, layout.norms);
  matrices = DeviceBuffer<std::byte>(device.arena, layout.matrices, touch_by_readers(layout));
  weights.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    Weight& w = weights[i];
    w.cols = tensors[i].hf_shape.back();
    w.rows = tensors[i].elements() / w.cols;
    w.vector = tensors[i].hf_shape.size() == 1;
    if (w.vector) w.offset = config.norm_form == model::NormForm::one_plus_w ? 1.0f : 0.0f;
    if (!layout.fields[i]) continue;
    if (w.vector)
      w.at.f32 = w.f32 = w.norm = field_at(norms.data(), layout.fields[i]);
    else
      place_matrix(w, tensors[i].matrix_rows(), field_at(matrices.data(), layout.fields[i]));
  }
  if (!layout.unit_norm) return;
  unit_norm.at.f32 = unit_norm.f32 = field_at(norms.data(), layout.unit_norm);
  unit_norm.cols = norms.data() + norms.size() - unit_norm.f32, unit_norm.offset = 1.0f;
}

// On a machine with several NUMA nodes each thread faults in the rows of a matrix that it reads in products of few
// rows, which are as fast as memory is. A page that two threads share goes to either. Rows of a format are of equal
// size, but for the scales of int8.
Touch ModelWeights::touch_by_readers(const WeightsLayout& layout) {
  if (device.pool.nodes() == 1) return {};
  return [&](std::byte* begin) {
    for (size_t i = 0; i < layout.fields.size(); ++i) {
      const model::Tensor& t = inventory.tensors()[i];
      if (!layout.fields[i] || t.hf_shape.size() == 1) continue;
      const std::int64_t cols = t.hf_shape.back(), rows = t.matrix_rows(), all = t.elements() / cols;
      const std::int64_t row_bytes = matrix_bytes(matrix_format(rows, cols), all, cols) / all;
      for (std::int64_t matrix = 0; matrix < all; matrix += rows)
        device.pool.parallel_for(rows, kPanelRows, [&](std::int64_t from, std::int64_t to) {
          touch_pages(begin + layout.fields[i].offset + (matrix + from) * row_bytes, (to - from) * row_bytes);
        });
    }
  };
}

void ModelWeights::place_matrix(Weight& w, std::int64_t matrix_rows, std::byte* at) {
  switch (matrix_format(matrix_rows, w.cols)) {
    case MatrixFormat::packed_f32:
      w.at.packed_f32 = w.packed_f32 = reinterpret_cast<float*>(at);
      return;
    case MatrixFormat::f32:
      w.at.f32 = w.f32 = reinterpret_cast<float*>(at);
      return;
    case MatrixFormat::int8:
      w.int8 = reinterpret_cast<std::int8_t*>(at);
      w.scales = reinterpret_cast<std::uint16_t*>(at + aligned_bytes(w.elements()));
      w.at.int8 = {w.int8, w.scales};
      return;
    case MatrixFormat::bf16x12:
      w.at.bf16x12 = w.bf16x12 = at;
      w.overflow = &bf16x12_overflow;
      return;
    case MatrixFormat::packed:
      w.at.packed = w.bf16 = reinterpret_cast<std::uint16_t*>(at);
      return;
    case MatrixFormat::bf16:
      w.at.bf16 = w.bf16 = reinterpret_cast<std::uint16_t*>(at);
      return;
  }
}

Weight* ModelWeights::find_weight(Role role, int layer) {
  const model::Tensor* tensor = inventory.find(role, layer);
  return tensor ? &weights[static_cast<size_t>(tensor - inventory.tensors().data())] : nullptr;
}

Weight* ModelWeights::required_weight(Role role, int layer) {
  Weight* weight = find_weight(role, layer);
  if (!weight)
    throw Error("ARCH", "the model's inventory lacks a tensor",
                {.file = config.id, .place = "layer " + std::to_string(layer)});
  return weight;
}

void ModelWeights::connect_layer(int layer) {
  LayerWeights& p = layers.emplace_back();
  p.input_norm = required_weight(Role::input_norm, layer);
  p.post_attention_norm = required_weight(Role::post_attention_norm, layer);
  p.pre_ffw_norm = required_weight(Role::pre_ffw_norm, layer);
  p.post_ffw_norm = required_weight(Role::post_ffw_norm, layer);
  p.q_norm = find_weight(Role::q_norm, layer);
  p.k_norm = find_weight(Role::k_norm, layer);
  p.ple_gate = find_weight(Role::ple_gate, layer);
  p.ple_proj = find_weight(Role::ple_proj, layer);
  p.post_ple_norm = find_weight(Role::post_ple_norm, layer);
  p.layer_scalar = find_weight(Role::layer_scalar, layer);
  p.router = find_weight(Role::router_proj, layer);
  p.router_scale = find_weight(Role::router_scale, layer);
  p.per_expert_scale = find_weight(Role::per_expert_scale, layer);
  p.experts_gate_up = find_weight(Role::experts_gate_up, layer);
  p.experts_down = find_weight(Role::experts_down, layer);
  p.moe_pre_norm = find_weight(Role::moe_pre_ffw_norm, layer);
  p.dense_post_norm = find_weight(Role::dense_post_ffw_norm, layer);
  p.moe_post_norm = find_weight(Role::moe_post_ffw_norm, layer);
  static constexpr Role kRoles[kProjections] = {Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                                                Role::gate_proj, Role::up_proj, Role::down_proj};
  for (int i = 0; i < kProjections; ++i) p.projection[i] = find_weight(kRoles[i], layer);
  const model::Layer& l = config.layers[static_cast<size_t>(layer)];
  if (config.v_norm && l.has_k) p.v_norm = &unit_norm;
}

void ModelWeights::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  std::int64_t total = 0, done = 0;
  for (const Weight& w : weights) total += w.elements();
  std::vector<float> wide;
  std::vector<std::uint16_t> bits;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    const model::Tensor& tensor = inventory.tensors()[i];
    const std::int64_t chunk = sizes::round_up(std::max<std::int64_t>(1, kLoadChunk / w.cols), kPanelRows) * w.cols;
    for (std::int64_t first = 0; first < w.elements(); first += chunk) {
      const std::int64_t n = std::min(chunk, w.elements() - first);
      const auto count = static_cast<size_t>(n);
      if (type == model::WeightType::f32) {
        if (w.packed_f32) wide.resize(count);
        const std::span<float> values = w.packed_f32 ? std::span(wide) : std::span(w.f32 + first, count);
        if (source.is_update && w.packed_f32) read_rows(w, first / w.cols, values);
        source.f32(i, first, values);
        check_finite(tensor, first, std::span<const float>(values));
        if (w.packed_f32)
          device.pool.parallel_for(n / w.cols, kPanelRows, [&](std::int64_t begin, std::int64_t end) {
            write_rows(kernels, w, first / w.cols + begin,
                       std::span<const float>(values).subspan(static_cast<size_t>(begin * w.cols),
                                                              static_cast<size_t>((end - begin) * w.cols)));
          });
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
          device.pool.parallel_for(n / w.cols, kPanelRows, [&](std::int64_t begin, std::int64_t end) {
            write_rows(kernels, w, first / w.cols + begin,
                       std::span<const std::uint16_t>(bits).subspan(static_cast<size_t>(begin * w.cols),
                                                                    static_cast<size_t>((end - begin) * w.cols)));
          });
        if (w.f32 && w.f32 != w.norm) kernels.widen(n, bits.data(), w.f32 + first);
      }
      done += n;
      if (progress) progress(static_cast<long>(done), static_cast<long>(total));
    }
  }
}

void ModelWeights::init_random(std::uint64_t seed) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    if (weights[i].vector) {
      std::fill_n(w.f32, w.cols, 1.0f - w.offset);
      std::fill_n(w.norm, w.cols, 1.0f - w.offset);
      continue;
    }
    const Rng rng{seed, i};
    device.pool.parallel_for(w.rows, kPanelRows, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> panel;
      for (std::int64_t r = begin; r < end; r += kPanelRows) {
        panel.resize(static_cast<size_t>(std::min(kPanelRows, end - r) * w.cols));
        for (size_t j = 0; j < panel.size(); ++j)
          panel[j] = kInitialDeviation * rng.normal_at(static_cast<std::uint64_t>(r * w.cols) + j);
        write_rows(kernels, w, r, std::span<const float>(panel));
        if (w.f32) std::copy(panel.begin(), panel.end(), w.f32 + r * w.cols);
      }
    });
  }
}

void ModelWeights::check_trainable(model::TrainMethod method) const {
  if (use == NetworkUse::inference && type != model::WeightType::int8)
    throw Error("TRAIN", "the weights were loaded for inference only", {.fix = "load the model for training"});
  if (type == model::WeightType::int8)
    throw Error("DTYPE", "int8 weights are for inference only",
                {.found = "int8", .expected = "f32 or bf16", .fix = "load the model as bf16 to train it"});
  if (method == model::TrainMethod::lora && adapters.empty())
    throw Error("LORA", "LoRA training needs adapters", {.fix = "add adapters first"});
  if (method == model::TrainMethod::full && !adapters.empty())
    throw Error("LORA", "full training of a model with adapters", {.fix = "merge or drop the adapters first"});
}

void ModelWeights::set_trainable(model::TrainMethod method) {
  check_trainable(method);
  parameters.clear();
  full = method == model::TrainMethod::full;
  trainable = true;
  if (type == model::WeightType::f32) change_f32_format();
  if (full) masters = {};
  const std::vector<ShardShape> tensors = whole_tensors(*this);
  const BufferLayout gradient = lay_out_gradients(*this, tensors);
  gradients = DeviceBuffer<float>(device.arena, gradient.allocation);
  if (!full) return list_adapter_parameters(std::span(gradient.fields).subspan(weights.size()));
  masters = DeviceBuffer<float>(device.arena, lay_out_masters(*this, tensors).allocation);
  for (size_t i = 0; i < weights.size(); ++i) {
    const BufferField& field = gradient.fields[i];
    if (!field) continue;
    Weight& w = weights[i];
    const auto count = static_cast<size_t>(w.elements());
    if (masters) {
      float* const master = field_at(masters.data(), field);
      w.f32 = master;
      read_rows(w, 0, {master, count});
    }
    w.gradient = field_at(gradients.data(), field);
    parameters.push_back({inventory.tensors()[i].name, {w.f32, count}, {w.gradient, count}, !w.vector});
  }
}

// Panels become rows where the weights are trained, and the other way round, in place: either holds a panel's rows in
// the same memory.
void ModelWeights::change_f32_format() {
  for (size_t i = 0; i < weights.size(); ++i) {
    Weight& w = weights[i];
    if (w.vector || (!w.f32 && !w.packed_f32)) continue;
    const bool to_panels = matrix_format(inventory.tensors()[i].matrix_rows(), w.cols) == MatrixFormat::packed_f32;
    if (to_panels == (w.packed_f32 != nullptr)) continue;
    const Weight before = w;
    float* const values = to_panels ? w.f32 : w.packed_f32;
    w.f32 = to_panels ? nullptr : values, w.packed_f32 = to_panels ? values : nullptr;
    w.at = {};
    w.at.f32 = w.f32, w.at.packed_f32 = w.packed_f32;
    device.pool.parallel_for(w.rows, kPanelRows, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> rows(static_cast<size_t>(kPanelRows * w.cols));
      for (std::int64_t r = begin; r < end; r += kPanelRows) {
        read_rows(before, r, rows);
        write_rows(kernels, w, r, std::span<const float>(rows));
      }
    });
  }
}

void ModelWeights::parameters_changed() {
  update_adapter_norms();
  if (!full || type == model::WeightType::f32) return;
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

std::span<const float> ModelWeights::weight_f32(size_t index) {
  const Weight& w = weights.at(index);
  const auto count = static_cast<size_t>(w.elements());
  if (w.f32) return {w.f32, count};
  if (const Allocation need = widened_weight(w.elements()); !serves(widened.allocation(), need)) {
    widened = {};
    widened = DeviceBuffer<float>(device.arena, need);
  }
  read_rows(w, 0, {widened.data(), count});
  return {widened.data(), count};
}

// --- Adapters ---

void ModelWeights::define_adapters(const options::Lora& options) {
  std::vector<Adapter> added;
  std::vector<LoraTensors> described;
  for (const ResolvedLora& r : resolve_lora(inventory, options)) {
    const model::LoraTarget& t = r.target;
    const Inputs inputs = inputs_of(hooks, t);
    added.push_back({.layer = t.layer,
                     .projection = projection_of(t.role),
                     .in = t.in,
                     .out = t.out,
                     .rank = r.rank,
                     .scaling = r.scaling,
                     .whole_in = inputs.whole,
                     .first_in = inputs.first});
    described.push_back({.target = t, .rank = r.rank, .alpha = r.alpha, .a = {}, .b = {}, .m = {}});
  }
  adapter_values = {};
  adapters = std::move(added);
  modules = std::move(described);
  lora_dropout = options.dropout;
  lora_b_rate = static_cast<float>(options.plus_ratio);
  has_magnitudes = options.dora;
  parameters.clear();
  gradients = {};
  trainable = full = false;
  for (LayerWeights& p : layers) std::fill(std::begin(p.adapter), std::end(p.adapter), nullptr);
  for (Weight& w : weights) w.gradient = nullptr;
  std::vector<mesh::AdapterShape> shapes;
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    layers[static_cast<size_t>(a.layer)].adapter[static_cast<size_t>(a.projection)] = &a;
    shapes.push_back({modules[i].target.role, a.layer, a.rank, options.dora});
  }
  set_adapters(shapes);
}

void ModelWeights::add_lora(const options::Lora& options, std::uint64_t seed) {
  define_adapters(options);
  const BufferLayout layout = lay_out_adapters(adapter_tensors(lora_shapes));
  adapter_values = DeviceBuffer<float>(device.arena, layout.allocation);
  auto field = layout.fields.begin(), norm = layout.fields.end() - (has_magnitudes ? std::ssize(adapters) : 0);
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    a.a = field_at(adapter_values.data(), *field++);
    a.b = field_at(adapter_values.data(), *field++);
    modules[i].a = {a.a, static_cast<size_t>(a.rank * a.in)};
    modules[i].b = {a.b, static_cast<size_t>(a.out * a.rank)};
    if (has_magnitudes) {
      a.m = field_at(adapter_values.data(), *field++);
      a.norm = field_at(adapter_values.data(), *norm++);
      modules[i].m = {a.m, static_cast<size_t>(a.out)};
    }
    const LoraInit start(seed, a.layer, a.projection, a.whole_in);
    for (std::int64_t row = 0; row < a.rank; ++row)
      for (std::int64_t j = 0; j < a.in; ++j) a.a[row * a.in + j] = start.at(row * a.whole_in + a.first_in + j);
  }
  update_adapter_norms();
  for (const Adapter& a : adapters)
    if (a.m) std::copy_n(a.norm, a.out, a.m);  // the model starts unchanged
  list_adapter_parameters({});
}

void ModelWeights::update_adapter_norms() {
  for (const Adapter& a : adapters)
    if (a.m)
      update_row_norms(device, *layers[static_cast<size_t>(a.layer)].projection[static_cast<size_t>(a.projection)], a);
}

void ModelWeights::list_adapter_parameters(std::span<const BufferField> fields) {
  parameters.clear();
  size_t field = 0;
  for (size_t i = 0; i < adapters.size(); ++i) {
    Adapter& a = adapters[i];
    const std::string name =
        "layers." + std::to_string(a.layer) + "." + std::string(model::hf_module_name(modules[i].target.role));
    const auto add = [&](float*& grad, const char* suffix, std::span<float> value, float rate) {
      grad = fields.empty() ? nullptr : field_at(gradients.data(), fields[field++]);
      parameters.push_back({name + suffix, value, {grad, grad ? value.size() : 0}, true, rate});
    };
    add(a.da, ".lora_a", modules[i].a, 1);
    add(a.db, ".lora_b", modules[i].b, lora_b_rate);
    if (a.m) add(a.dm, ".lora_m", modules[i].m, lora_b_rate);
  }
}

}  // namespace mw::engine
