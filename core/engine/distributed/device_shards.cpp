// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/device_shards.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/units.h"
#include "core/engine/transformer/projections.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

using mesh::CopySource;
using mesh::IndexInterval;
using mesh::IndexRange;
using mesh::IndexRegion;
using mesh::Replica;
using model::Role;

// Columns of a row, to or from where they lie without gaps.
template <class Values>
void take_columns(const IndexRegion& region, const Values* row, Values* out) {
  for (const IndexInterval& c : region.cols) out = std::copy(row + c.begin, row + c.end, out);
}

void init_lora(const IndexRegion& region, const LoraInit& start, std::int64_t cols, float* out) {
  for (const IndexInterval& r : region.rows)
    for (std::int64_t y = r.begin; y < r.end; ++y)
      for (const IndexInterval& c : region.cols)
        for (std::int64_t x = c.begin; x < c.end; ++x) *out++ = start.at(y * cols + x);
}

using Clock = std::chrono::steady_clock;

struct WeightBlock {  // of a size that is given beside it
  const Weight& weight;
  std::int64_t row, col;  // its first element
};
struct Size {
  std::int64_t rows, cols;
};

// The only ways to what another device stores or has summed. Each adds the bytes that it reads to `read`.

template <class T>
void copy_plain(const T* from, std::int64_t from_cols, T* to, std::int64_t to_cols, Size size, std::int64_t& read) {
  if (size.cols == from_cols && size.cols == to_cols) size = {1, size.rows * size.cols};
  const auto bytes = static_cast<size_t>(size.cols) * sizeof(T);
  for (std::int64_t r = 0; r < size.rows; ++r, read += static_cast<std::int64_t>(bytes))
    std::memcpy(to + r * to_cols, from + r * from_cols, bytes);
}

std::int64_t index_in(const WeightBlock& block, std::int64_t row, std::int64_t col) {
  const std::int64_t r = block.row + row, c = block.col + col, cols = block.weight.cols;
  return block.weight.at.packed ? packed_index(cols, r, c) : r * cols + c;
}

// bf16, in rows or in panels on either side. A run of whole panels is contiguous for any even columns.
void copy_bf16(const WeightBlock& from, const WeightBlock& to, Size size, std::int64_t& read) {
  constexpr std::int64_t kBytes = sizeof(std::uint16_t);
  const std::uint16_t* const source = from.weight.bf16;
  std::uint16_t* const target = to.weight.bf16;
  if (!from.weight.at.packed && !to.weight.at.packed)
    return copy_plain(source + index_in(from, 0, 0), from.weight.cols, target + index_in(to, 0, 0), to.weight.cols,
                      size, read);
  const bool panels = from.weight.at.packed && to.weight.at.packed &&
                      (from.row % kPanelRows | to.row % kPanelRows | size.rows % kPanelRows) == 0 &&
                      (from.col % 2 | to.col % 2 | size.cols % 2) == 0;
  for (std::int64_t r = 0; panels && r < size.rows; r += kPanelRows, read += size.cols * kPanelRows * kBytes)
    std::memcpy(target + index_in(to, r, 0), source + index_in(from, r, 0),
                static_cast<size_t>(size.cols * kPanelRows * kBytes));
  for (std::int64_t r = 0; !panels && r < size.rows; ++r, read += size.cols * kBytes)
    for (std::int64_t c = 0; c < size.cols; ++c) target[index_in(to, r, c)] = source[index_in(from, r, c)];
}

// A block of a peer's weight to the weight that this device computes with.
void copy_block(const VectorKernels& kernels, const WeightBlock& from, const WeightBlock& to, Size size,
                std::int64_t& read) {
  const Weight &source = from.weight, &target = to.weight;
  if (target.vector && source.bf16) {  // read as f32
    kernels.widen(size.cols, source.bf16 + from.col, target.norm + to.col);
    read += size.cols * static_cast<std::int64_t>(sizeof(std::uint16_t));
  } else if (target.vector) {
    copy_plain(source.norm + from.col, source.cols, target.norm + to.col, target.cols, size, read);
  } else if (target.bf16) {
    copy_bf16(from, to, size, read);
  } else {
    copy_plain(source.f32 + from.row * source.cols + from.col, source.cols, target.f32 + to.row * target.cols + to.col,
               target.cols, size, read);
  }
}

void add_values(const VectorKernels& kernels, const float* from, std::int64_t n, float* to, std::int64_t& read) {
  kernels.add(n, from, 1.0f, to);
  read += n * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

DeviceShards::DeviceShards(MeshCollectives& part, const mesh::ReshardPlans& plans)
    : part_(part), device_(part.port().device()) {
  for (const mesh::PlacedTensor& p : plans.placement().tensors) held_.push_back(held(p, plans));
}

DeviceShards::Held DeviceShards::held(const mesh::PlacedTensor& placed, const mesh::ReshardPlans& plans) const {
  const mesh::ReshardPlan& plan = plans.of(placed);
  return {.placed = &placed, .plan = &plan, .copies = &plan.copies(device_)};
}

void DeviceShards::attach(Transformer& net, std::span<DeviceShards* const> peers) {
  net_ = &net;
  peers_ = peers;
  gathered_.assign(net.weights.layers.size() + 2, {});
  for (size_t i = 0; i < held_.size(); ++i) {
    Held& h = held_[i];
    h.used = &net.weights.weights[i];
    if (h.plan->direct) continue;
    h.shard.rows = stored(h).height(), h.shard.cols = stored(h).width();
    h.shard.vector = h.used->vector, h.shard.offset = h.used->offset;
  }
  const BufferLayout layout = lay_out_shards(net.weights, shapes());
  shards_ = DeviceBuffer<std::byte>(net.device.arena, layout.allocation);
  for (size_t i = 0; i < held_.size(); ++i) {
    std::byte* const at = field_at(shards_.data(), layout.fields[i]);
    Weight& w = held_[i].shard;
    if (!at) continue;
    if (w.vector && net.weights.type == model::WeightType::bf16) {
      w.bf16 = reinterpret_cast<std::uint16_t*>(at);
    } else {
      net.weights.place_matrix(w, w.rows, at);
      if (w.vector) w.norm = w.f32;
    }
  }
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].plan->direct) continue;
    const mesh::PlacedTensor& p = *held_[i].placed;
    gathered_[index_of(p)].push_back(i);
    if (p.role == Role::embed) gathered_[index_of(kHead)].push_back(i);
  }
  allocate_working();
}

ShardShape DeviceShards::shape_of(const Held& h) const {
  const bool adapter = h.is_adapter();
  return {.part = part_of(*h.placed),
          .is_embedding = h.placed->role == Role::embed,
          .vector = h.used->vector,
          .adapter = adapter,
          .trained = net_->weights.full ? !tensor_of(h).is_buffer : adapter,
          .direct = h.plan->direct,
          .sums = h.plan->sums,
          .stored = stored(h).elements(),
          .used = h.used->elements()};
}

const model::Tensor& DeviceShards::tensor_of(const Held& weight) const {
  return net_->weights.inventory.tensors()[static_cast<size_t>(&weight - held_.data())];
}

std::vector<ShardShape> DeviceShards::shapes() const {
  std::vector<ShardShape> shapes;
  for (const Held& h : held_) shapes.push_back(shape_of(h));
  for (const ShardShape& norm : row_norms(net_->weights.lora_shapes)) shapes.push_back(norm);
  return shapes;
}

// Points ModelWeights at the memory where a tensor is gathered.
void DeviceShards::place_used(Held& h, std::byte* at) const {
  Weight& w = *h.used;
  if (h.is_adapter())
    h.part.adapter->*h.part.value = w.f32 = reinterpret_cast<float*>(at);
  else if (w.vector)
    w.at.f32 = w.norm = reinterpret_cast<float*>(at);
  else
    net_->weights.place_matrix(w, tensor_of(h).matrix_rows(), at);
}

void DeviceShards::allocate_working() {
  working_ = {};
  working_ = DeviceBuffer<std::byte>(net_->device.arena, gathered_weights(net_->weights, shapes()));
}

// --- Values ---

template <class Values>
void DeviceShards::put_row(Weight& w, std::int64_t row, std::span<const Values> values) {
  constexpr bool kBits = std::is_same_v<Values, std::uint16_t>;
  const VectorKernels& kernels = net_->kernels;
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
void DeviceShards::put_rows(Held& h, std::int64_t first, std::span<const Values> values) {
  const IndexRegion& region = stored(h);
  Weight& w = shard(h);
  const std::int64_t cols = h.plan->cols, last = first + static_cast<std::int64_t>(values.size()) / cols;
  std::vector<Values> row(static_cast<size_t>(region.width()));
  std::int64_t before = 0;
  for (const IndexInterval& r : region.rows) {
    for (std::int64_t i = std::max(first, r.begin); i < std::min(last, r.end); ++i) {
      take_columns(region, values.data() + (i - first) * cols, row.data());
      put_row<Values>(w, before + i - r.begin, row);
    }
    before += r.end - r.begin;
  }
}

void DeviceShards::load_rows(size_t weight, std::int64_t first, std::span<const float> values) {
  put_rows(held_[weight], first, values);
}
void DeviceShards::load_rows(size_t weight, std::int64_t first, std::span<const std::uint16_t> values) {
  put_rows(held_[weight], first, values);
}

void DeviceShards::init_random(std::uint64_t seed) {
  for (size_t i = 0; i < net_->weights.weights.size(); ++i) {
    Held& h = held_[i];
    Weight& w = shard(h);
    const IndexRegion& region = stored(h);
    const Rng rng{seed, i};
    std::vector<float> row(static_cast<size_t>(region.width()));
    std::int64_t at = 0;
    for (const IndexInterval& r : region.rows)
      for (std::int64_t y = r.begin; y < r.end; ++y, ++at) {
        float* next = row.data();
        for (const IndexInterval& c : region.cols)
          for (std::int64_t x = c.begin; x < c.end; ++x)
            *next++ = w.vector ? 1.0f - w.offset
                               : kInitialDeviation * rng.normal_at(static_cast<std::uint64_t>(y * h.plan->cols + x));
        put_row<float>(w, at, row);
      }
  }
}

void DeviceShards::add_lora(const options::Lora& options, std::uint64_t seed, const mesh::ReshardPlans& plans) {
  net_->buffers.step = {};
  net_->weights.define_adapters(options);
  trained_.clear();
  partials_ = {};
  held_.resize(net_->weights.weights.size());
  for (std::vector<size_t>& part : gathered_) std::erase_if(part, [&](size_t i) { return i >= held_.size(); });
  const std::vector<mesh::PlacedTensor>& placed = plans.placement().adapters;
  adapter_forms_.assign(placed.size(), {});
  const size_t parts = net_->weights.has_magnitudes ? 3 : 2;
  for (size_t i = 0; i < placed.size(); ++i) {
    Adapter& a = net_->weights.adapters[i / parts];
    Held& h = held_.emplace_back(held(placed[i], plans));
    h.used = &adapter_forms_[i];
    switch (placed[i].role) {
      case Role::lora_a:
        h.part = {&a, &Adapter::a, &Adapter::da};
        h.used->rows = a.rank, h.used->cols = a.in;
        break;
      case Role::lora_b:
        h.part = {&a, &Adapter::b, &Adapter::db};
        h.used->rows = a.out, h.used->cols = a.rank;
        break;
      default:
        h.part = {&a, &Adapter::m, &Adapter::dm};
        h.used->rows = 1, h.used->cols = a.out;
    }
    h.shard.rows = stored(h).height(), h.shard.cols = stored(h).width();
    if (!h.plan->direct) gathered_[index_of(a.layer)].push_back(held_.size() - 1);
    trained_.push_back(held_.size() - 1);
  }
  const BufferLayout layout = lay_out_adapters(shapes());
  net_->weights.adapter_values = DeviceBuffer<float>(net_->device.arena, layout.allocation);
  for (const size_t i : trained_) {
    Held& h = held_[i];
    Adapter& a = *h.part.adapter;
    float* const values = shard(h).f32 = field_at(net_->weights.adapter_values.data(), layout.fields[i]);
    if (h.plan->direct) a.*h.part.value = values;
    if (h.placed->role == Role::lora_a)
      init_lora(stored(h), LoraInit(seed, a.layer, a.projection, a.whole_in), a.whole_in, values);
    net_->weights.parameters.push_back(
        {h.placed->name, {values, static_cast<size_t>(stored(h).elements())}, {}, true, rate_of(h)});
  }
  if (net_->weights.has_magnitudes)
    for (size_t i = 0; i < net_->weights.adapters.size(); ++i)
      net_->weights.adapters[i].norm = field_at(net_->weights.adapter_values.data(), layout.fields[held_.size() + i]);
  norms_known_.assign(net_->weights.layers.size(), false);
  allocate_working();
}

// The devices that share the rows of a layer come here in the same passes.
void DeviceShards::update_row_norms(int layer) {
  const auto index = static_cast<size_t>(layer);
  if (norms_known_[index]) return;
  static constexpr Role kRoles[kProjections] = {Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                                                Role::gate_proj, Role::up_proj, Role::down_proj};
  const LayerWeights& weights = net_->weights.layers[index];
  for (size_t p = 0; p < kProjections; ++p) {
    const Adapter* const a = weights.adapter[p];
    if (!a) continue;
    write_row_squares(net_->device, *weights.projection[p], *a);
    part_.sum_row_squares(kRoles[p], layer, {a->norm, static_cast<size_t>(a->out)});
    take_square_roots(*a);
  }
  norms_known_[index] = true;
}

// --- Training ---

float DeviceShards::rate_of(const Held& h) const {
  return h.is_adapter() && h.placed->role != Role::lora_a ? net_->weights.lora_b_rate : 1;
}

void DeviceShards::set_trainable(model::TrainMethod method) {
  net_->weights.check_trainable(method);
  net_->buffers.step = {};
  ModelWeights& model_weights = net_->weights;
  model_weights.parameters.clear();
  model_weights.full = method == model::TrainMethod::full;
  model_weights.trainable = true;
  model_weights.masters = {}, model_weights.gradients = {}, partials_ = {};
  trained_.clear();
  for (size_t i = 0; i < held_.size(); ++i)
    if (model_weights.full ? !model_weights.inventory.tensors()[i].is_buffer : i >= model_weights.weights.size())
      trained_.push_back(i);
  summed_.assign(gathered_.size(), {});
  for (const size_t i : trained_)
    if (held_[i].plan->sums) summed_[index_of(*held_[i].placed)].push_back(i);
  const std::vector<ShardShape> tensors = shapes();
  const BufferLayout gradients = lay_out_gradients(model_weights, tensors),
                     masters = lay_out_masters(model_weights, tensors);
  model_weights.masters = DeviceBuffer<float>(model_weights.device.arena, masters.allocation);
  model_weights.gradients = DeviceBuffer<float>(model_weights.device.arena, gradients.allocation);
  for (const size_t i : trained_) {
    Held& h = held_[i];
    Weight& w = shard(h);
    const auto count = static_cast<size_t>(stored(h).elements());
    if (float* const master = field_at(model_weights.masters.data(), masters.fields[i])) {
      w.f32 = w.norm;  // not an earlier master
      read_shard(h, {master, count});
      w.f32 = master;
    }
    h.gradient = field_at(model_weights.gradients.data(), gradients.fields[i]);
    model_weights.parameters.push_back(
        {h.placed->name, {w.f32, count}, {h.gradient, count}, h.is_adapter() || !h.used->vector, rate_of(h)});
  }
  place_partials(tensors);
}

void DeviceShards::place_partials(std::span<const ShardShape> tensors) {
  const BufferLayout layout = lay_out_partial_gradients(tensors);
  partials_ = DeviceBuffer<float>(net_->device.arena, layout.allocation);
  for (const size_t i : trained_) {
    Held& h = held_[i];
    h.partial = field_at(partials_.data(), layout.fields[i]);
    float* const at = h.plan->sums ? h.partial : h.gradient;
    (h.is_adapter() ? h.part.adapter->*h.part.gradient : h.used->gradient) = at;
  }
}

void DeviceShards::zero_gradients() {
  const std::span<float> gradients = net_->weights.gradients.span(), partials = partials_.span();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  if (dirty_) std::fill(partials.begin(), partials.end(), 0.0f);
  dirty_ = false;
  forget_row_norms();
}

void DeviceShards::values_changed() {
  forget_row_norms();
  if (!net_->weights.masters) return;
  const VectorKernels& kernels = net_->kernels;
  for (const size_t i : trained_) {
    Weight& w = shard(held_[i]);
    const IndexRegion& region = stored(held_[i]);
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
double DeviceShards::square_sum(size_t trained) const {
  const Held& h = held_[trained_[trained]];
  if (!h.plan->counts(device_)) return 0;
  constexpr std::int64_t kBlock = 1 << 16;
  const std::int64_t n = stored(h).elements();
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock)
    sum += net_->kernels.dot(std::min(kBlock, n - i), h.gradient + i, h.gradient + i);
  return sum;
}

// --- Whole tensors ---

// each(row and column in the files, length, place in the shard) for every run of the device's elements.
template <class Each>
void DeviceShards::for_runs(const Held& h, const Each& each) const {
  const IndexRegion& region = stored(h);
  std::int64_t at = 0;
  for (const IndexInterval& r : region.rows)
    for (std::int64_t y = r.begin; y < r.end; ++y)
      for (const IndexInterval& c : region.cols) {
        each(y * h.plan->cols + c.begin, c.end - c.begin, at);
        at += c.end - c.begin;
      }
}

void DeviceShards::copy_out(size_t trained, std::span<const float> from, std::span<float> whole) const {
  for_runs(held_[trained_[trained]], [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(from.data() + at, n, whole.data() + in_file);
  });
}

void DeviceShards::copy_in(size_t trained, std::span<const float> whole, std::span<float> to) const {
  for_runs(held_[trained_[trained]], [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(whole.data() + in_file, n, to.data() + at);
  });
}

// Copies a stored shard to `out` as f32, from the master if there is one.
void DeviceShards::read_shard(const Held& h, std::span<float> out) const {
  const Weight& w = shard(h);
  if (out.empty()) return;
  if (w.f32)
    std::copy_n(w.f32, out.size(), out.data());
  else if (w.norm)
    std::copy_n(w.norm, out.size(), out.data());
  else if (w.vector)
    net_->kernels.widen(static_cast<std::int64_t>(out.size()), w.bf16, out.data());
  else
    read_rows(w, 0, out);
}

void DeviceShards::read_weight(size_t weight, std::span<float> whole) const {
  const Held& h = held_[weight];
  std::vector<float> values(static_cast<size_t>(stored(h).elements()));
  read_shard(h, values);
  for_runs(h, [&](std::int64_t in_file, std::int64_t n, std::int64_t at) {
    std::copy_n(values.data() + at, n, whole.data() + in_file);
  });
}

// --- Moving weights and gradients ---

// Each device reads the memory of its peers. Weights do not change during a step, so gathers need no barrier; sums of
// gradients have one before and one after.

void DeviceShards::count(const Held& h, std::span<const mesh::Stage> stages, const Read& read, mesh::Phase phase,
                         Communicator::CallTime spent) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (read[i] == 0) continue;
    const mesh::Stage& s = stages[i];
    part_.port().count(s.kind, s.axis, s.group, {phase, s.cause, h.placed->layer, h.placed->name}, Bytes(read[i]),
                       spent);
    spent = {};
  }
}

void DeviceShards::gather(size_t index, Read& read) {
  const Held& h = held_[index];
  read.assign(h.plan->gather_stages.size() + 1, 0);
  for (const CopySource& share : h.copies->sources) {
    const DeviceShards& peer = *peers_[static_cast<size_t>(share.device)];
    const Weight& from = peer.shard(peer.held_[index]);
    for (const IndexRange& r : share.at.rows)
      for (const IndexRange& c : share.at.cols)
        copy_block(net_->kernels, {from, r.from, c.from}, {*h.used, r.to, c.to}, {r.count, c.count}, read[share.stage]);
  }
}

void DeviceShards::gather_weights(int part, mesh::Phase phase) {
  if (part == kHead) dirty_ = true;
  std::byte* at = working_.data();
  Read read;
  for (const size_t i : gathered_[index_of(part)]) {
    Held& h = held_[i];
    // The backward of an embedding lookup does not read the table.
    if (phase == mesh::Phase::backward && mesh::block_of(h.placed->base) == mesh::Block::vocab) continue;
    const auto start = Clock::now();
    const std::int64_t bytes = gathered_bytes(net_->weights, shape_of(h));
    place_used(h, at);
    if (h.used->rows > h.plan->working[static_cast<size_t>(device_)].height())
      std::memset(at, 0, static_cast<size_t>(bytes));
    at += bytes;
    gather(i, read);
    count(h, h.plan->gather_stages, read, phase, {seconds_since(start), 0});
  }
  if (part >= 0 && phase == mesh::Phase::forward && net_->weights.has_magnitudes) update_row_norms(part);
}

// Adds the terms in all devices' working gradients, in order of devices, to this device's part of the stored gradient.
void DeviceShards::add_terms(size_t index, Read& read) {
  Held& h = held_[index];
  read.assign(h.plan->sum_stages.size() + 1, 0);
  const std::vector<Replica>& replicas = h.copies->replicas;
  const auto own =
      std::find_if(replicas.begin(), replicas.end(), [&](const Replica& r) { return r.device == device_; });
  if (own == replicas.end()) return;
  const IndexRegion& region = stored(h);
  const mesh::IndexInterval mine =
      mesh::reduction_range(region.elements(), replicas.size(), static_cast<size_t>(own - replicas.begin()));
  const std::int64_t width = region.width();
  for (const CopySource& term : h.copies->terms) {
    const Held& other = peers_[static_cast<size_t>(term.device)]->held_[index];
    const std::int64_t there = other.used->cols;
    const auto add = [&](const float* from, std::int64_t first, std::int64_t n) {  // to elements from `first` on
      const std::int64_t begin = std::max(first, mine.begin), end = std::min(first + n, mine.end);
      if (begin < end)
        add_values(net_->kernels, from + (begin - first), end - begin, h.gradient + begin, read[term.stage]);
    };
    for (const IndexRange& r : term.at.rows)
      for (const IndexRange& c : term.at.cols) {
        if (c.count == width && c.count == there) {
          add(other.partial + r.from * there, r.to * width, r.count * width);
          continue;
        }
        for (std::int64_t i = 0; i < r.count; ++i)
          add(other.partial + (r.from + i) * there + c.from, (r.to + i) * width + c.to, c.count);
      }
  }
}

// Copies the parts of the gradient that the other devices with the same shard have summed.
void DeviceShards::take_sums(size_t index, Read& read) {
  Held& h = held_[index];
  const std::vector<Replica>& replicas = h.copies->replicas;
  for (size_t i = 0; i < replicas.size(); ++i) {
    if (replicas[i].device == device_) continue;
    const mesh::IndexInterval theirs = mesh::reduction_range(stored(h).elements(), replicas.size(), i);
    const std::int64_t n = theirs.end - theirs.begin;
    copy_plain(peers_[static_cast<size_t>(replicas[i].device)]->held_[index].gradient + theirs.begin, n,
               h.gradient + theirs.begin, n, {1, n}, read[replicas[i].stage]);
  }
}

void DeviceShards::reduce_gradients(int part) {
  const std::vector<size_t>& list = summed_[index_of(part)];
  if (!list.empty()) {
    std::vector<Read> reads(list.size());
    const auto start = Clock::now();
    part_.port().barrier();
    double waited = seconds_since(start);
    for (size_t i = 0; i < list.size(); ++i) add_terms(list[i], reads[i]);
    const auto summed = Clock::now();
    part_.port().barrier();
    waited += seconds_since(summed);
    for (size_t i = 0; i < list.size(); ++i) {
      take_sums(list[i], reads[i]);
      std::fill_n(held_[list[i]].partial, held_[list[i]].used->elements(), 0.0f);
    }
    // The devices meet once for all tensors of the list, which share the time equally.
    const double each = 1.0 / static_cast<double>(list.size()), seconds = seconds_since(start);
    for (size_t i = 0; i < list.size(); ++i)
      count(held_[list[i]], held_[list[i]].plan->sum_stages, reads[i], mesh::Phase::backward,
            {seconds * each, waited * each});
  }
  if (part == (net_->weights.full ? kEmbeddings : net_->weights.lowest_trained_layer())) dirty_ = false;
}

}  // namespace mw::engine
