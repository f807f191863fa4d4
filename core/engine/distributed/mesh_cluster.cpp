// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/mesh_cluster.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/projections.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kLoadChunk = 1 << 22;  // elements: progress, and what is read from a file at once
constexpr std::int64_t kWorthThreads = 1 << 16;

const mesh::Placement& checked(const mesh::Placement& placement) {
  for (const Problem& p : placement.problems)
    if (p.severity == Severity::error) throw Error(p);
  return placement;
}

const ClusterOptions& checked(const ClusterOptions& options) {
  for (const Problem& p : mesh::check_mesh(options.mesh, 0)) throw Error(p);
  if (options.weights == model::WeightType::int8)
    throw Error("DTYPE", "int8 weights run on one device only",
                {.found = mesh::to_text(options.mesh), .expected = "f32 or bf16 on a mesh"});
  return options;
}

std::string name_of(const mesh::Mesh& mesh, int device) {  // "device 3 (fsdp 0, tp 3)"
  std::string name = "device " + std::to_string(device) + " (";
  const std::vector<int> at = mesh::coordinate(mesh, device);
  for (size_t a = 0; a < at.size(); ++a) name += (a ? ", " : "") + mesh.axes[a].name + " " + std::to_string(at[a]);
  return name + ")";
}

}  // namespace

MeshCluster::Node::Node(MeshCollectives&& its_part, const ClusterOptions& options)
    : device(options.capacity, 1, this_machine(), options.arithmetic), part(std::move(its_part)) {}
Transformer& MeshCluster::Node::net() {
  return network->transformer();
}

MeshCluster::MeshCluster(const model::Config& c, const ClusterOptions& o)
    : Cluster(c, checked(o)),
      communicators(options_.mesh),
      form(options_.mesh, checked(placement_), mesh::StepShape{}) {
  check_model(c);
  plans.emplace_back(config_, placement_, options_.mesh);
  nodes.resize(static_cast<size_t>(communicators.devices()));
  shards.resize(nodes.size());
  communicators.each([&](Communicator& port) {
    const auto d = static_cast<size_t>(port.device());
    named(port, [&] {
      auto node = std::make_unique<Node>(MeshCollectives(config_, form, placement_, port), options_);
      node->shards = std::make_unique<DeviceShards>(node->part, plans.front());
      node->part.set_storage(node->shards.get());
      node->network = std::make_unique<Network>(node->part, node->device, options_.weights);
      nodes[d] = std::move(node);
    });
    shards[d] = nodes[d]->shards.get();
  });
  each([&](Node& node) { node.shards->attach(node.net(), shards); });
}

// Errors of a device say which.
void MeshCluster::named(const Communicator& port, const std::function<void()>& work) const {
  try {
    work();
  } catch (const OutOfMemory& error) {
    OutOfMemory::State moment = error.moment;
    moment.device = name_of(options_.mesh, port.device());
    throw OutOfMemory(std::move(moment));
  } catch (const Error& error) {
    Problem problem = error.problem();
    problem.place = name_of(options_.mesh, port.device()) + (problem.place.empty() ? "" : ", " + problem.place);
    throw Error(problem, error.kind());
  }
}
void MeshCluster::each(const std::function<void(Node&)>& work, std::stop_token stop) {
  try {
    communicators.each(
        [&](Communicator& port) { named(port, [&] { work(*nodes[static_cast<size_t>(port.device())]); }); },
        std::move(stop));
  } catch (...) {  // some devices may have new norms, and others not
    for (const auto& node : nodes) node->shards->forget_row_norms();
    throw;
  }
}

// --- Values ---

// Each device takes what it stores of these rows, read once for all.
template <class Values>
void MeshCluster::store_rows(size_t weight, std::int64_t first, std::span<const Values> rows) {
  if (static_cast<std::int64_t>(rows.size()) >= kWorthThreads)
    return each([&](Node& node) { node.shards->load_rows(weight, first, rows); });
  for (const auto& node : nodes) node->shards->load_rows(weight, first, rows);
}

void MeshCluster::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  std::int64_t total = 0, done = 0;
  for (const model::Tensor& t : inventory_.tensors()) total += t.elements();
  std::vector<float> wide;
  std::vector<std::uint16_t> bits;
  for (size_t i = 0; i < inventory_.tensors().size(); ++i) {
    const model::Tensor& tensor = inventory_.tensors()[i];
    const std::int64_t cols = tensor.hf_shape.back(), chunk = std::max<std::int64_t>(1, kLoadChunk / cols) * cols;
    for (std::int64_t first = 0; first < tensor.elements(); first += chunk) {
      const std::int64_t n = std::min(chunk, tensor.elements() - first);
      const auto count = static_cast<size_t>(n);
      if (options_.weights == model::WeightType::f32 || !source.bf16) {
        wide.resize(count);
        source.f32(i, first, wide);
      }
      if (options_.weights == model::WeightType::f32) {
        check_finite(tensor, first, std::span<const float>(wide));
        store_rows(i, first / cols, std::span<const float>(wide));
      } else {
        bits.resize(count);
        if (source.bf16)
          source.bf16(i, first, bits);
        else
          vector_kernels().narrow(n, wide.data(), bits.data());
        check_finite(tensor, first, std::span<const std::uint16_t>(bits));
        store_rows(i, first / cols, std::span<const std::uint16_t>(bits));
      }
      done += n;
      if (progress) progress(static_cast<long>(done), static_cast<long>(total));
    }
  }
}

void MeshCluster::init_random(std::uint64_t seed) {
  each([&](Node& node) { node.shards->init_random(seed); });
}

void MeshCluster::add_placed_lora(const options::Lora& lora, std::uint64_t seed) {
  checked(placement_);
  plans.emplace_back(config_, placement_, options_.mesh);
  each([&](Node& node) {
    node.optimizer.reset();
    node.shards->add_lora(lora, seed, plans.back());
  });
  list_trained(placement_.adapters);
  if (lora.dora) init_magnitudes();
}

// Computes DoRA's magnitudes from whole rows, so that they have the same bits on every mesh.
void MeshCluster::init_magnitudes() {
  for (size_t i = 0; i < placement_.adapters.size(); ++i) {
    const mesh::PlacedTensor& placed = placement_.adapters[i];
    if (placed.role != model::Role::lora_m) continue;
    const model::Tensor* const base = inventory_.find(placed.base, placed.layer);
    std::vector<float> weight(static_cast<size_t>(base->elements())), magnitudes;
    read_whole_weight(static_cast<size_t>(base - inventory_.tensors().data()), weight);
    const auto cols = static_cast<size_t>(base->hf_shape.back());
    for (size_t at = 0; at < weight.size(); at += cols)
      magnitudes.push_back(initial_magnitude(std::span(weight).subspan(at, cols)));
    write_part(i, Part::value, magnitudes);
  }
}

void MeshCluster::train(model::TrainMethod method, options::AdamWOptions adamw) {
  each([&](Node& node) {
    node.optimizer.reset();
    node.shards->set_trainable(method);
    node.optimizer = std::make_unique<AdamW>(node.device, node.shards->parameters(), adamw);
  });
  list_trained(method == model::TrainMethod::full ? placement_.tensors : placement_.adapters);
}

void MeshCluster::list_trained(const std::vector<mesh::PlacedTensor>& list) {
  trained_.clear();
  for (const TrainableTensor& p : nodes[0]->shards->parameters()) {
    const auto placed =
        std::find_if(list.begin(), list.end(), [&](const mesh::PlacedTensor& one) { return one.name == p.name; });
    trained_.push_back({p.name, placed->total(), p.rate});
  }
}

// --- Steps ---

void MeshCluster::zero_gradients() {
  each([](Node& node) { node.shards->zero_gradients(); });
}

MeshCluster::Rows MeshCluster::rows_of(int device, int all) const {
  const mesh::IndexInterval r = mesh::batch_rows(mesh::batch_slice(options_.mesh, device), all);
  return {static_cast<int>(r.begin), static_cast<int>(r.end - r.begin)};
}
// One device of those that have the same rows.
bool MeshCluster::reports_rows(int device) const {
  const std::vector<int> at = mesh::coordinate(options_.mesh, device);
  for (int a = 0; a < form.axes(); ++a)
    if (form.model() >> a & 1 && at[static_cast<size_t>(a)] != 0) return false;
  return true;
}

template <class Run>
LossSum MeshCluster::step(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop, const Run& run) {
  check_batch(batch, config_.vocab, config_.max_positions);
  std::vector<LossSum> sums(nodes.size());
  each(
      [&](Node& node) {
        const int d = node.part.port().device();
        const Rows rows = rows_of(d, batch.rows);
        const auto part = [&](std::span<const int> all) {
          return all.subspan(static_cast<size_t>(rows.first) * static_cast<size_t>(batch.len),
                             static_cast<size_t>(rows.count) * static_cast<size_t>(batch.len));
        };
        StepOptions own = whole;
        own.first_row += rows.first;
        sums[static_cast<size_t>(d)] = run(*node.network,
                                           TokenBatch{rows.count, batch.len, part(batch.ids), part(batch.targets),
                                                      part(batch.positions), part(batch.segments)},
                                           own);
      },
      std::move(stop));
  LossSum sum;
  for (int d = 0; d < devices(); ++d)
    if (reports_rows(d)) sum.sum += sums[static_cast<size_t>(d)].sum, sum.tokens += sums[static_cast<size_t>(d)].tokens;
  return sum;
}

LossSum MeshCluster::forward_backward(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) {
  return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
    return network.forward_backward(rows, own);
  });
}
LossSum MeshCluster::evaluate(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) {
  return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
    return network.evaluate(rows, own);
  });
}

double MeshCluster::gradient_norm() {
  std::vector<double> sums(trained_.size() * nodes.size());
  each([&](Node& node) {
    for (size_t i = 0; i < trained_.size(); ++i)
      sums[i * nodes.size() + static_cast<size_t>(node.part.port().device())] = node.shards->square_sum(i);
  });
  double sum = 0;
  for (const double one : sums) sum += one;
  return std::sqrt(sum);
}

void MeshCluster::update(std::int64_t t, float learning_rate, float clip, double norm) {
  each([&](Node& node) {
    node.optimizer->step(t, learning_rate, clip, norm);
    node.shards->values_changed();
  });
}

// A stop ends all rows with what they have, wherever the devices were.
std::vector<std::vector<int>> MeshCluster::generate_batch(std::span<const std::vector<int>> prompts,
                                                          const options::SampleOptions& sample, std::stop_token stop) {
  std::vector<std::vector<int>> out(prompts.size());
  try {
    each(
        [&](Node& node) {
          const int d = node.part.port().device();
          const Rows rows = rows_of(d, static_cast<int>(prompts.size()));
          options::SampleOptions own = sample;
          own.first_row += rows.first;
          Sampler::OnToken keep;
          if (reports_rows(d))
            keep = [&](int row, int id) {
              out[static_cast<size_t>(rows.first + row)].push_back(id);
              return true;
            };
          Sampler(*node.network)
              .generate_batch(prompts.subspan(static_cast<size_t>(rows.first), static_cast<size_t>(rows.count)), own,
                              {}, keep);
        },
        stop);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) throw;
  }
  return out;
}

// --- What a step took ---

const std::vector<CollectiveTraffic>& MeshCluster::traffic(int index) const {
  return nodes.at(static_cast<size_t>(index))->part.port().traffic();
}
void MeshCluster::clear_traffic() {
  for (const auto& node : nodes) node->part.port().clear_traffic();
}
std::vector<KernelTime> MeshCluster::take_profile() {
  std::vector<KernelTime> sums;
  for (const auto& node : nodes)
    for (const KernelTime& k : node->network->take_profile()) {
      const auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.name == k.name; });
      if (found == sums.end())
        sums.push_back(k);
      else
        found->seconds += k.seconds, found->calls += k.calls, found->flops += k.flops;
    }
  return sums;
}

// --- Whole tensors, between steps, on the thread that drives the cluster ---

std::span<float> MeshCluster::values(const Node& node, size_t index, Part part) {
  return values_of(node.shards->parameters()[index], node.optimizer.get(), index, part);
}
void MeshCluster::read_part(size_t index, Part part, std::span<float> out) const {
  for (const auto& node : nodes)
    if (node->shards->counts(index)) node->shards->copy_out(index, values(*node, index, part), out);
}
int MeshCluster::differing_replicas(size_t index, Part part) const {
  std::vector<float> whole(static_cast<size_t>(trained_[index].size));
  read_part(index, part, whole);
  int odd = 0;
  for (const auto& node : nodes) {
    const std::span<float> stored = values(*node, index, part);
    std::vector<float> expected(stored.begin(), stored.end());  // padding stays as it is
    node->shards->copy_in(index, whole, expected);
    odd += std::memcmp(expected.data(), stored.data(), stored.size_bytes()) != 0;
  }
  return odd;
}
void MeshCluster::write_part(size_t index, Part part, std::span<const float> from) {
  for (const auto& node : nodes) node->shards->copy_in(index, from, values(*node, index, part));
}
void MeshCluster::values_written() {
  each([](Node& node) { node.shards->values_changed(); });
}
void MeshCluster::read_whole_weight(size_t index, std::span<float> out) const {
  for (const auto& node : nodes)
    if (node->shards->counts_weight(index)) node->shards->read_weight(index, out);
}

}  // namespace mw::engine
