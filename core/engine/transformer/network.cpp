// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/network.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

Network::Network(const model::Config& config, Device& device, model::WeightType type, NetworkUse use)
    : transformer_(std::make_unique<Transformer>(config, device, type, use)) {}
Network::Network(CollectiveHooks& hooks, Device& device, model::WeightType type)
    : transformer_(std::make_unique<Transformer>(hooks.whole_config(), device, type, NetworkUse::training, &hooks)) {}
Network::~Network() = default;

void Network::load(const WeightSource& source, const std::function<void(long, long)>& progress) {
  transformer_->weights.load(source, progress);
}
void Network::init_random(std::uint64_t seed) {
  transformer_->weights.init_random(seed);
}
void Network::add_lora(const options::Lora& options, std::uint64_t seed) {
  transformer_->add_lora(options, seed);
}
std::span<const LoraTensors> Network::lora() const {
  return transformer_->weights.modules;
}
void Network::set_trainable(model::TrainMethod method) {
  transformer_->set_trainable(method);
}
std::span<const TrainableTensor> Network::parameters() const {
  return transformer_->weights.parameters;
}

void Network::zero_gradients() {
  const std::span<float> all = transformer_->weights.gradients.span();
  transformer_->device.pool.parallel_for(
      static_cast<std::int64_t>(all.size()), 4096,
      [&](std::int64_t begin, std::int64_t end) { std::fill(all.begin() + begin, all.begin() + end, 0.0f); });
}

void Network::parameters_changed() {
  transformer_->weights.parameters_changed();
}

LossSum Network::forward_backward(const TokenBatch& batch, const StepOptions& options) {
  if (!transformer_->weights.trainable)
    throw Error("TRAIN", "nothing is trainable yet", {.fix = "call set_trainable first"});
  return run_step(*transformer_, batch, options, StepGoal::gradients);
}

LossSum Network::evaluate(const TokenBatch& batch, const StepOptions& options) {
  return run_step(*transformer_, batch, options, StepGoal::loss);
}

void Network::logits(const TokenBatch& batch, std::span<float> out) {
  const auto expected =
      static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len) * static_cast<size_t>(transformer_->vocab());
  if (out.size() != expected)
    throw Error("BATCH", "the logits buffer has the wrong size",
                {.found = std::to_string(out.size()), .expected = std::to_string(expected)});
  all_logits(*transformer_, batch, {}, out);
}

void Network::hidden(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const size_t expected =
      static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len) * static_cast<size_t>(transformer_->config.dim);
  if (out.size() != expected || (!from.empty() && from.size() != expected))
    throw Error("BATCH", "hidden states have the wrong size",
                {.found = std::to_string(from.size()) + " in, " + std::to_string(out.size()) + " out",
                 .expected = std::to_string(expected)});
  hidden_states(*transformer_, batch, from, out);
}

void Network::logits_from(const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const size_t tokens = static_cast<size_t>(batch.rows) * static_cast<size_t>(batch.len);
  if (from.size() != tokens * static_cast<size_t>(transformer_->config.dim) ||
      out.size() != tokens * static_cast<size_t>(transformer_->vocab()))
    throw Error("BATCH", "hidden states or logits have the wrong size",
                {.found = std::to_string(from.size()) + ", " + std::to_string(out.size()),
                 .expected = std::to_string(tokens) + " rows of each"});
  all_logits(*transformer_, batch, from, out);
}

void Network::release_step_memory() {
  transformer_->buffers.release();
  transformer_->gemm.release();
  transformer_->weights.widened = {};
}

const model::Config& Network::config() const {
  return transformer_->config;
}
const model::TensorInventory& Network::inventory() const {
  return transformer_->weights.inventory;
}
Device& Network::device() {
  return transformer_->device;
}
std::span<const float> Network::weight_f32(size_t index) {
  return transformer_->weights.weight_f32(index);
}
std::vector<KernelTime> Network::take_profile() {
  return transformer_->profile.take();
}

}  // namespace mw::engine
