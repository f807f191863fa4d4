// SPDX-License-Identifier: Apache-2.0
// The Cluster, and how it is one Network on one device.
#include "core/engine/distributed/cluster.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/distributed/cluster_backend.h"
#include "core/mesh/collectives/engine_step.h"

namespace mw::engine {
namespace {

ClusterOptions as_the_engine_does(ClusterOptions options) {
  options.rules = mesh::engine_rules(std::move(options.rules));
  return options;
}

void check_size(size_t found, std::int64_t expected) {
  if (static_cast<std::int64_t>(found) == expected) return;
  throw Error({.id = "CLUSTER",
               .message = "a tensor is read or written with a wrong size",
               .found = std::to_string(found),
               .expected = std::to_string(expected)});
}

}  // namespace

std::span<float> values_of(const Parameter& parameter, AdamW* optimizer, size_t index, Cluster::Part part) {
  if (part == Cluster::Part::value) return parameter.value;
  if (!optimizer)
    throw Error({.id = "CLUSTER",
                 .message = "gradients and moments are only there while the model is trained",
                 .place = parameter.name});
  if (part == Cluster::Part::gradient) return parameter.grad;
  return part == Cluster::Part::first_moment ? optimizer->first_moment(index) : optimizer->second_moment(index);
}

Cluster::Impl::Impl(const model::Config& c, const ClusterOptions& o)
    : options(as_the_engine_does(o)), config(c), inventory(c) {
  place({});
}

void Cluster::Impl::place(const std::vector<mesh::AdapterShape>& adapters) {
  mesh::Placement fresh = mesh::place(inventory, options.mesh, options.rules, adapters, mesh::ShardingUse::training);
  placement.adapters = std::move(fresh.adapters);
  placement.problems = std::move(fresh.problems);
  if (placement.tensors.empty()) placement.tensors = std::move(fresh.tensors);
}

void Cluster::Impl::check_trained(size_t index, size_t values) const {
  check_size(values, trained.at(index).size);
}

struct Cluster::SingleDevice final : Cluster::Impl {
  SingleDevice(const model::Config& c, const ClusterOptions& o)
      : Impl(c, o), own(o.capacity, o.threads), whole(c, own, o.weights, o.use) {}

  int devices() const override { return 1; }
  Device& device(int) override { return own; }
  Network& network(int) override { return whole; }
  void load(const WeightSource& source, const std::function<void(long, long)>& progress) override {
    whole.load(source, progress);
  }
  void init_random(std::uint64_t seed) override { whole.init_random(seed); }
  void add_lora(const LoraOptions& lora, std::uint64_t seed) override {
    optimizer.reset();
    whole.add_lora(lora, seed);
    list_trained();
  }

  void train(model::TrainMethod method, AdamWOptions adamw) override {
    optimizer.reset();
    whole.set_trainable(method);
    optimizer = std::make_unique<AdamW>(own, whole.parameters(), adamw);
    list_trained();
  }
  void list_trained() {
    trained.clear();
    for (const Parameter& p : whole.parameters())
      trained.push_back({p.name, static_cast<std::int64_t>(p.value.size()), p.decays});
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
  std::vector<std::vector<int>> generate_batch(std::span<const std::vector<int>> prompts, const SampleOptions& sample,
                                               std::stop_token stop) override {
    return Sampler(whole).generate_batch(prompts, sample, std::move(stop));
  }

  std::span<float> values(size_t index, Part part) const {
    return values_of(whole.parameters()[index], optimizer.get(), index, part);
  }
  void read(size_t index, Part part, std::span<float> out) const override {
    const std::span<float> from = values(index, part);
    std::copy(from.begin(), from.end(), out.begin());
  }
  void write(size_t index, Part part, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), values(index, part).begin());
  }
  void values_written() override { whole.parameters_changed(); }
  void read_weight(size_t index, std::span<float> out) override {
    const std::span<const float> from = whole.weight_f32(index);
    std::copy(from.begin(), from.end(), out.begin());
  }

  const std::vector<Traffic>& traffic(int) const override { return none; }
  void clear_traffic() override {}
  std::vector<KernelTime> take_profile() override { return whole.take_profile(); }
  void release_step_memory() override { whole.release_step_memory(); }

  Device own;
  Network whole;
  std::unique_ptr<AdamW> optimizer;
  std::vector<Traffic> none;
};

// --- The Cluster ---

Cluster::Cluster(const model::Config& config, const ClusterOptions& options) {
  if (options.mesh.devices() > 1)
    impl_ = Impl::on_mesh(config, options);
  else
    impl_ = std::make_unique<SingleDevice>(config, options);
}
Cluster::~Cluster() = default;

const model::Config& Cluster::config() const {
  return impl_->config;
}
const model::TensorInventory& Cluster::inventory() const {
  return impl_->inventory;
}
const mesh::Mesh& Cluster::mesh() const {
  return impl_->options.mesh;
}
const mesh::Placement& Cluster::placement() const {
  return impl_->placement;
}
int Cluster::devices() const {
  return impl_->devices();
}
Device& Cluster::device(int index) {
  return impl_->device(index);
}
Network& Cluster::network(int device) {
  return impl_->network(device);
}

void Cluster::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  impl_->load(source, progress);
}
void Cluster::init_random(std::uint64_t seed) {
  impl_->init_random(seed);
}
void Cluster::add_lora(const LoraOptions& options, std::uint64_t seed) {
  std::vector<mesh::AdapterShape> shapes;
  for (const ResolvedLora& r : resolve_lora(impl_->inventory, options))
    shapes.push_back({r.target.role, r.target.layer, r.rank});
  impl_->trained.clear();
  impl_->place(shapes);
  impl_->add_lora(options, seed);
}
void Cluster::train(model::TrainMethod method, AdamWOptions options) {
  impl_->train(method, options);
}

void Cluster::zero_gradients() {
  impl_->zero_gradients();
}
LossSum Cluster::forward_backward(const TokenBatch& batch, const StepOptions& options, std::stop_token stop) {
  return impl_->forward_backward(batch, options, std::move(stop));
}
LossSum Cluster::evaluate(const TokenBatch& batch, const StepOptions& options, std::stop_token stop) {
  return impl_->evaluate(batch, options, std::move(stop));
}
double Cluster::gradient_norm() {
  return impl_->gradient_norm();
}
void Cluster::update(std::int64_t t, float learning_rate, float clip, double norm) {
  impl_->update(t, learning_rate, clip, norm);
}
std::vector<std::vector<int>> Cluster::generate_batch(std::span<const std::vector<int>> prompts,
                                                      const SampleOptions& options, std::stop_token stop) {
  return impl_->generate_batch(prompts, options, std::move(stop));
}

std::span<const Cluster::Trained> Cluster::trained() const {
  return impl_->trained;
}
void Cluster::read(size_t index, Part part, std::span<float> out) const {
  impl_->check_trained(index, out.size());
  impl_->read(index, part, out);
}
void Cluster::write(size_t index, Part part, std::span<const float> values) {
  impl_->check_trained(index, values.size());
  impl_->write(index, part, values);
}
void Cluster::values_written() {
  impl_->values_written();
}
void Cluster::read_weight(size_t index, std::span<float> out) const {
  check_size(out.size(), impl_->inventory.tensors()[index].elements());
  impl_->read_weight(index, out);
}

int Cluster::differing_replicas(size_t index, Part part) const {
  return impl_->differing_replicas(index, part);
}

const std::vector<Traffic>& Cluster::traffic(int device) const {
  return impl_->traffic(device);
}
void Cluster::clear_traffic() {
  impl_->clear_traffic();
}
std::vector<KernelTime> Cluster::take_profile() {
  return impl_->take_profile();
}
void Cluster::release_step_memory() {
  impl_->release_step_memory();
}

}  // namespace mw::engine
