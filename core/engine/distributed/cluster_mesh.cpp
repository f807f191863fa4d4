// SPDX-License-Identifier: Apache-2.0
// How a Cluster on several devices comes to be: its devices, weights, adapters and optimizers.
#include "core/engine/distributed/cluster_mesh.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/network_impl.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kLoadChunk = 1 << 22;  // elements: progress, and what is read from a file at once
constexpr std::int64_t kWorthThreads = 1 << 16;

const mesh::Placement& possible(const mesh::Placement& placement) {
  for (const Problem& p : placement.problems)
    if (p.severity == Severity::error) throw Error(p);
  return placement;
}

const ClusterOptions& possible(const ClusterOptions& options) {
  for (const Problem& p : mesh::check_mesh(options.mesh, 0)) throw Error(p);
  if (options.weights == model::WeightType::int8)
    throw Error({.id = "DTYPE",
                 .message = "int8 weights run on one device only",
                 .found = mesh::to_text(options.mesh),
                 .expected = "f32 or bf16 on a mesh"});
  return options;
}

std::string name_of(const mesh::Mesh& mesh, int device) {  // "device 3 (fsdp 0, tp 3)"
  std::string name = "device " + std::to_string(device) + " (";
  const std::vector<int> at = mesh::coordinate(mesh, device);
  for (size_t a = 0; a < at.size(); ++a) name += (a ? ", " : "") + mesh.axes[a].name + " " + std::to_string(at[a]);
  return name + ")";
}

}  // namespace

Cluster::Many::Node::Node(MeshCollectives&& its_part, Bytes capacity)
    : device(capacity, 1), part(std::move(its_part)) {}
Core& Cluster::Many::Node::core() {
  return network->impl_->core;
}

void Cluster::Many::localise() {
  locals.clear();
  for (int d = 0; d < fabric.devices(); ++d)
    locals.push_back(mesh::local_config(config, form, placement, options.mesh, d));
}
template <class SliceOf>
std::vector<mesh::LocalSlice> Cluster::Many::slices_of(const SliceOf& slice_of) const {
  std::vector<mesh::LocalSlice> slices;
  for (const mesh::LocalConfig& local : locals) slices.push_back(slice_of(local));
  return slices;
}

Cluster::Many::Many(const model::Config& c, const ClusterOptions& o)
    : Impl(c, possible(o)),
      fabric(options.mesh),
      form(options.mesh, possible(placement), mesh::StepShape{}),
      flows(form, options.mesh) {
  check_model(c);
  localise();
  for (size_t i = 0; i < placement.tensors.size(); ++i)
    weight_flows.push_back(flows.of(placement.tensors[i], slices_of([&](const mesh::LocalConfig& local) {
                                      return mesh::local_slice(local, inventory.tensors()[i]);
                                    })));
  nodes.resize(static_cast<size_t>(fabric.devices()));
  shards.resize(nodes.size());
  fabric.each([&](Port& port) {
    const auto d = static_cast<size_t>(port.device());
    named(port, [&] {
      auto node = std::make_unique<Node>(MeshCollectives(config, form, placement, port), options.capacity);
      node->shards = std::make_unique<Shards>(node->part, placement, weight_flows);
      node->part.set_storage(node->shards.get());
      node->network = std::make_unique<Network>(node->part, node->device, options.weights);
      nodes[d] = std::move(node);
    });
    shards[d] = nodes[d]->shards.get();
  });
  each([&](Node& node) { node.shards->attach(node.core(), shards); });
}

// Errors of a device say which.
void Cluster::Many::named(const Port& port, const std::function<void()>& work) const {
  try {
    work();
  } catch (const OutOfMemory& error) {
    OutOfMemory::Moment moment = error.moment;
    moment.device = name_of(options.mesh, port.device());
    throw OutOfMemory(std::move(moment));
  } catch (const Error& error) {
    Problem problem = error.problem();
    problem.place = name_of(options.mesh, port.device()) + (problem.place.empty() ? "" : ", " + problem.place);
    throw Error(problem, error.kind());
  }
}
void Cluster::Many::each(const std::function<void(Node&)>& work, std::stop_token stop) {
  fabric.each([&](Port& port) { named(port, [&] { work(*nodes[static_cast<size_t>(port.device())]); }); },
              std::move(stop));
}

// --- Values ---

// Each device takes what it stores of these rows, read once for all.
template <class Values>
void Cluster::Many::give_rows(size_t weight, std::int64_t first, std::span<const Values> rows) {
  if (static_cast<std::int64_t>(rows.size()) >= kWorthThreads)
    return each([&](Node& node) { node.shards->load_rows(weight, first, rows); });
  for (const auto& node : nodes) node->shards->load_rows(weight, first, rows);
}

void Cluster::Many::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  std::int64_t total = 0, done = 0;
  for (const model::Tensor& t : inventory.tensors()) total += t.elements();
  std::vector<float> wide;
  std::vector<std::uint16_t> bits;
  for (size_t i = 0; i < inventory.tensors().size(); ++i) {
    const model::Tensor& tensor = inventory.tensors()[i];
    const std::int64_t cols = tensor.hf_shape.back(), chunk = std::max<std::int64_t>(1, kLoadChunk / cols) * cols;
    for (std::int64_t first = 0; first < tensor.elements(); first += chunk) {
      const std::int64_t n = std::min(chunk, tensor.elements() - first);
      const auto count = static_cast<size_t>(n);
      if (options.weights == model::WeightType::f32 || !source.bf16) {
        wide.resize(count);
        source.f32(i, first, wide);
      }
      if (options.weights == model::WeightType::f32) {
        check_finite(tensor, first, std::span<const float>(wide));
        give_rows(i, first / cols, std::span<const float>(wide));
      } else {
        bits.resize(count);
        if (source.bf16)
          source.bf16(i, first, bits);
        else
          vector_kernels().narrow(n, wide.data(), bits.data());
        check_finite(tensor, first, std::span<const std::uint16_t>(bits));
        give_rows(i, first / cols, std::span<const std::uint16_t>(bits));
      }
      done += n;
      if (progress) progress(static_cast<long>(done), static_cast<long>(total));
    }
  }
}

void Cluster::Many::init_random(std::uint64_t seed) {
  each([&](Node& node) { node.shards->init_random(seed); });
}

void Cluster::Many::add_lora(const LoraOptions& lora, std::uint64_t seed) {
  possible(placement);
  localise();
  const std::vector<ResolvedLora> resolved = resolve_lora(inventory, lora);
  adapter_flows.clear();
  for (size_t i = 0; i < placement.adapters.size(); ++i) {
    const mesh::PlacedTensor& p = placement.adapters[i];
    const ResolvedLora& r = resolved[i / 2];
    adapter_flows.push_back(flows.of(p, slices_of([&](const mesh::LocalConfig& local) {
                                       return mesh::local_slice(local, r.target, p.role, r.rank);
                                     })));
  }
  each([&](Node& node) {
    node.optimizer.reset();
    node.shards->add_lora(lora, seed, adapter_flows);
  });
  list_trained(placement.adapters);
}

void Cluster::Many::train(model::TrainMethod method, AdamWOptions adamw) {
  each([&](Node& node) {
    node.optimizer.reset();
    node.shards->set_trainable(method);
    node.optimizer = std::make_unique<AdamW>(node.device, node.shards->parameters(), adamw);
  });
  list_trained(method == model::TrainMethod::full ? placement.tensors : placement.adapters);
}

void Cluster::Many::list_trained(const std::vector<mesh::PlacedTensor>& list) {
  trained.clear();
  for (const Parameter& p : nodes[0]->shards->parameters()) {
    const auto placed =
        std::find_if(list.begin(), list.end(), [&](const mesh::PlacedTensor& one) { return one.name == p.name; });
    trained.push_back({p.name, placed->total(), p.decays});
  }
}

std::unique_ptr<Cluster::Impl> Cluster::Impl::on_mesh(const model::Config& config, const ClusterOptions& options) {
  return std::make_unique<Many>(config, options);
}

}  // namespace mw::engine
