// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/network.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/engine/transformer/network_impl.h"

namespace mw::engine {

Network::Network(const model::Config& config, Device& device, model::WeightType type, Use use)
    : impl_(std::make_unique<Impl>(config, device, type, nullptr, use)) {}
Network::Network(CollectiveHooks& part, Device& device, model::WeightType type)
    : impl_(std::make_unique<Impl>(part.whole_config(), device, type, &part, Use::training)) {}
Network::~Network() = default;

void Network::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  impl_->core.load(source, progress);
}
void Network::init_random(std::uint64_t seed) {
  impl_->core.init_random(seed);
}
void Network::add_lora(const LoraOptions& options, std::uint64_t seed) {
  impl_->core.add_lora(options, seed);
}
std::span<const LoraModule> Network::lora() const {
  return impl_->core.modules;
}
void Network::set_trainable(model::TrainMethod method) {
  impl_->core.set_trainable(method);
}
std::span<const Parameter> Network::parameters() const {
  return impl_->core.parameters;
}

void Network::zero_gradients() {
  const std::span<float> all = impl_->core.gradients.span();
  impl_->core.device.pool.parallel_for(
      static_cast<std::int64_t>(all.size()), 4096,
      [&](std::int64_t begin, std::int64_t end) { std::fill(all.begin() + begin, all.begin() + end, 0.0f); });
}

void Network::parameters_changed() {
  impl_->core.parameters_changed();
}

LossSum Network::forward_backward(const TokenBatch& batch, const StepOptions& options) {
  if (!impl_->core.trainable)
    throw Error({.id = "TRAIN", .message = "nothing is trainable yet", .fix = "call set_trainable first"});
  return impl_->core.run(batch, options, Want::gradients);
}

LossSum Network::evaluate(const TokenBatch& batch, const StepOptions& options) {
  return impl_->core.run(batch, options, Want::loss);
}

void Network::logits(const TokenBatch& batch, std::span<float> out) {
  const auto expected =
      static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len) * static_cast<size_t>(impl_->core.vocab());
  if (out.size() != expected)
    throw Error({.id = "BATCH",
                 .message = "the logits buffer has the wrong size",
                 .found = std::to_string(out.size()),
                 .expected = std::to_string(expected)});
  impl_->core.logits(batch, {}, out);
}

void Network::hidden(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const size_t expected =
      static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len) * static_cast<size_t>(impl_->core.config.dim);
  if (out.size() != expected || (!from.empty() && from.size() != expected))
    throw Error({.id = "BATCH",
                 .message = "hidden states have the wrong size",
                 .found = std::to_string(from.size()) + " in, " + std::to_string(out.size()) + " out",
                 .expected = std::to_string(expected)});
  impl_->core.hidden(batch, from, out);
}

void Network::logits_from(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const size_t tokens = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  if (from.size() != tokens * static_cast<size_t>(impl_->core.config.dim) ||
      out.size() != tokens * static_cast<size_t>(impl_->core.vocab()))
    throw Error({.id = "BATCH",
                 .message = "hidden states or logits have the wrong size",
                 .found = std::to_string(from.size()) + ", " + std::to_string(out.size()),
                 .expected = std::to_string(tokens) + " rows of each"});
  impl_->core.logits(batch, from, out);
}

void Network::release_step_memory() {
  impl_->core.release_step_memory();
}

const model::Config& Network::config() const {
  return impl_->core.config;
}
const model::TensorInventory& Network::inventory() const {
  return impl_->core.inventory;
}
Device& Network::device() {
  return impl_->core.device;
}
std::span<const float> Network::weight_f32(size_t index) {
  return impl_->core.weight_f32(index);
}
std::vector<KernelTime> Network::take_profile() {
  return impl_->core.profile.take();
}

}  // namespace mw::engine
