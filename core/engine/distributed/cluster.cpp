// SPDX-License-Identifier: Apache-2.0
// The Cluster, and how it is one Network on one device.
#include "core/engine/distributed/cluster.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/distributed/mesh_cluster.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

ClusterOptions as_the_engine_does(ClusterOptions options) {
  options.rules = mesh::engine_rules(std::move(options.rules));
  return options;
}

void check_size(size_t found, std::int64_t expected) {
  if (static_cast<std::int64_t>(found) == expected) return;
  throw Error("CLUSTER", "a tensor is read or written with a wrong size",
              {.found = std::to_string(found), .expected = std::to_string(expected)});
}

}  // namespace

std::span<float> values_of(const TrainableTensor& parameter, AdamW* optimizer, size_t index, Cluster::Part part) {
  if (part == Cluster::Part::value) return parameter.value;
  if (!optimizer)
    throw Error("CLUSTER", "gradients and moments are only there while the model is trained",
                {.place = parameter.name});
  if (part == Cluster::Part::gradient) return parameter.grad;
  return part == Cluster::Part::first_moment ? optimizer->first_moment(index) : optimizer->second_moment(index);
}

namespace {

struct SingleDevice final : Cluster {
  SingleDevice(const model::Config& c, const ClusterOptions& o)
      : Cluster(c, o), own(o.capacity, o.threads, this_machine(), o.arithmetic), whole(c, own, o.weights, o.use) {}

  int devices() const override { return 1; }
  Device& device(int) override { return own; }
  Network& network(int) override { return whole; }
  void load(const WeightSource& source, const std::function<void(long, long)>& progress) override {
    whole.load(source, progress);
  }
  void init_random(std::uint64_t seed) override { whole.init_random(seed); }
  void add_placed_lora(const options::Lora& lora, std::uint64_t seed) override {
    optimizer.reset();
    whole.add_lora(lora, seed);
    list_trained();
  }

  void train(model::TrainMethod method, options::AdamWOptions adamw) override {
    optimizer.reset();
    whole.set_trainable(method);
    optimizer = std::make_unique<AdamW>(own, whole.parameters(), adamw);
    list_trained();
  }
  void list_trained() {
    trained_.clear();
    for (const TrainableTensor& p : whole.parameters())
      trained_.push_back({p.name, static_cast<std::int64_t>(p.value.size()), p.rate});
  }

  void zero_gradients() override { whole.zero_gradients(); }
  LossSum forward_backward(const TokenBatch& batch, const StepOptions& step, std::stop_token) override {
    return whole.forward_backward(batch, step);
  }
  LossSum evaluate(const TokenBatch& batch, const StepOptions& step, std::stop_token) override {
    return whole.evaluate(batch, step);
  }
  double gradient_norm() override { return optimizer->gradient_norm(); }
  void update(std::int64_t t, float learning_rate, float clip, double norm) override {
    optimizer->step(t, learning_rate, clip, norm);
    whole.parameters_changed();
  }
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts,
                                               const options::SampleOptions& sample, std::stop_token stop) override {
    return Sampler(whole).generate_batch(prompts, sample, std::move(stop));
  }

  std::span<float> values(size_t index, Part part) const {
    return values_of(whole.parameters()[index], optimizer.get(), index, part);
  }
  void read_part(size_t index, Part part, std::span<float> out) const override {
    const std::span<float> from = values(index, part);
    std::copy(from.begin(), from.end(), out.begin());
  }
  void write_part(size_t index, Part part, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), values(index, part).begin());
  }
  void values_written() override { whole.parameters_changed(); }
  void read_whole_weight(size_t index, std::span<float> out) const override {
    const std::span<const float> from = whole.weight_f32(index);
    std::copy(from.begin(), from.end(), out.begin());
  }

  const std::vector<CollectiveTraffic>& traffic(int) const override { return none; }
  void clear_traffic() override {}
  std::vector<KernelTime> take_profile() override { return whole.take_profile(); }

  Device own;
  mutable Network whole;  // widens a weight to read it
  std::unique_ptr<AdamW> optimizer;
  std::vector<CollectiveTraffic> none;
};

}  // namespace

Cluster::Cluster(const model::Config& config, const ClusterOptions& options)
    : options_(as_the_engine_does(options)), config_(config), inventory_(config) {
  place({});
}

std::unique_ptr<Cluster> Cluster::create(const model::Config& config, const ClusterOptions& options) {
  if (options.mesh.devices() > 1) return std::make_unique<MeshCluster>(config, options);
  return std::make_unique<SingleDevice>(config, options);
}

void Cluster::place(const std::vector<mesh::AdapterShape>& adapters) {
  mesh::Placement fresh = mesh::place(inventory_, options_.mesh, options_.rules, adapters, mesh::ShardingUse::training);
  placement_.adapters = std::move(fresh.adapters);
  placement_.problems = std::move(fresh.problems);
  if (placement_.tensors.empty()) placement_.tensors = std::move(fresh.tensors);
}

void Cluster::add_lora(const options::Lora& options, std::uint64_t seed) {
  std::vector<mesh::AdapterShape> shapes;
  for (const ResolvedLora& r : resolve_lora(inventory_, options))
    shapes.push_back({r.target.role, r.target.layer, r.rank, options.dora});
  trained_.clear();
  place(shapes);
  add_placed_lora(options, seed);
}

void Cluster::read(size_t index, Part part, std::span<float> out) const {
  check_size(out.size(), trained_.at(index).size);
  read_part(index, part, out);
}
void Cluster::write(size_t index, Part part, std::span<const float> values) {
  check_size(values.size(), trained_.at(index).size);
  write_part(index, part, values);
}
void Cluster::read_weight(size_t index, std::span<float> out) const {
  check_size(out.size(), inventory_.tensors()[index].elements());
  read_whole_weight(index, out);
}

}  // namespace mw::engine
