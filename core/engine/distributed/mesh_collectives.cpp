// SPDX-License-Identifier: Apache-2.0
#include "core/engine/distributed/mesh_collectives.h"

#include "core/engine/transformer/checks.h"

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

MeshCollectives::MeshCollectives(const model::Config& config, const mesh::ComputeSharding& working_form,
                                 const mesh::Placement& placement, Communicator& device_port)
    : whole_(checked(config)),
      form_(working_form),
      port_(device_port),
      local_(mesh::local_config(config, working_form, placement, device_port.mesh(), device_port.device())) {
  if (const mesh::PlacedTensor* table = form_.find(Role::ple_embed, -1)) ple_vocab_axes_ = form_.parallel(*table);
  if (const mesh::PlacedTensor* table = form_.find(Role::embed, -1)) {
    vocab_axes_ = form_.parallel(*table);
    for (size_t d = 0; d < table->dims.size(); ++d)
      for (const std::string& name : table->spec.dims[d])
        for (int a = 0; a < form_.axes(); ++a)
          if ((vocab_axes_ >> a & 1) && form_.name(a) == name) vocab_order_.push_back(a);
  }
  static constexpr Block kBlocks[] = {Block::attention, Block::mlp, Block::experts, Block::ple};
  for (int layer = 0; layer < static_cast<int>(whole_.layers.size()); ++layer) {
    std::array<std::string, 4>& names = block_names_.emplace_back();
    for (const Block block : kBlocks)
      names[static_cast<size_t>(block)] = "layers." + std::to_string(layer) + "." + std::string(mesh::to_string(block));
    router_names_.push_back("layers." + std::to_string(layer) + ".router");
    ple_axes_ |= form_.parallel(Block::ple, layer);
  }
}

void MeshCollectives::all_reduce(AxisSet axes, const CallTag& why, std::span<float> values, Reduce how) {
  for (int a = 0; a < form_.axes() && !values.empty(); ++a)
    if (axes >> a & 1) port_.all_reduce(a, why, values, how);
}

void MeshCollectives::sum_block(Block block, int layer, std::span<float> values) {
  all_reduce(form_.parallel(block, layer),
             {phase_, Cause::partial_sums, layer, block_names_[static_cast<size_t>(layer)][static_cast<size_t>(block)]},
             values);
}

void MeshCollectives::sum_row_squares(Role projection, int layer, std::span<float> values) {
  if (!mesh::splits_inputs(projection)) return;
  const std::string name = "layers." + std::to_string(layer) + "." + std::string(model::hf_module_name(projection));
  all_reduce(form_.parallel(mesh::block_of(projection), layer),
             {Phase::forward, Cause::partial_sums, layer, name + ".lora_m"}, values);
}

void MeshCollectives::sum_router_gradients(int layer, std::span<float> values) {
  all_reduce(form_.parallel(Block::experts, layer),
             {phase_, Cause::partial_sums, layer, router_names_[static_cast<size_t>(layer)]}, values);
}

void MeshCollectives::sum_embedding_rows(std::span<float> rows) {
  all_reduce(vocab_axes_, {Phase::forward, Cause::embedding_rows, -1, "embedding"}, rows);
}

void MeshCollectives::sum_per_layer_embedding_rows(std::span<float> rows) {
  all_reduce(ple_vocab_axes_, {Phase::forward, Cause::embedding_rows, -1, "per-layer embedding"}, rows);
}

void MeshCollectives::sum_per_layer_gradients(std::span<float> values) {
  all_reduce(ple_axes_, {Phase::backward, Cause::partial_sums, -1, "per-layer embedding"}, values);
}

void MeshCollectives::max_over_vocab(std::span<float> values) {
  all_reduce(vocab_axes_, {Phase::forward, Cause::softmax, -1, "logits"}, values, Reduce::max);
}

void MeshCollectives::sum_over_vocab(std::span<float> values) {
  all_reduce(vocab_axes_, {Phase::forward, Cause::softmax, -1, "logits"}, values);
}

void MeshCollectives::sum_head_gradient(std::span<float> values) {
  all_reduce(vocab_axes_, {Phase::backward, Cause::partial_sums, -1, "logits"}, values);
}

// Inner axes first: each gather makes the next one's part.
void MeshCollectives::gather_logits(std::span<const float> own, std::span<float> out) {
  std::vector<float> inner;
  for (size_t i = vocab_order_.size(); i-- > 0;) {
    const std::span<float> all = out.first(own.size() * static_cast<size_t>(form_.size(vocab_order_[i])));
    port_.all_gather(vocab_order_[i], {Phase::forward, Cause::logits, -1, "logits"}, own, all);
    if (i == 0) break;
    inner.assign(all.begin(), all.end());
    own = inner;
  }
}

}  // namespace mw::engine
