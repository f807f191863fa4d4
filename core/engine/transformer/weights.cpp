// SPDX-License-Identifier: Apache-2.0
// Core's weights: loading, initialisation, training and reading back.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/core.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kLoadChunk = 1 << 22;  // elements: progress, and the size of a loader's reads

}  // namespace

void Core::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
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

void Core::init_random(std::uint64_t seed) {
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

void Core::check_trainable(model::TrainMethod method) const {
  if (use == Use::inference && type != model::WeightType::int8)
    throw Error(
        {.id = "TRAIN", .message = "the weights were loaded for inference only", .fix = "load the model for training"});
  if (type == model::WeightType::int8)
    throw Error({.id = "DTYPE",
                 .message = "int8 weights are for inference only",
                 .found = "int8",
                 .expected = "f32 or bf16",
                 .fix = "load the model as bf16 to train it"});
  if (method == model::TrainMethod::lora && adapters.empty())
    throw Error({.id = "LORA", .message = "LoRA training needs adapters", .fix = "add adapters first"});
  if (method == model::TrainMethod::full && !adapters.empty())
    throw Error(
        {.id = "LORA", .message = "full training of a model with adapters", .fix = "merge or drop the adapters first"});
}

void Core::set_trainable(model::TrainMethod method) {
  check_trainable(method);
  memory = {};
  parameters.clear();
  full = method == model::TrainMethod::full;
  trainable = true;
  if (full) {
    masters = {};
    std::int64_t total = 0, master_total = 0;
    for (size_t i = 0; i < weights.size(); ++i)
      if (!inventory.tensors()[i].is_buffer) total += aligned_floats(weights[i].elements());
    if (type == model::WeightType::bf16) master_total = total;
    gradients = Buffer<float>(device.arena, MemoryCategory::gradients, static_cast<size_t>(total), "gradients");
    if (master_total > 0)
      masters = Buffer<float>(device.arena, MemoryCategory::optimizer, static_cast<size_t>(master_total),
                              "f32 master weights");
    float *gradient = gradients.data(), *master = masters.data();
    for (size_t i = 0; i < weights.size(); ++i) {
      if (inventory.tensors()[i].is_buffer) continue;
      Weight& w = weights[i];
      const auto count = static_cast<size_t>(w.elements());
      if (type == model::WeightType::bf16) {
        w.f32 = master;
        read_rows(w, 0, {master, count});
        master += aligned_floats(w.elements());
      }
      w.gradient = gradient;
      gradient += aligned_floats(w.elements());
      parameters.push_back({inventory.tensors()[i].name, {w.f32, count}, {w.gradient, count}, !weights[i].vector});
    }
    return;
  }
  std::int64_t total = 0;
  for (const Adapter& a : adapters) total += aligned_floats(a.rank * a.in) + aligned_floats(a.out * a.rank);
  gradients = Buffer<float>(device.arena, MemoryCategory::gradients, static_cast<size_t>(total), "adapter gradients");
  list_adapters(gradients.span());
}

void Core::parameters_changed() {
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
