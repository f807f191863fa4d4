// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/shards.h"

#include <algorithm>

namespace mw::engine {
namespace {

using mesh::Range;
using model::Role;

std::int64_t floats_of(const Region& region) {
  return aligned_floats(region.elements());
}

// Columns of a row, to or from where they lie without gaps.
template <class Values>
void take_columns(const Region& region, const Values* row, Values* out) {
  for (const Range& c : region.cols) out = std::copy(row + c.begin, row + c.end, out);
}

void start_lora(const Region& region, const LoraStart& start, std::int64_t cols, float* out) {
  for (const Range& r : region.rows)
    for (std::int64_t y = r.begin; y < r.end; ++y)
      for (const Range& c : region.cols)
        for (std::int64_t x = c.begin; x < c.end; ++x) *out++ = start.at(y * cols + x);
}

}  // namespace

Shards::Shards(MeshCollectives& part, const mesh::Placement& placement,
               std::span<const std::shared_ptr<const Flow>> flows)
    : part_(part), placement_(placement), device_(part.port().device()) {
  for (size_t i = 0; i < flows.size(); ++i) held_.push_back({.placed = &placement.tensors[i], .flow = flows[i].get()});
}

void Shards::attach(Core& core, std::span<Shards* const> peers) {
  core_ = &core;
  peers_ = peers;
  gathered_.assign(core.layers.size() + 2, {});
  std::int64_t bytes = 0;
  const auto lay_out = [&](std::byte* at) {
    bytes = 0;
    for (size_t i = 0; i < held_.size(); ++i) {
      Held& h = held_[i];
      h.used = &core.weights[i];
      if (h.flow->direct) continue;
      Weight& w = h.shard;
      w.rows = stored(h).height(), w.cols = stored(h).width();
      w.vector = h.used->vector, w.offset = h.used->offset;
      std::byte* const to = at ? at + bytes : nullptr;
      if (w.elements() == 0) continue;
      if (w.vector && core.type == model::WeightType::bf16) {
        w.bf16 = reinterpret_cast<std::uint16_t*>(to);
        bytes += sizes::aligned_bytes(w.cols * 2);
      } else {
        bytes += core.place(w, w.rows, to);
        if (w.vector) w.norm = w.f32;
      }
    }
  };
  lay_out(nullptr);
  shards_ = Buffer<std::byte>(core.device.arena, MemoryCategory::weights, static_cast<size_t>(bytes), "weight shards");
  lay_out(shards_.data());
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].flow->direct) continue;
    const mesh::PlacedTensor& p = *held_[i].placed;
    gathered_[index_of(p)].push_back(i);
    if (p.role == Role::embed) gathered_[index_of(kHead)].push_back(i);
  }
  allocate_working();
}

// Where Core finds what it computes with, from `at` on; returns its bytes. Null: only asked.
std::int64_t Shards::place_used(Held& h, std::byte* at) const {
  Weight& w = *h.used;
  if (h.value_at) {
    *h.value_at = w.f32 = reinterpret_cast<float*>(at);
    return sizes::aligned_bytes(w.elements() * 4);
  }
  if (w.vector) {
    w.at.f32 = w.norm = reinterpret_cast<float*>(at);
    return sizes::aligned_bytes(w.cols * 4);
  }
  return core_->place(w, core_->inventory.tensors()[static_cast<size_t>(&w - core_->weights.data())].matrix_rows(), at);
}

void Shards::allocate_working() {
  std::int64_t most = 0;
  for (const std::vector<size_t>& part : gathered_) {
    std::int64_t bytes = 0;
    for (const size_t i : part) bytes += place_used(held_[i], nullptr);
    most = std::max(most, bytes);
  }
  working_ = {};
  working_ = Buffer<std::byte>(core_->device.arena, MemoryCategory::collectives, static_cast<size_t>(most),
                               "gathered weights");
}

// --- Values ---

template <class Values>
void Shards::put_row(Weight& w, std::int64_t row, std::span<const Values> values) {
  constexpr bool kBits = std::is_same_v<Values, std::uint16_t>;
  const VectorKernels& kernels = core_->kernels;
  const auto n = static_cast<std::int64_t>(values.size());
  const auto to_floats = [&](float* out) {
    if constexpr (kBits)
      kernels.widen(n, values.data(), out);
    else
      std::copy(values.begin(), values.end(), out);
  };
  if (!w.vector) {
    write_rows(kernels, w, row, values);
  } else if (w.norm) {
    to_floats(w.norm);
  } else if (w.bf16) {
    if constexpr (kBits)
      std::copy(values.begin(), values.end(), w.bf16);
    else
      kernels.narrow(n, values.data(), w.bf16);
  }
  if (w.f32 && w.f32 != w.norm) to_floats(w.f32 + row * w.cols);
}

// `values`: whole rows of the tensor, from row `first` on.
template <class Values>
void Shards::put_rows(Held& h, std::int64_t first, std::span<const Values> values) {
  const Region& region = stored(h);
  Weight& w = shard(h);
  const std::int64_t cols = h.flow->cols, last = first + static_cast<std::int64_t>(values.size()) / cols;
  std::vector<Values> row(static_cast<size_t>(region.width()));
  std::int64_t before = 0;
  for (const Range& r : region.rows) {
    for (std::int64_t i = std::max(first, r.begin); i < std::min(last, r.end); ++i) {
      take_columns(region, values.data() + (i - first) * cols, row.data());
      put_row<Values>(w, before + i - r.begin, row);
    }
    before += r.end - r.begin;
  }
}

void Shards::load_rows(size_t weight, std::int64_t first, std::span<const float> values) {
  put_rows(held_[weight], first, values);
}
void Shards::load_rows(size_t weight, std::int64_t first, std::span<const std::uint16_t> values) {
  put_rows(held_[weight], first, values);
}

void Shards::init_random(std::uint64_t seed) {
  for (size_t i = 0; i < core_->weights.size(); ++i) {
    Held& h = held_[i];
    Weight& w = shard(h);
    const Region& region = stored(h);
    const Rng rng{seed, i};
    std::vector<float> row(static_cast<size_t>(region.width()));
    std::int64_t at = 0;
    for (const Range& r : region.rows)
      for (std::int64_t y = r.begin; y < r.end; ++y, ++at) {
        float* next = row.data();
        for (const Range& c : region.cols)
          for (std::int64_t x = c.begin; x < c.end; ++x)
            *next++ = w.vector ? 1.0f - w.offset
                               : kInitialDeviation * rng.normal_at(static_cast<std::uint64_t>(y * h.flow->cols + x));
        put_row<float>(w, at, row);
      }
  }
}

void Shards::add_lora(const LoraOptions& options, std::uint64_t seed,
                      std::span<const std::shared_ptr<const Flow>> flows) {
  core_->make_adapters(options);
  trained_.clear();
  partials_ = {};
  held_.resize(core_->weights.size());
  for (std::vector<size_t>& part : gathered_) std::erase_if(part, [&](size_t i) { return i >= held_.size(); });
  adapter_forms_.assign(flows.size(), {});
  std::int64_t total = 0;
  for (const auto& flow : flows) total += floats_of(flow->stored[static_cast<size_t>(device_)]);
  core_->adapter_values =
      Buffer<float>(core_->device.arena, MemoryCategory::adapters, static_cast<size_t>(total), "LoRA adapters");
  float* next = core_->adapter_values.data();
  for (size_t i = 0; i < flows.size(); ++i) {
    Adapter& a = core_->adapters[i / 2];
    const bool is_a = i % 2 == 0;
    Held& h = held_.emplace_back();
    h.placed = &placement_.adapters[i], h.flow = flows[i].get(), h.value_at = is_a ? &a.a : &a.b;
    h.used = &adapter_forms_[i];
    h.used->rows = is_a ? a.rank : a.out, h.used->cols = is_a ? a.in : a.rank;
    const Region& region = stored(h);
    h.shard.rows = region.height(), h.shard.cols = region.width();
    shard(h).f32 = next;
    if (h.flow->direct)
      *h.value_at = next;
    else
      gathered_[index_of(a.layer)].push_back(held_.size() - 1);
    if (is_a) start_lora(region, LoraStart(seed, a.layer, a.projection, a.whole_in), a.whole_in, next);
    trained_.push_back(held_.size() - 1);
    core_->parameters.push_back({h.placed->name, {next, static_cast<size_t>(region.elements())}, {}, true});
    next += floats_of(region);
  }
  allocate_working();
}

// --- Training ---

// What the gradient of a tensor lies in until it is summed.
std::int64_t Shards::partial_floats(const Held& h) const {
  return h.flow->sums ? aligned_floats(h.used->elements()) : 0;
}
std::int64_t Shards::gradient_floats(const Held& h) const {
  return h.flow->sums ? floats_of(stored(h)) : aligned_floats(h.used->elements());
}

void Shards::set_trainable(model::TrainMethod method) {
  core_->check_trainable(method);
  Core& c = *core_;
  c.memory = {};
  c.parameters.clear();
  c.full = method == model::TrainMethod::full;
  c.trainable = true;
  c.masters = {}, c.gradients = {}, partials_ = {};
  trained_.clear();
  for (size_t i = 0; i < held_.size(); ++i)
    if (c.full ? !c.inventory.tensors()[i].is_buffer : i >= c.weights.size()) trained_.push_back(i);
  summed_.assign(gathered_.size(), {});
  std::int64_t gradients = 0, masters = 0;
  for (const size_t i : trained_) {
    const Held& h = held_[i];
    gradients += gradient_floats(h);
    masters += floats_of(stored(h));
    if (h.flow->sums) summed_[index_of(*h.placed)].push_back(i);
  }
  if (c.full && c.type == model::WeightType::bf16)
    c.masters =
        Buffer<float>(c.device.arena, MemoryCategory::optimizer, static_cast<size_t>(masters), "f32 master weights");
  c.gradients = Buffer<float>(c.device.arena, MemoryCategory::gradients, static_cast<size_t>(gradients),
                              c.full ? "gradients" : "adapter gradients");
  float *gradient = c.gradients.data(), *master = c.masters.data();
  for (const size_t i : trained_) {
    Held& h = held_[i];
    Weight& w = shard(h);
    const auto count = static_cast<size_t>(stored(h).elements());
    if (c.masters) {
      w.f32 = w.norm;  // not an earlier master
      read_shard(h, {master, count});
      w.f32 = master;
      master += floats_of(stored(h));
    }
    h.gradient = gradient;
    gradient += gradient_floats(h);
    c.parameters.push_back(
        {h.placed->name, {w.f32, count}, {h.gradient, count}, h.value_at != nullptr || !h.used->vector});
  }
  place_partials();
}

// Model-level gradients grow through the whole step; those of layers take turns.
void Shards::place_partials() {
  std::int64_t kept = 0, most = 0;
  for (size_t part = 0; part < summed_.size(); ++part) {
    std::int64_t floats = 0;
    for (const size_t i : summed_[part]) floats += partial_floats(held_[i]);
    (part < 2 ? kept += floats : most = std::max(most, floats));
  }
  partials_ = Buffer<float>(core_->device.arena, MemoryCategory::collectives, static_cast<size_t>(kept + most),
                            "gradients to sum");
  float* next = partials_.data();
  for (size_t part = 0; part < summed_.size(); ++part) {
    if (part >= 2) next = partials_.data() + kept;
    for (const size_t i : summed_[part]) {
      held_[i].partial = next;
      next += partial_floats(held_[i]);
    }
  }
  for (const size_t i : trained_) {
    Held& h = held_[i];
    float* const at = h.flow->sums ? h.partial : h.gradient;
    if (!h.value_at) {
      h.used->gradient = at;
      continue;
    }
    const size_t half = i - core_->weights.size();
    (half % 2 == 0 ? core_->adapters[half / 2].da : core_->adapters[half / 2].db) = at;
  }
}

void Shards::zero_gradients() {
  const std::span<float> gradients = core_->gradients.span(), partials = partials_.span();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  if (dirty_) std::fill(partials.begin(), partials.end(), 0.0f);
  dirty_ = false;
}

void Shards::values_changed() {
  if (!core_->masters) return;
  const VectorKernels& kernels = core_->kernels;
  for (const size_t i : trained_) {
    Weight& w = shard(held_[i]);
    const Region& region = stored(held_[i]);
    if (region.elements() == 0) continue;
    if (!w.vector) {
      write_rows(kernels, w, 0, std::span<const float>(w.f32, static_cast<size_t>(region.elements())));
    } else if (w.norm) {
      std::vector<std::uint16_t> bits(static_cast<size_t>(w.cols));
      kernels.narrow(w.cols, w.f32, bits.data());
      kernels.widen(w.cols, bits.data(), w.norm);
    } else {
      kernels.narrow(w.cols, w.f32, w.bf16);
    }
  }
}

// Blocks of a fixed size, as AdamW's norm is summed.
double Shards::square_sum(size_t trained) const {
  const Held& h = held_[trained_[trained]];
  if (!h.flow->counts[static_cast<size_t>(device_)]) return 0;
  constexpr std::int64_t kBlock = 1 << 16;
  const std::int64_t n = stored(h).elements();
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock)
    sum += core_->kernels.dot(std::min(kBlock, n - i), h.gradient + i, h.gradient + i);
  return sum;
}

// --- Whole tensors ---

// each(row and column in the files, length, place in the shard) for every run of the device's elements.
template <class Each>
void Shards::for_runs(const Held& h, const Each& each) const {
  const Region& region = stored(h);
  std::int64_t at = 0;
  for (const Range& r : region.rows)
    for (std::int64_t y = r.begin; y < r.end; ++y)
      for (const Range& c : region.cols) {
        each(y * h.flow->cols + c.begin, c.end - c.begin, at);
        at += c.end - c.begin;
      }
}

void Shards::copy_out(size_t trained, std::span<const float> from, std::span<float> whole) const {
  for_runs(held_[trained_[trained]], [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(from.data() + at, n, whole.data() + in_file);
  });
}

void Shards::copy_in(size_t trained, std::span<const float> whole, std::span<float> to) const {
  for_runs(held_[trained_[trained]], [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(whole.data() + in_file, n, to.data() + at);
  });
}

bool Shards::counts(size_t trained) const {
  return held_[trained_[trained]].flow->counts[static_cast<size_t>(device_)];
}
bool Shards::counts_weight(size_t weight) const {
  return held_[weight].flow->counts[static_cast<size_t>(device_)];
}

// What is stored, as f32: the master where there is one.
void Shards::read_shard(const Held& h, std::span<float> out) const {
  const Weight& w = shard(h);
  if (out.empty()) return;
  if (w.f32)
    std::copy_n(w.f32, out.size(), out.data());
  else if (w.norm)
    std::copy_n(w.norm, out.size(), out.data());
  else if (w.vector)
    core_->kernels.widen(static_cast<std::int64_t>(out.size()), w.bf16, out.data());
  else
    read_rows(w, 0, out);
}

void Shards::read_weight(size_t weight, std::span<float> whole) const {
  const Held& h = held_[weight];
  std::vector<float> values(static_cast<size_t>(stored(h).elements()));
  read_shard(h, values);
  for_runs(h, [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(values.data() + at, n, whole.data() + in_file);
  });
}

}  // namespace mw::engine
