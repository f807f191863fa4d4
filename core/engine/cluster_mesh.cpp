// SPDX-License-Identifier: Apache-2.0
// The Cluster on several devices: one thread and one Network each, in step with one another.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/checks.h"
#include "core/engine/cluster_impl.h"
#include "core/engine/network_impl.h"
#include "core/engine/shards.h"
#include "core/engine/tokens.h"
#include "core/mesh/engine_step.h"

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
  for (const Problem& p : mesh::check(options.mesh, 0)) throw Error(p);
  if (options.weights == WeightType::int8)
    throw Error({.id = "DTYPE",
                 .message = "int8 weights run on one device only",
                 .found = mesh::to_text(options.mesh),
                 .expected = "f32 or bf16 on a mesh"});
  return options;
}

}  // namespace

struct Cluster::Many final : Cluster::Impl {
  struct Node {  // a device with what it holds and computes
    Node(MeshPart&& its_part, Bytes capacity) : device(capacity, 1), part(std::move(its_part)) {}
    Core& core() { return network->impl_->core; }

    Device device;
    MeshPart part;
    std::unique_ptr<Shards> shards;
    std::unique_ptr<Network> network;
    std::unique_ptr<AdamW> optimizer;
  };

  Many(const model::Config& c, const ClusterOptions& o)
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
        auto node = std::make_unique<Node>(MeshPart(config, form, placement, port), options.capacity);
        node->shards = std::make_unique<Shards>(node->part, placement, weight_flows);
        node->part.storage = node->shards.get();
        node->network = std::make_unique<Network>(node->part, node->device, options.weights);
        nodes[d] = std::move(node);
      });
      shards[d] = nodes[d]->shards.get();
    });
    each([&](Node& node) { node.shards->attach(node.core(), shards); });
  }

  void localise() {
    locals.clear();
    for (int d = 0; d < fabric.devices(); ++d)
      locals.push_back(mesh::local_config(config, form, placement, options.mesh, d));
  }
  template <class SliceOf>
  std::vector<mesh::LocalSlice> slices_of(const SliceOf& slice_of) const {
    std::vector<mesh::LocalSlice> slices;
    for (const mesh::LocalConfig& local : locals) slices.push_back(slice_of(local));
    return slices;
  }

  std::string name_of(int device) const {  // "device 3 (fsdp 0, tp 3)"
    std::string name = "device " + std::to_string(device) + " (";
    const std::vector<int> at = mesh::coordinate(options.mesh, device);
    for (size_t a = 0; a < at.size(); ++a)
      name += (a ? ", " : "") + options.mesh.axes[a].name + " " + std::to_string(at[a]);
    return name + ")";
  }
  // Errors of a device say which.
  template <class Work>
  void named(const Port& port, const Work& work) const {
    try {
      work();
    } catch (const OutOfMemory& error) {
      OutOfMemory::Moment moment = error.moment;
      moment.device = name_of(port.device());
      throw OutOfMemory(std::move(moment));
    } catch (const Error& error) {
      Problem problem = error.problem();
      problem.place = name_of(port.device()) + (problem.place.empty() ? "" : ", " + problem.place);
      throw Error(problem, error.kind());
    }
  }
  template <class Work>
  void each(const Work& work, std::stop_token stop = {}) {
    fabric.each([&](Port& port) { named(port, [&] { work(*nodes[static_cast<size_t>(port.device())]); }); },
                std::move(stop));
  }

  int devices() const override { return fabric.devices(); }
  Node& node(int index) { return *nodes.at(static_cast<size_t>(index)); }
  Device& device(int index) override { return node(index).device; }
  Network& network(int index) override { return *node(index).network; }

  // --- Values ---

  void load(const WeightSource& source, const std::function<void(long, long)>& progress) override {
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
        if (options.weights == WeightType::f32 || !source.bf16) {
          wide.resize(count);
          source.f32(i, first, wide);
        }
        if (options.weights == WeightType::f32) {
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

  // Each device takes what it stores of these rows, read once for all.
  template <class Values>
  void give_rows(size_t weight, std::int64_t first, std::span<const Values> rows) {
    if (static_cast<std::int64_t>(rows.size()) >= kWorthThreads)
      return each([&](Node& node) { node.shards->load_rows(weight, first, rows); });
    for (const auto& node : nodes) node->shards->load_rows(weight, first, rows);
  }

  void init_random(std::uint64_t seed) override {
    each([&](Node& node) { node.shards->init_random(seed); });
  }

  void add_lora(const LoraOptions& lora, std::uint64_t seed) override {
    possible(placement);
    localise();
    const std::vector<ResolvedLora> resolved = resolve_lora(inventory, lora);
    adapter_flows.clear();
    for (size_t i = 0; i < placement.adapters.size(); ++i) {
      const mesh::Placed& p = placement.adapters[i];
      const ResolvedLora& r = resolved[i / 2];
      adapter_flows.push_back(flows.of(p, slices_of([&](const mesh::LocalConfig& local) {
                                         return mesh::local_slice(local, r.target, p.role, r.rank);
                                       })));
    }
    each([&](Node& node) { node.shards->add_lora(lora, seed, adapter_flows); });
  }

  void train(Method method, AdamWOptions adamw) override {
    each([&](Node& node) {
      node.optimizer.reset();
      node.shards->set_trainable(method);
      node.optimizer = std::make_unique<AdamW>(node.device, node.shards->parameters(), adamw);
    });
    trained.clear();
    for (const Parameter& p : nodes[0]->shards->parameters()) {
      const std::vector<mesh::Placed>& list = method == Method::full ? placement.tensors : placement.adapters;
      const auto placed =
          std::find_if(list.begin(), list.end(), [&](const mesh::Placed& one) { return one.name == p.name; });
      trained.push_back({p.name, placed->total(), p.decays});
    }
  }

  // --- Steps ---

  void zero_gradients() override {
    each([](Node& node) { node.shards->zero_gradients(); });
  }

  struct Rows {  // of a batch
    int first = 0, count = 0;
  };
  Rows rows_of(int device, int all) const {
    const mesh::Range r = mesh::rows_of(mesh::batch_share(options.mesh, device), all);
    return {static_cast<int>(r.begin), static_cast<int>(r.end - r.begin)};
  }
  // One device of those that have the same rows.
  bool speaks(int device) const {
    const std::vector<int> at = mesh::coordinate(options.mesh, device);
    for (int a = 0; a < form.axes(); ++a)
      if (form.model() >> a & 1 && at[static_cast<size_t>(a)] != 0) return false;
    return true;
  }

  template <class Run>
  LossSum step(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop, const Run& run) {
    check_batch(batch, config.vocab, config.max_positions);
    std::vector<LossSum> sums(nodes.size());
    each(
        [&](Node& node) {
          const int d = node.part.port.device();
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
      if (speaks(d)) sum.sum += sums[static_cast<size_t>(d)].sum, sum.tokens += sums[static_cast<size_t>(d)].tokens;
    return sum;
  }

  LossSum forward_backward(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override {
    return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
      return network.forward_backward(rows, own);
    });
  }
  LossSum evaluate(const TokenBatch& batch, const StepOptions& whole, std::stop_token stop) override {
    return step(batch, whole, std::move(stop), [](Network& network, const TokenBatch& rows, const StepOptions& own) {
      return network.evaluate(rows, own);
    });
  }

  double gradient_norm() override {
    std::vector<double> sums(trained.size() * nodes.size());
    each([&](Node& node) {
      for (size_t i = 0; i < trained.size(); ++i)
        sums[i * nodes.size() + static_cast<size_t>(node.part.port.device())] = node.shards->square_sum(i);
    });
    double sum = 0;
    for (const double one : sums) sum += one;
    return std::sqrt(sum);
  }

  void update(std::int64_t t, float learning_rate, float clip, double norm) override {
    const auto kept = before_update();
    each([&](Node& node) {
      node.optimizer->step(t, learning_rate, clip, norm);
      if (const auto d = static_cast<size_t>(node.part.port.device()); d < kept.size() && d > 0)
        std::copy(kept[d].begin(), kept[d].end(), values(node, mistake.tensor, Part::value).begin());
      node.shards->values_changed();
    });
  }

  // The mistakes of an update; the values to put back on all devices but the first.
  std::vector<std::vector<float>> before_update() {
    std::vector<std::vector<float>> kept;
    const auto all = [&](Part part) {
      std::vector<std::vector<float>> of_nodes;
      for (const auto& node : nodes) {
        const auto span = values(*node, mistake.tensor, part);
        of_nodes.emplace_back(span.begin(), span.end());
      }
      return of_nodes;
    };
    if (mistake.kind == Mistake::Kind::update_on_one_device) kept = all(Part::value);
    if (mistake.kind == Mistake::Kind::moments_of_another_shard)
      for (const Part part : {Part::first_moment, Part::second_moment}) {
        const auto moments = all(part);
        for (size_t d = 0; d < nodes.size(); ++d)
          if (const auto& other = moments[(d + 1) % nodes.size()]; other.size() == moments[d].size())
            std::copy(other.begin(), other.end(), values(*nodes[d], mistake.tensor, part).begin());
      }
    return kept;
  }
  void make(Mistake what) override {
    mistake = what;
    if (what.kind == Mistake::Kind::sum_left_out)
      for (const auto& node : nodes) node->shards->leave_sum_out(what.tensor);
  }

  // A stop ends all rows with what they have, wherever the devices were.
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& sample,
                                               std::stop_token stop) override {
    std::vector<std::vector<int>> out(prompts.size());
    try {
      each(
          [&](Node& node) {
            const int d = node.part.port.device();
            const Rows rows = rows_of(d, static_cast<int>(prompts.size()));
            SampleOptions own = sample;
            own.first_row += rows.first;
            Sampler::OnToken keep;
            if (speaks(d))
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

  // --- Whole tensors ---

  static std::span<float> values(const Node& node, size_t index, Part part) {
    return values_of(node.shards->parameters()[index], *node.optimizer, index, part);
  }
  void read(size_t index, Part part, std::span<float> out) const override {
    for (const auto& node : nodes)
      if (node->shards->counts(index)) node->shards->copy_out(index, values(*node, index, part), out);
  }
  int odd_copies(size_t index, Part part) const override {
    std::vector<float> whole(static_cast<size_t>(trained[index].size));
    read(index, part, whole);
    int odd = 0;
    for (const auto& node : nodes) {
      const std::span<float> stored = values(*node, index, part);
      std::vector<float> expected(stored.begin(), stored.end());  // padding stays as it is
      node->shards->copy_in(index, whole, expected);
      odd += std::memcmp(expected.data(), stored.data(), stored.size_bytes()) != 0;
    }
    return odd;
  }
  void write(size_t index, Part part, std::span<const float> from) override {
    for (const auto& node : nodes) node->shards->copy_in(index, from, values(*node, index, part));
  }
  void values_written() override {
    each([](Node& node) { node.shards->values_changed(); });
  }
  void read_weight(size_t index, std::span<float> out) override {
    for (const auto& node : nodes)
      if (node->shards->counts_weight(index)) node->shards->read_weight(index, out);
  }

  // --- What a step took ---

  const std::vector<Traffic>& traffic(int index) const override {
    return nodes.at(static_cast<size_t>(index))->part.port.traffic();
  }
  void clear_traffic() override {
    for (const auto& node : nodes) node->part.port.clear_traffic();
  }
  std::vector<Network::KernelTime> take_profile() override {
    std::vector<Network::KernelTime> sums;
    for (const auto& node : nodes)
      for (const Network::KernelTime& k : node->network->take_profile()) {
        const auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.name == k.name; });
        if (found == sums.end())
          sums.push_back(k);
        else
          found->seconds += k.seconds, found->calls += k.calls, found->flops += k.flops;
      }
    return sums;
  }
  void release_step_memory() override {
    for (const auto& node : nodes) node->network->release_step_memory();
  }

  Fabric fabric;
  const mesh::WorkingForm form;
  Flows flows;
  std::vector<mesh::LocalConfig> locals;  // by device
  std::vector<std::shared_ptr<const Flow>> weight_flows, adapter_flows;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Shards*> shards;
  Mistake mistake;
};

std::unique_ptr<Cluster::Impl> Cluster::Impl::on_mesh(const model::Config& config, const ClusterOptions& options) {
  return std::make_unique<Many>(config, options);
}

}  // namespace mw::engine
