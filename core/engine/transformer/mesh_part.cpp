// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/mesh_part.h"

#include "core/engine/transformer/checks.h"
#include "core/engine/transformer/core.h"

namespace mw::engine {

using mesh::AxisSet;
using mesh::Block;
using mesh::Cause;
using mesh::Phase;
using model::Role;

namespace {

const model::Config& checked(const model::Config& config) {
  check_model(config);
  return config;
}

}  // namespace

MeshPart::MeshPart(const model::Config& config, const mesh::WorkingForm& working_form, const mesh::Placement& placement,
                   Port& device_port)
    : whole(checked(config)),
      form(working_form),
      port(device_port),
      local(mesh::local_config(config, working_form, placement, device_port.mesh(), device_port.device())) {
  if (const mesh::Placed* table = form.find(Role::ple_embed, -1)) ple_vocab_axes = form.parallel(*table);
  if (const mesh::Placed* table = form.find(Role::embed, -1)) {
    vocab_axes = form.parallel(*table);
    for (size_t d = 0; d < table->dims.size(); ++d)
      for (const std::string& name : table->spec.dims[d])
        for (int a = 0; a < form.axes(); ++a)
          if ((vocab_axes >> a & 1) && form.name(a) == name) vocab_order_.push_back(a);
  }
  static constexpr Block kBlocks[] = {Block::attention, Block::mlp, Block::experts, Block::ple};
  for (int layer = 0; layer < static_cast<int>(whole.layers.size()); ++layer) {
    std::array<std::string, 4>& names = block_names_.emplace_back();
    for (const Block block : kBlocks)
      names[static_cast<size_t>(block)] = "layers." + std::to_string(layer) + "." + std::string(mesh::to_string(block));
    router_names_.push_back("layers." + std::to_string(layer) + ".router");
    ple_axes_ |= form.parallel(Block::ple, layer);
  }
}

void MeshPart::all_reduce(AxisSet axes, const CallFor& why, std::span<float> values, Reduce how) {
  for (int a = 0; a < form.axes() && !values.empty(); ++a)
    if (axes >> a & 1) port.all_reduce(a, why, values, how);
}

void MeshPart::sum(Block block, int layer, std::span<float> values) {
  all_reduce(form.parallel(block, layer),
             {phase, Cause::partial_sums, layer, block_names_[static_cast<size_t>(layer)][static_cast<size_t>(block)]},
             values);
}

void MeshPart::sum_shares(int layer, std::span<float> values) {
  all_reduce(form.parallel(Block::experts, layer),
             {phase, Cause::partial_sums, layer, router_names_[static_cast<size_t>(layer)]}, values);
}

void MeshPart::sum_lookups(std::span<float> rows) {
  all_reduce(vocab_axes, {Phase::forward, Cause::embedding_rows, -1, "embedding"}, rows);
}

void MeshPart::sum_per_layer_lookups(std::span<float> rows) {
  all_reduce(ple_vocab_axes, {Phase::forward, Cause::embedding_rows, -1, "per-layer embedding"}, rows);
}

void MeshPart::sum_per_layer_gradients(std::span<float> values) {
  all_reduce(ple_axes_, {Phase::backward, Cause::partial_sums, -1, "per-layer embedding"}, values);
}

void MeshPart::reduce_softmax(std::span<float> values, Reduce how) {
  all_reduce(vocab_axes, {Phase::forward, Cause::softmax, -1, "logits"}, values, how);
}

void MeshPart::sum_head_gradient(std::span<float> values) {
  all_reduce(vocab_axes, {Phase::backward, Cause::partial_sums, -1, "logits"}, values);
}

std::int64_t MeshPart::logits_room() const {
  std::int64_t room = local.config.vocab;
  for (const int a : vocab_order_) room *= form.size(a);
  return room;
}

// Inner axes first: each gather makes the next one's part.
void MeshPart::gather_logits(std::span<const float> mine, std::span<float> out) {
  std::vector<float> inner;
  for (size_t i = vocab_order_.size(); i-- > 0;) {
    const std::span<float> all = out.first(mine.size() * static_cast<size_t>(form.size(vocab_order_[i])));
    port.all_gather(vocab_order_[i], {Phase::forward, Cause::logits, -1, "logits"}, mine, all);
    if (i == 0) break;
    inner.assign(all.begin(), all.end());
    mine = inner;
  }
}

// --- What Core asks ---

mesh::Range Core::vocab_rows() const {
  return part ? part->local.vocab : mesh::Range{0, config.vocab};
}

mesh::Range Core::ple_vocab_rows() const {
  return part ? part->local.ple_vocab : mesh::Range{0, config.vocab};
}

void Core::sum_parts(Block block, int layer, std::int64_t n, float* values) {
  if (part) part->sum(block, layer, {values, static_cast<size_t>(n)});
}

void Core::enter_phase(Phase phase) {
  if (part) part->phase = phase;
}

void Core::enter_storage(int what, Phase phase) {
  if (part && part->storage) part->storage->enter(what, phase);
}

void Core::leave_storage(int what) {
  if (part && part->storage && trainable) part->storage->leave(what);
}

// The calls of a step in their order.
void Core::pass_storage(Want want) {
  const int count = static_cast<int>(layers.size());
  for (int what = Storage::kEmbeddings; what < count; ++what) enter_storage(what, Phase::forward);
  enter_storage(Storage::kHead, Phase::forward);
  if (want == Want::loss) return;
  leave_storage(Storage::kHead);
  for (int layer = count - 1; layer >= lowest_trained_layer(); --layer) {
    enter_storage(layer, Phase::backward);
    leave_storage(layer);
  }
  if (!full) return;
  enter_storage(Storage::kEmbeddings, Phase::backward);
  leave_storage(Storage::kEmbeddings);
}

}  // namespace mw::engine
